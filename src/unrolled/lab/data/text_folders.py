"""Texts in files of their own, such as film reviews in ``pos/`` and ``neg/``: the folder's name is the label."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from unrolled.errors import DataError, FileError
from unrolled.lab.data.text_files import check_text, iter_lines

__all__ = ["FileText", "files_left_out", "read_text_folder"]


class FileText(NamedTuple):
    """A text that is a file."""

    name: str
    """The file's path below the folder."""
    text: str
    label: str | None
    """The name of the file's folder; None where all files lie in one folder."""


def read_text_folder(folder: Path) -> Iterator[FileText]:
    """Yield the texts of a folder of folders, each with the name of its folder; or of a folder of files, without one.

    Files and folders whose names begin with a point are left out.

    Args:
        folder: If it has folders with files, the files beside them are no texts.

    Raises:
        FileError: If there is no such folder, or it cannot be read.
        DataError: If no file is found, or one is not text in UTF-8.
    """
    if not folder.is_dir():
        raise FileError(f"no folder {folder}; give a folder of texts, or one with a folder of texts for each label")
    found = _find(folder)
    if not found:
        raise DataError(f"{folder}: no file in it, or in a folder in it; expected texts, one a file")
    for label, path in found:
        check_text(path)
        yield FileText(path.relative_to(folder).as_posix(), "\n".join(iter_lines(path)).strip(), label)


def files_left_out(folder: Path) -> list[str]:
    """Return the paths below the folder of files that :func:`read_text_folder` does not read: at other depths."""
    read = {path for _, path in _find(folder)}
    others = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path not in read)
    return sorted(path.as_posix() for path in others if not any(part.startswith(".") for part in path.parts))


def _find(folder: Path) -> list[tuple[str | None, Path]]:
    """Find the files that are texts, each with its label."""
    labelled = [(each.name, path) for each in _visible(folder) if each.is_dir() for path in _files(each)]
    return [*labelled] or [(None, path) for path in _files(folder)]


def _visible(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if not each.name.startswith("."))
    except OSError as error:
        raise FileError(f"{folder}: cannot be read: {error.strerror or error}") from None


def _files(folder: Path) -> list[Path]:
    return [each for each in _visible(folder) if each.is_file()]
