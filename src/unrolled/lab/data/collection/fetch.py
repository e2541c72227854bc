"""Fetching datasets that are openly licensed from where they are kept, when somebody asks for it.

By https alone, redirections included; what comes is written beside its place, held to its checksum, and moved there in
one step. What is larger than it should be is not read to its end.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import secrets
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from unrolled.errors import DataError, FileError, UsageError
from unrolled.lab.data.collection.checksums import check_file
from unrolled.lab.data.collection.manifest import DataFile, Manifest
from unrolled.lab.data.datasets import DATASETS
from unrolled.lab.data.text_files import find_file

__all__ = ["OnProgress", "fetch_dataset"]

OnProgress = Callable[[str, int, int | None], None]
"""Called while something is on its way: its address, how many bytes are here, how many there will be, if known."""

_CHUNK = 2**16
_SECONDS = 30.0
_MOST = 2**30
_SCHEMES = ("https",)


def fetch_dataset(name: str, manifest: Manifest, folder: Path, report: OnProgress) -> Iterator[str]:
    """Fetch what is missing of a dataset.

    Args:
        name: the dataset's.
        manifest: where it is to be had.
        folder: the data folder; made if need be.
        report: is told how far it is.

    Yields:
        What was done, a line each.

    Raises:
        UsageError: when it is not ours to fetch.
        FileError: when the address does not answer, or the folder cannot be written.
        DataError: when something else came than should.
    """
    source = manifest.source(name)
    if not source.files:
        yield f"{name}: generated here, nothing is to be fetched"
        return
    if closed := [path for path in source.files if not manifest.files[path].downloadable]:
        raise UsageError(_refusal(name, source.request_url, closed))
    archives: dict[str, list[str]] = {}
    for path in source.files:
        wanted = manifest.files[path]
        if (there := _there(path, folder)) is not None:
            yield f"{check_file(there, wanted)}; not fetched again"
        elif wanted.archive is not None:
            archives.setdefault(wanted.archive, []).append(path)
        else:
            assert wanted.address is not None
            with _beside(folder / path) as part:
                _download(wanted.address, part, wanted.sha256, report)
                _settle(part, folder / path)
            yield f"{folder / path}: fetched, sha256 right"
    for archive, paths in archives.items():
        kept = manifest.archives[archive]
        with _beside(folder / f"{archive}.zip") as part:
            _download(kept.address, part, kept.sha256, report)
            for path in paths:
                _unpack(part, manifest.files[path], folder / path)
                yield f"{folder / path}: fetched, sha256 right"


def _refusal(name: str, ask: str | None, closed: list[str]) -> str:
    licence = f"; its terms: {DATASETS.get(name).licence}" if name in DATASETS.names() else ""
    where = f"; ask for it at {ask}" if ask else ""
    return f"{name} is not ours to fetch{licence}{where}, and put {', '.join(closed)} into the data folder"


def _there(path: str, folder: Path) -> Path | None:
    try:
        return find_file(path, folder)
    except FileError:
        return None


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Make room for a file under another name; nothing is left of it that was not moved to its place."""
    part = target.with_name(f".{target.name}-{secrets.token_hex(4)}.part")
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"{target}: cannot be written: {error.strerror or error}") from None


class _StayEncrypted(urllib.request.HTTPRedirectHandler):
    """Follow a redirection only to where a first request might go."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """Check the new address."""
        _check_scheme(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_scheme(address: str) -> None:
    if urlsplit(address).scheme not in _SCHEMES:
        raise FileError(f"{address}: not fetched; expected an address that begins with https://")


def _download(address: str, part: Path, sha256: str | None, report: OnProgress) -> None:
    """Write what an address gives to a file."""
    _check_scheme(address)
    # some servers refuse Python's own name
    request = urllib.request.Request(address, headers={"User-Agent": f"unrolled/{version('unrolled')}"})  # noqa: S310  # checked
    total, here = hashlib.sha256(), 0
    opener = urllib.request.build_opener(_StayEncrypted)
    try:
        with opener.open(request, timeout=_SECONDS) as answer, part.open("xb") as file:
            length = answer.headers.get("Content-Length", "")
            size = int(length) if length.isdecimal() else None
            while chunk := answer.read(_CHUNK):
                here += len(chunk)
                if here > _MOST:
                    raise DataError(f"{address}: expected at most {_MOST:,} bytes, found more; nothing was kept")
                file.write(chunk)
                total.update(chunk)
                report(address, here, size)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        status = f"{error.code} " if isinstance(error, urllib.error.HTTPError) else ""
        raise FileError(f"{address}: cannot be fetched: {status}{reason}") from None
    if size is not None and here < size:
        raise FileError(f"{address}: cannot be fetched: the connection ended after {here:,} of {size:,} bytes")
    if sha256 is not None and total.hexdigest() != sha256:
        raise DataError(
            f"{address}: expected the sha256 {sha256[:12]}…, found {total.hexdigest()[:12]}… in {here:,} bytes; "
            "nothing was kept"
        )


def _unpack(archive: Path, wanted: DataFile, target: Path) -> None:
    """Write one file of a zip archive to its place."""
    assert wanted.member is not None
    with _beside(target) as part:
        try:
            with zipfile.ZipFile(archive) as file, file.open(wanted.member) as member, part.open("xb") as unpacked:
                _copy(member, unpacked)
        except (zipfile.BadZipFile, KeyError) as error:
            raise DataError(f"{wanted.archive}.zip: expected {wanted.member} in it, found {error}") from None
        check_file(part, wanted)
        _settle(part, target)


def _copy(member: IO[bytes], unpacked: IO[bytes]) -> None:
    here = 0
    while chunk := member.read(_CHUNK):
        here += len(chunk)
        if here > _MOST:
            raise DataError(f"expected at most {_MOST:,} bytes unpacked, found more; nothing was kept")
        unpacked.write(chunk)


def _settle(part: Path, target: Path) -> None:
    """Move a file that is whole to its place."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(target)
