"""The manifest: what the datasets' files hold, and where they are to be had."""

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
    """A zip file."""

    address: str
    sha256: str = Field(pattern="[0-9a-f]{64}")


class DataFile(Settings):
    """A file of a dataset, which may lie packed in the data folder."""

    bytes: int | None = None
    """Of the text, unpacked."""
    sha256: str | None = _Sha256
    """Of the text, unpacked."""
    compressed_sha256: str | None = _Sha256
    """Of the packed file as we know it; another packing of the same text is as good."""
    address: str | None = None
    """Where the text is to be had."""
    archive: str | None = None
    """The zip file that holds it,"""
    member: str | None = None
    """and its path in there."""

    @property
    def downloadable(self) -> bool:
        """Whether there is an address to fetch it from."""
        return self.address is not None or self.archive is not None


class Source(Settings):
    """What belongs to a dataset."""

    files: tuple[str, ...]
    """Paths below the data folder; none when it is generated."""
    counts: tuple[int, int, int] | None = None
    """Of train, dev and test: how many examples; of running text how many tokens."""
    request_url: str | None = None
    """Where to ask for it, when it is not ours to fetch."""


class Manifest(Settings):
    """What is known of all datasets."""

    sources: dict[str, Source]
    files: dict[str, DataFile]
    archives: dict[str, ZipArchive]

    def source(self, name: str) -> Source:
        """Look a dataset up.

        Args:
            name: of a dataset, or of what else the manifest lists.

        Returns:
            What belongs to it; nothing for a dataset that is generated.

        Raises:
            UnknownNameError: when there is no such name.
        """
        if name in self.sources:
            return self.sources[name]
        if name in DATASETS.names():
            return Source(files=())
        raise UnknownNameError("dataset", name, {*self.sources, *DATASETS.names()})

    def names(self) -> tuple[str, ...]:
        """Name all datasets and what else is listed, in alphabetical order."""
        return tuple(sorted({*self.sources, *DATASETS.names()}))


@cache
def read_manifest() -> Manifest:
    """Read the manifest of this package.

    Returns:
        The same one each time.
    """
    return Manifest(
        **tomllib.loads(files("unrolled.lab.data.collection").joinpath("manifest.toml").read_text(encoding="utf-8"))
    )


def is_complete(source: Source, folder: Path | None) -> bool:
    """Tell whether all files of a dataset are there.

    Args:
        source: the dataset's.
        folder: the data folder; the environment variable ``UNROLLED_DATA`` when left out.

    Returns:
        Whether they are; what is generated always is.
    """
    try:
        for name in source.files:
            find_file(name, folder)
    except FileError:
        return False
    return True
