"""Download datasets whose licence permits it, when the user asks for one.

Addresses and redirections must be https. A download is written to a temporary file, and moved to its place in one step
if its checksum is correct; otherwise nothing is left of it. A download that is too large is stopped.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pooch
import requests

from unrolled.errors import DataError, FileError, UnrolledError, UsageError
from unrolled.lab.data.collection.manifest import DataFile, Manifest, Source, check_file, is_complete
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.datasets import DATASETS

__all__ = ["OnProgress", "fetch_dataset"]

OnProgress = Callable[[str, int, int | None], None]
"""Called during a download with its address, the bytes received, and the bytes expected (None if unknown)."""

_CHUNK = 2**16
_SECONDS = 30.0
_MOST = 2**30
_SCHEMES = ("https",)


def fetch_dataset(name: str, manifest: Manifest, folder: Path, report: OnProgress) -> Iterator[str]:
    """Download the missing files of a dataset into the data folder, and check the others.

    Yields:
        A line for each file.

    Raises:
        UsageError: If the licence does not permit a download.
        FileError: If a download fails, or the folder cannot be written.
        DataError: If a file is not the expected one.
    """
    source = manifest.source(name)
    if not source.files:
        yield f"{name}: generated, there is nothing to download"
        return
    if closed := [path for path in source.files if not manifest.files[path].downloadable]:
        raise UsageError(_explain_refusal(name, source.request_url, closed))
    archives: dict[str, list[str]] = {}
    for path in source.files:
        known = manifest.files[path]
        if is_complete(Source(files=(path,)), folder):
            yield f"{check_file(find_file(path, folder), known)}; not downloaded again"
        elif known.archive is not None:
            archives.setdefault(known.archive, []).append(path)
        else:
            assert known.address is not None
            with _name_unwritable(folder / path):
                _download(known.address, folder / path, known.sha256, report)
            yield f"{folder / path}: downloaded, sha256 correct"
    for archive, paths in archives.items():
        with _name_unwritable(folder), _temporary_folder(folder) as temporary:
            zipped = temporary / f"{archive}.zip"
            _download(manifest.archives[archive].address, zipped, manifest.archives[archive].sha256, report)
            for path in paths:
                _unpack(zipped, manifest.files[path], folder / path)
                yield f"{folder / path}: downloaded, sha256 correct"


def _explain_refusal(name: str, request_url: str | None, closed: list[str]) -> str:
    licence = f" ({DATASETS.get(name).licence})" if name in DATASETS.names() else ""
    where = f"request it at {request_url}" if request_url else "get it from its authors"
    return (
        f"{name} cannot be downloaded, because its licence does not permit it{licence}; "
        f"{where}, and put {', '.join(closed)} into the data folder"
    )


@contextmanager
def _name_unwritable(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileError(f"{target}: cannot be written: {error.strerror or error}") from None


@contextmanager
def _temporary_folder(folder: Path) -> Iterator[Path]:
    """Create a folder beside the data, so that a file can be moved from it in one step."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".") as temporary:
        yield Path(temporary)


def _download(address: str, target: Path, sha256: str | None, report: OnProgress) -> None:
    pooch.get_logger().setLevel("WARNING")  # it would announce every download on the terminal
    downloader = _Downloader(report)
    try:
        pooch.retrieve(address, known_hash=sha256, fname=target.name, path=target.parent, downloader=downloader)
    except UnrolledError:
        raise
    except requests.RequestException as error:
        raise FileError(f"{address}: cannot be downloaded: {_reason(error)}") from None
    except ValueError:
        raise DataError(
            f"{address}: expected the sha256 {str(sha256)[:12]}…, found another in {downloader.size:,} bytes; "
            "nothing was kept"
        ) from None


class _Downloader:
    """What pooch calls to write the content of an address to a file."""

    def __init__(self, report: OnProgress) -> None:
        self.report = report
        self.size = 0

    def __call__(self, address: str, path: str, _: object) -> None:
        _check_scheme(address)
        # some servers refuse the name of Python's libraries
        headers = {"User-Agent": f"unrolled/{version('unrolled')}", "Accept-Encoding": "identity"}
        Path(path).unlink()  # pooch created it without permissions for others
        with (
            requests.get(
                address, headers=headers, stream=True, timeout=_SECONDS, hooks={"response": _check_redirection}
            ) as answer,
            Path(path).open("xb") as file,
        ):
            answer.raise_for_status()
            length = answer.headers.get("Content-Length", "")
            for chunk in answer.iter_content(_CHUNK):
                self.size += len(chunk)
                if self.size > _MOST:
                    raise DataError(f"{address}: expected at most {_MOST:,} bytes, found more; nothing was kept")
                file.write(chunk)
                self.report(address, self.size, int(length) if length.isdecimal() else None)


def _check_scheme(address: str) -> None:
    if urlsplit(address).scheme not in _SCHEMES:
        raise FileError(f"{address}: not downloaded; expected an address that begins with https://")


def _check_redirection(answer: requests.Response, *_: Any, **__: Any) -> None:
    if answer.is_redirect:
        _check_scheme(urljoin(answer.url, answer.headers["Location"]))


def _reason(error: requests.RequestException) -> str:
    if error.response is not None:
        return f"{error.response.status_code} {error.response.reason}"
    cause: BaseException = error
    while cause.__context__ is not None:  # requests and urllib3 wrap the operating system's error
        cause = cause.__context__
    return str(cause) or type(cause).__name__


def _unpack(zipped: Path, known: DataFile, target: Path) -> None:
    """Move one file of an archive to its place."""
    assert known.member is not None
    try:
        with zipfile.ZipFile(zipped) as file:
            unpacked = Path(file.extract(known.member, zipped.parent))
    except (zipfile.BadZipFile, KeyError) as error:
        raise DataError(f"{zipped.name}: expected {known.member} in it, found {error}") from None
    check_file(unpacked, known)
    target.parent.mkdir(parents=True, exist_ok=True)
    unpacked.replace(target)
