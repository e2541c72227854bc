"""What a user names: runs, files of texts, datasets of Hugging Face's library; checked before torch is loaded."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from unrolled.errors import DataError, FileError, UsageError
from unrolled.extras import require_extra
from unrolled.registry import names_in_source

__all__ = [
    "HUB_PREFIX",
    "check_named",
    "check_no_file",
    "check_no_folder",
    "check_run",
    "check_source",
    "given_twice",
    "is_hub_dataset",
]

HUB_PREFIX = "hf:"
"""Marks a dataset of Hugging Face's library among names of datasets and files."""


def check_run(path: Path) -> None:
    """Say that a run folder does not exist, or is a file, before torch is loaded; FileError or DataError."""
    if not path.exists():
        raise FileError(f"no run folder {path}; give a folder that `unrolled train` wrote")
    check_no_file(path)


def check_no_file(folder: Path) -> None:
    """Refuse a file where a run folder is expected."""
    if folder.is_file():
        raise DataError(
            f"{folder} is a file, not a run folder, which `unrolled train` writes; weights of a file are opened by "
            "unrolled explain --weights, or in Python by unrolled.explain(model, tokens)"
        )


def is_hub_dataset(name: str) -> bool:
    """Tell whether a name is ``hf:NAME`` or ``hf:FOLDER``, a dataset of Hugging Face's library."""
    return name.startswith(HUB_PREFIX)


def check_named(name: str) -> None:
    """Refuse an empty name, as of a variable of a shell that is not set; it would be the current folder."""
    if not name:
        raise UsageError("the name of a file is empty; give a file, a dataset, hf:NAME or hf:FOLDER")


def check_no_folder(path: Path) -> None:
    """Refuse a folder where a file of texts is expected."""
    if path.is_dir():
        raise FileError(
            f"{path} is a folder; give a file, hf:{path} for a dataset that save_to_disk wrote, or the table that "
            f"`unrolled data table {shlex.quote(str(path))} --out texts.csv` makes of texts in files of their own"
        )


def check_source(name: str) -> None:
    """Say that a file of texts cannot be read before torch is loaded; a dataset of the library is looked up later."""
    check_named(name)
    path = Path(name)
    if is_hub_dataset(name):
        require_extra("hf", name)
        return
    check_no_folder(path)
    if not path.exists() and name.partition("(")[0] in names_in_source("unrolled.lab.data.datasets"):
        raise UsageError(f"{name} is a dataset to train on; expected a file, hf:NAME or hf:FOLDER")
    try:
        path.open("rb").close()
    except OSError as error:
        raise FileError(f"{name}: cannot be read: {error.strerror or error}") from None


def given_twice(paths: Iterable[Path]) -> dict[Path, int]:
    """Return how often a file is given that is given more than once, by this name or another one; the first stands."""
    named: dict[Path, Path] = {}
    times: Counter[Path] = Counter()
    for path in paths:
        file = path if is_hub_dataset(str(path)) else path.resolve()
        times[named.setdefault(file, path)] += 1
    return {path: count for path, count in times.items() if count > 1}
