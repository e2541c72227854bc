"""Check a dataset: the checksums of its files, then the number of its examples."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from unrolled.errors import DataError, FileError
from unrolled.lab.data.collection.manifest import DataFile, Manifest
from unrolled.lab.data.datasets import DATASETS
from unrolled.lab.data.summary import split_size
from unrolled.lab.data.text_files import BROKEN_COMPRESSION, DECOMPRESSORS, find_file

__all__ = ["check_dataset", "check_file"]


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
    counts = tuple(split_size(split) for split in (corpus.train, corpus.dev, corpus.test))
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
