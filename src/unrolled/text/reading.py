"""Finding data files and reading their lines, plain or packed."""

from __future__ import annotations

import gzip
import lzma
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unrolled.errors import DataError, FileError, UsageError

__all__ = ["FOLDER_VARIABLE", "find_file", "read_lines"]

FOLDER_VARIABLE = "UNROLLED_DATA"
_OPENERS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open}


def find_file(name: str, folder: Path | None = None) -> Path:
    """Find a data file: plain, or packed with xz or gzip.

    Args:
        name: its path inside the data folder, without the packing's suffix: ``"sst/train.txt"``.
        folder: the data folder; the environment variable ``UNROLLED_DATA`` when left out.

    Returns:
        The path of the first of ``name``, ``name.xz`` and ``name.gz`` that exists.

    Raises:
        UsageError: when no folder was named.
        FileError: when the folder holds none of the three.
    """
    if folder is None:
        variable = os.environ.get(FOLDER_VARIABLE)
        if not variable:
            raise UsageError(
                f"no data folder; expected --data-dir, or the variable {FOLDER_VARIABLE}, "
                f"to name the folder that holds {name}"
            )
        folder = Path(variable)
    for suffix in ("", *_OPENERS):
        path = folder / (name + suffix)
        if path.is_file():
            return path
    raise FileError(f"no {name} in {folder}; expected {name}, {name}.xz or {name}.gz")


def read_lines(path: Path) -> list[str]:
    r"""Read a UTF-8 text file's lines, without their ends.

    Lines end at ``\n`` alone: texts hold other characters that ``str.splitlines`` would break at (U+0085).

    Args:
        path: a plain file, or one packed as its suffix ``.xz`` or ``.gz`` says.

    Returns:
        The lines; an empty file has none.

    Raises:
        FileError: when it cannot be opened or read.
        DataError: when it is truncated, not packed as its suffix says, or not UTF-8.
    """
    opener: Callable[..., Any] = _OPENERS.get(path.suffix, Path.open)
    try:
        with opener(path, "rb") as file:
            text: str = file.read().decode("utf-8")
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: expected a whole {path.suffix} file; {error}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected UTF-8 text; byte {error.start} is not") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]
