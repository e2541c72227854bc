"""The folder of the datasets, and the files in it."""

from __future__ import annotations

import os
from pathlib import Path

from unrolled.errors import FileError, UsageError
from unrolled.lab.data.text_files import DECOMPRESSORS

__all__ = ["MissingDataError", "data_folder", "find_file"]

_FOLDER_VARIABLE = "UNROLLED_DATA"


class MissingDataError(FileError):
    """The data folder does not contain a file."""


def data_folder(given: Path | None) -> Path | None:
    """Return the data folder that was given, or else that of the environment; None where neither names one."""
    named = os.environ.get(_FOLDER_VARIABLE)
    return given or (Path(named) if named else None)


def find_file(name: str, folder: Path | None = None) -> Path:
    """Return the first of ``name``, ``name.xz`` and ``name.gz`` that exists in the data folder.

    Args:
        name: A path inside the data folder: ``"sst/train.txt"``.
        folder: The data folder; the environment variable ``UNROLLED_DATA`` if None.

    Raises:
        UsageError: If no data folder is given.
        MissingDataError: If the folder contains none of the three files.
    """
    where = data_folder(folder)
    if where is None:
        raise UsageError(
            f"no data folder; pass --data-dir, or set the variable {_FOLDER_VARIABLE}, "
            f"to the folder that contains {name}; `unrolled data list` shows the datasets, and `unrolled data "
            "describe NAME` where one comes from"
        )
    for suffix in ("", *DECOMPRESSORS):
        path = where / (name + suffix)
        if path.is_file():
            return path
    raise MissingDataError(f"no {name} in {where}; expected {name}, {name}.xz or {name}.gz")
