"""Write a file whole or not at all: into a temporary file beside it, which then replaces it in one step."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

from unrolled.errors import FileError, kind_of

__all__ = ["atomic_write", "sync_folder", "write_fully"]


def atomic_write(path: str | os.PathLike[str], content: bytes, *, durable: bool = False, new: bool = False) -> None:
    """Write a file whole or not at all. If it fails, an existing file stays as it was.

    Args:
        path: An existing file is replaced; a symbolic link is followed.
        content: The whole content.
        new: Whether a file that is there by now is an error, also one that another process has just written.
        durable: Whether the file must survive a power cut: wait until it is on the disk. Then only one process may
            write this path at a time, and a temporary file that a killed process left is overwritten.

    Raises:
        FileError: If the path cannot be written.
    """
    if not isinstance(path, str | os.PathLike):
        raise FileError(f"cannot write to {kind_of(path)}; give the path of a file")
    shown = os.fspath(path)
    if not shown:
        raise FileError("cannot write: the path is empty; give the path of a file")
    try:
        target = Path(os.path.realpath(shown))
        if target.is_dir():
            raise FileError(f"cannot write {shown!r}: it is a folder; give the path of a file")
        if target.exists() and not target.is_file():  # replacing a device or a pipe would put a plain file there
            raise FileError(f"cannot write {shown!r}: it is not a regular file; give the path of a regular file")
        if not target.parent.is_dir():
            raise FileError(
                f"cannot write {shown!r}: the folder {str(target.parent)!r} does not exist; create it first"
            )
        temporary = f".{target.name}.tmp" if durable else f".unrolled-{secrets.token_hex(8)}.tmp"
        _write_and_replace(target.with_name(temporary), target, content, durable, new)
    except FileError:
        raise
    except FileExistsError as error:
        raise FileError(f"cannot write {shown!r}: it has been written meanwhile; give another path") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FileError(f"cannot write {shown!r}: {reason}") from error


def _write_and_replace(temporary: Path, target: Path, content: bytes, durable: bool, new: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if durable else os.O_EXCL) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(temporary, flags, 0o666)  # unlike tempfile's, readable as the user's umask allows
        try:
            write_fully(descriptor, content)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if new and _link(temporary, target):
            temporary.unlink()
        else:
            temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(target.parent)


def _link(temporary: Path, target: Path) -> bool:
    """Give a file its name if no file has it: FileExistsError. False where the file system has no links."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        return False
    return True


def write_fully(descriptor: int, content: bytes) -> None:
    """Write all bytes; one ``os.write`` may write only a part, as it does shortly before the disk is full."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
