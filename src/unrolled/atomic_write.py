"""Write a file whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from unrolled.errors import FileError

__all__ = ["write_whole"]


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file beside its place, then move it there in one step.

    Args:
        path: where to; an existing file is replaced, a link is followed.
        content: its bytes.

    Raises:
        FileError: when the path cannot be written; what stood there before still stands.
    """
    shown = os.fspath(path)
    try:
        target = Path(os.path.realpath(shown))
        if target.is_dir():
            raise FileError(f"cannot write {shown!r}: it is a folder; expected the path of a file")
        if target.exists() and not target.is_file():
            # Replacing a device or a pipe would put a plain file in its stead.
            raise FileError(f"cannot write {shown!r}: it is not a plain file")
        if not target.parent.is_dir():
            raise FileError(f"cannot write {shown!r}: there is no folder {str(target.parent)!r}")
        beside = target.with_name(f".unrolled-{secrets.token_hex(8)}.tmp")
        try:
            # Plain creation, unlike tempfile's, leaves the file readable to whom the user's umask says.
            with beside.open("xb") as file:
                file.write(content)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except FileError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FileError(f"cannot write {shown!r}: {reason}") from error
