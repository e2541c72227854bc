"""The manifest of datasets: their files, checksums and sources; and the checks of what is on disk against it."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import Field

from unrolled.errors import DataError, FileError, UnknownNameError
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.datasets import DATASETS
from unrolled.lab.data.summary import split_size
from unrolled.lab.data.text_files import BROKEN_COMPRESSION, DECOMPRESSORS
from unrolled.lab.settings import Settings

__all__ = [
    "DataFile",
    "Manifest",
    "Source",
    "ZipArchive",
    "check_dataset",
    "check_file",
    "is_complete",
    "read_manifest",
]


_Sha256 = Field(None, pattern="[0-9a-f]{64}")


class ZipArchive(Settings):
    """An archive that contains files of a dataset."""

    address: str
    sha256: str = Field(pattern="[0-9a-f]{64}")


class DataFile(Settings):
    """A file of a dataset; in the data folder it may be compressed."""

    bytes: int | None = None
    """The size of the uncompressed file."""
    sha256: str | None = _Sha256
    """The checksum of the uncompressed file."""
    compressed_sha256: str | None = _Sha256
    """The checksum of one compressed version of the file, to avoid decompressing it; other versions are correct too."""
    address: str | None = None
    """Where to download the uncompressed file."""
    archive: str | None = None
    """The name of the archive that contains the file."""
    member: str | None = None
    """The path of the file in the archive."""

    @property
    def downloadable(self) -> bool:
        """Whether the licence permits a download, so that an address is known."""
        return self.address is not None or self.archive is not None


class Source(Settings):
    """The files of a dataset."""

    files: tuple[str, ...]
    """Paths in the data folder; none for a generated dataset."""
    counts: tuple[int, int, int] | None = None
    """The number of examples of train, dev and test; the number of tokens of running text."""
    request_url: str | None = None
    """Where to request the files, if the licence does not permit a download."""


class Manifest(Settings):
    """All datasets, and other sources such as word vectors."""

    sources: dict[str, Source]
    files: dict[str, DataFile]
    archives: dict[str, ZipArchive]

    def source(self, name: str) -> Source:
        """Return the files of a source; UnknownNameError if there is none of that name."""
        if name in self.sources:
            return self.sources[name]
        if name in DATASETS.names():
            return Source(files=())
        raise UnknownNameError("dataset", name, {*self.sources, *DATASETS.names()})

    def names(self) -> tuple[str, ...]:
        """Return the names of all sources, in alphabetical order."""
        return tuple(sorted({*self.sources, *DATASETS.names()}))


@cache
def read_manifest() -> Manifest:
    """Read the manifest of this package."""
    text = files("unrolled.lab.data.collection").joinpath("manifest.toml").read_text(encoding="utf-8")
    return Manifest(**tomllib.loads(text))


def is_complete(source: Source, folder: Path | None) -> bool:
    """Tell whether all files of a source are in the data folder (``UNROLLED_DATA`` if None)."""
    try:
        for name in source.files:
            find_file(name, folder)
    except FileError:
        return False
    return True


def check_dataset(name: str, manifest: Manifest, folder: Path | None) -> Iterator[str]:
    """Check one dataset in the data folder (``UNROLLED_DATA`` if None).

    Yields:
        A line for each check that succeeds.

    Raises:
        DataError: At the first check that fails.
        FileError: If a file is missing or cannot be read.
    """
    source = manifest.source(name)
    for path in source.files:
        yield check_file(find_file(path, folder), manifest.files[path])
    if name not in DATASETS.names():
        return
    corpus = DATASETS.get(name)().read(folder)
    counts = tuple(split_size(split) for split in corpus.splits.values())
    found = f"{_listed(counts)} in train / dev / test"
    if source.counts is None:
        yield f"{name}: {found}; a generated dataset has no expected counts"
        return
    if counts != source.counts:
        raise DataError(f"{name}: expected {_listed(source.counts)} in train / dev / test, found {_listed(counts)}")
    yield f"{name}: {found}, as expected"


def check_file(path: Path, known: DataFile) -> str:
    """Check a file; if it is compressed in another way than the known version, check its uncompressed content.

    Returns:
        A line that says what is correct.

    Raises:
        DataError: If its checksum is another one, or it is damaged.
        FileError: If it cannot be read.
    """
    if known.sha256 is None:
        return f"{path}: found, no checksum is known"
    try:
        if path.suffix in DECOMPRESSORS and known.compressed_sha256 == _sha256_and_size(path, Path.open)[0]:
            return f"{path}: sha256 correct"
        found, size = _sha256_and_size(path, DECOMPRESSORS.get(path.suffix, Path.open))
    except BROKEN_COMPRESSION as error:
        raise DataError(f"{path}: expected a whole {path.suffix} file, found {error}; download it again") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    if found != known.sha256:
        raise DataError(
            f"{path}: expected {known.bytes:,} bytes with the sha256 {known.sha256[:12]}…, "
            f"found {size:,} with {found[:12]}…; the file is damaged, or another version"
        )
    return f"{path}: sha256 correct"


def _sha256_and_size(path: Path, opener: Callable[..., Any]) -> tuple[str, int]:
    with opener(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()


def _listed(counts: tuple[int, ...]) -> str:
    return " / ".join(f"{number:,}" for number in counts)
