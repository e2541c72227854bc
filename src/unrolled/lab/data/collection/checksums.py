"""Checking that a dataset is what it should be: its files' checksums, then the number of its examples."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from unrolled.errors import DataError, FileError
from unrolled.lab.data.collection.manifest import DataFile, Manifest
from unrolled.lab.data.datasets import DATASETS
from unrolled.lab.data.summary import split_size
from unrolled.lab.data.text_files import find_file

__all__ = ["check_dataset", "check_file", "sha256_and_size"]

_CHUNK = 2**20
_OPENERS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open}


def check_dataset(name: str, manifest: Manifest, folder: Path | None) -> Iterator[str]:
    """Check one dataset.

    Args:
        name: the dataset's.
        manifest: what it should be.
        folder: the data folder; the environment variable ``UNROLLED_DATA`` when left out.

    Yields:
        What was found right, a line each.

    Raises:
        DataError: at the first that is not right.
    """
    source = manifest.source(name)
    for path in source.files:
        yield check_file(find_file(path, folder), manifest.files[path])
    if name not in DATASETS.names():
        return
    corpus = DATASETS.get(name)().read(folder)
    found = tuple(split_size(split) for split in (corpus.train, corpus.dev, corpus.test))
    if source.counts is None:
        yield f"{name}: {_listed(found)}, generated here: there is no count to compare"
        return
    if found != source.counts:
        raise DataError(f"{name}: expected {_listed(source.counts)} in train / dev / test, found {_listed(found)}")
    yield f"{name}: {_listed(found)} in train / dev / test, as it should be"


def check_file(path: Path, wanted: DataFile) -> str:
    """Check one file; packed otherwise than we know it, it is judged by the text in it.

    Args:
        path: where it lies.
        wanted: what it should be.

    Returns:
        What was found right.

    Raises:
        DataError: when its checksum is another one, or it is damaged.
        FileError: when it cannot be read.
    """
    if wanted.sha256 is None:
        return f"{path}: there, no checksum is known"
    try:
        if path.suffix in _OPENERS and wanted.compressed_sha256 == sha256_and_size(path.open("rb"))[0]:
            return f"{path}: sha256 right"
        found, size = sha256_and_size(_OPENERS.get(path.suffix, Path.open)(path, "rb"))
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: expected a whole {path.suffix} file, found {error}; fetch it again") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    if found != wanted.sha256:
        raise DataError(
            f"{path}: expected {wanted.bytes:,} bytes with the sha256 {wanted.sha256[:12]}…, "
            f"found {size:,} with {found[:12]}…; the file is damaged, or of another version"
        )
    return f"{path}: sha256 right"


def sha256_and_size(file: Any) -> tuple[str, int]:
    """Read a file to its end, and close it.

    Args:
        file: open for reading bytes.

    Returns:
        Its sha256 in hexadecimal digits, and how many bytes it has.
    """
    total, size = hashlib.sha256(), 0
    with file:
        while chunk := file.read(_CHUNK):
            total.update(chunk)
            size += len(chunk)
    return total.hexdigest(), size


def _listed(counts: tuple[int, ...]) -> str:
    return " / ".join(f"{number:,}" for number in counts)
