"""Files that survive being killed at any moment, power cuts included: whole and on the disk, or not there."""

from __future__ import annotations

import os
from pathlib import Path

from unrolled.errors import FileError

__all__ = ["append", "sync_folder", "write_durably"]

_TEMPORARY = ".tmp"


def write_durably(path: Path, content: bytes) -> None:
    """Write a file beside its place, wait for the disk, move it there, and wait for the folder.

    Args:
        path: where to; an existing file is replaced.
        content: its bytes.

    Raises:
        FileError: when it cannot be written, or the disk is full; what stood there before still stands.
    """
    beside = path.with_name(f".{path.name}{_TEMPORARY}")
    try:
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)  # the umask has its say
            try:
                _write_all(descriptor, content)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from None


def append(descriptor: int, content: bytes, path: Path) -> None:
    """Add bytes to a file that is open for appending.

    Args:
        descriptor: of the file.
        content: what to add.
        path: its name, for the error.

    Raises:
        FileError: when not all could be written.
    """
    try:
        _write_all(descriptor, content)
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from None


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk.

    Args:
        folder: which.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, content: bytes) -> None:
    """A write may take only a part, as it does shortly before the disk is full; the next one then says why."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
