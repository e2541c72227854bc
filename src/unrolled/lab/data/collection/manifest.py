"""The manifest lists the files of the datasets, their checksums, and where to get them."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import Field

from unrolled.errors import FileError, UnknownNameError
from unrolled.lab.data.datasets import DATASETS
from unrolled.lab.data.text_files import find_file
from unrolled.lab.settings import Settings

__all__ = ["DataFile", "Manifest", "Source", "ZipArchive", "is_complete", "read_manifest"]

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
