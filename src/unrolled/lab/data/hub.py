"""Datasets of Hugging Face's library ``datasets``, as ``hf:NAME``, ``hf:NAME:CONFIGURATION`` or ``hf:FOLDER``.

Texts and labels are read by the rules of JSON lines. Nothing is downloaded: a dataset lies in a folder, or in the
library's own cache, where ``unrolled data fetch hf:NAME`` puts it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from unrolled.errors import DataError, FileError, UsageError, first_line
from unrolled.extras import require_extra
from unrolled.lab.data.corpus import Corpus
from unrolled.lab.data.formats import ReadSplit
from unrolled.lab.data.formats.base import Files
from unrolled.lab.data.formats.labelled_text import JsonLines
from unrolled.lab.data.reading import PLAIN, InvalidRow, Reading
from unrolled.named_sources import HUB_PREFIX

__all__ = [
    "fetch_hub_dataset",
    "hub_files",
    "hub_rows",
    "is_hub_object",
    "read_hub_dataset",
    "read_hub_split",
]

C = TypeVar("C", bound=Corpus[Any])

_SAVED = ("dataset_dict.json", "state.json")
"""Of a folder that the library's ``save_to_disk`` wrote."""
_SPLITS = {"train": ("train",), "dev": ("validation", "valid", "dev", "val"), "test": ("test",)}
_OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")
_UNLABELLED = -1
"""The label of test examples whose labels are kept secret."""


def is_hub_object(data: object) -> bool:
    """Tell whether this is a dataset of the library, in memory."""
    return type(data).__module__.partition(".")[0] == "datasets"


def hub_files(data: str) -> dict[str, Path]:
    """Return the files of a dataset that lies in a folder, by their names in it."""
    folder = Path(data.removeprefix(HUB_PREFIX))
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*.arrow"))} if folder.is_dir() else {}


def read_hub_dataset(data: object, kind: type[C], reading: Reading) -> C:
    """Read a dataset as a corpus.

    Args:
        data: A name of the form above, a ``Dataset`` or a ``DatasetDict``.
        kind: The class of corpus wanted.
        reading: Which columns hold the texts and the labels.

    Raises:
        UsageError: If the library is not installed, or the corpus is of a kind that has no labelled texts.
        FileError: If the dataset is neither in the folder nor in the cache.
        DataError: If it cannot be told which columns to read, or an example is none.
    """
    _check_kind(data, kind)
    splits = _splits(data)
    tables = {split: splits[name] for split, names in _SPLITS.items() for name in names if name in splits}
    if "train" not in tables:
        raise DataError(f"{_title(data)} has the splits {', '.join(map(str, splits))}; expected one named train")
    reader = _Rows(_title(data), tables, reading)
    left_out = [split for split in ("dev", "test") if split in tables and reader.is_unlabelled(split, kind)]
    paths = {split: (reader.path(split),) for split in tables if split not in left_out}
    reader.notes += [f"{reader.path(split)}: left out, since its examples have no labels" for split in left_out]
    corpus = reader.read(Files(paths["train"], paths.get("dev", ()), paths.get("test", ())), kind)
    return cast("C", corpus)


def read_hub_split(data: str, kind: type[Corpus[Any]], known: Sequence[str], split: str, reading: Reading) -> ReadSplit:
    """Read one split of a dataset, for a model that was trained on another corpus of this kind.

    ``known`` are the classes of that corpus in their order; another class is a DataError.
    """
    _check_kind(data, kind)
    rows, name = _one_split(data, split, reading)
    path = rows.path(name)
    if rows.is_unlabelled(name, kind):
        raise DataError(f"{path}: its examples have no labels; pass another --split, or predict them: unrolled predict")
    examples = rows.split((path,), kind, known)
    return ReadSplit(examples, (f"{path}: {len(examples):,} examples", *rows.notes))


def hub_rows(data: str, split: str) -> tuple[Path, Callable[[], Iterator[tuple[int, Mapping[str, Any]] | InvalidRow]]]:
    """Return what stands for the file of one split in messages, and what reads its rows, counted from 1."""
    rows, name = _one_split(data, split, PLAIN)
    path = rows.path(name)
    return path, partial(rows.objects, path)


def _one_split(data: str, split: str, reading: Reading) -> tuple[_Rows, str]:
    """Find a split by its name or a name of the same meaning; the only split of a dataset stands for any."""
    splits = _splits(data)
    names = _SPLITS.get(split, (split,))
    found = [name for name in names if name in splits] or ([*splits] if len(splits) == 1 else [])
    if not found:
        raise DataError(f"{data} has the splits {', '.join(map(str, splits))}, and none named {split}; pass --split")
    return _Rows(_title(data), {found[0]: splits[found[0]]}, reading), found[0]


def _splits(data: object) -> Mapping[str, Any]:
    found = _open_hub_dataset(data) if isinstance(data, str) else data
    return found if isinstance(found, Mapping) else {"train": found}


def _check_kind(data: object, kind: type[Corpus[Any]]) -> None:
    if kind not in JsonLines.kinds:
        names = ", ".join(each.__name__.lower() for each in JsonLines.kinds)
        raise UsageError(
            f"{_title(data)} is read as labelled texts, for {names}; give files for {kind.__name__.lower()}"
        )


def _open_hub_dataset(data: str) -> Any:
    """Open a dataset from a folder or from the library's cache, without the network."""
    name, _, configuration = data.removeprefix(HUB_PREFIX).partition(":")
    folder = Path(name)
    if not name:
        raise UsageError(f"--data is {data}; expected hf:NAME, hf:NAME:CONFIGURATION or hf:FOLDER")
    with _library(online=False) as datasets:
        try:
            if any((folder / file).is_file() for file in _SAVED):
                return datasets.load_from_disk(name)
            return datasets.load_dataset(name, configuration or None)
        except Exception as error:  # the library raises errors of many packages
            hint = "check the folder" if folder.exists() else f"fetch it: unrolled data fetch {data}"
            raise FileError(f"{data}: cannot be read: {first_line(error)}; {hint}") from error


def fetch_hub_dataset(data: str) -> dict[str, int]:
    """Download a dataset into the library's cache; return the number of examples of each split."""
    name, _, configuration = data.removeprefix(HUB_PREFIX).partition(":")
    with _library(online=True) as datasets:
        try:
            found = datasets.load_dataset(name, configuration or None)
        except Exception as error:  # as above
            raise FileError(f"{data}: cannot be fetched: {first_line(error)}") from error
    return {str(split): len(table) for split, table in found.items()}


@contextmanager
def _library(online: bool) -> Iterator[Any]:
    """Import the library; it reads from the environment whether it may use the network, when it is imported."""
    require_extra("hf", "--data hf:")
    if not online:
        for variable in _OFFLINE:
            os.environ.setdefault(variable, "1")
    import datasets

    before = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield datasets
    finally:
        if not before:
            datasets.enable_progress_bars()


def _title(data: object) -> str:
    return data if isinstance(data, str) else f"{HUB_PREFIX}{type(data).__name__}"


class _Rows(JsonLines):
    """The rows of a dataset's splits, read as JSON lines are."""

    def __init__(self, title: str, tables: Mapping[str, Any], reading: Reading) -> None:
        super().__init__(reading)
        self._title, self._tables = title, tables
        self._keys: dict[Path, tuple[str, str]] = {}

    def path(self, split: str) -> Path:
        """Return what stands for the file of a split, in messages."""
        return Path(f"{self._title}[{split}]")

    def keys(self, path: Path, kind: type[Corpus[Any]]) -> tuple[str, str]:
        """Return the keys of the text and of the label, which are found and noted once for each split."""
        if path not in self._keys:
            self._keys[path] = super().keys(path, kind)
        return self._keys[path]

    def is_unlabelled(self, split: str, kind: type[Corpus[Any]]) -> bool:
        """Tell whether all labels of a split are the one that stands for none."""
        first = next(iter(self._tables))  # the training split, whose labels say which column holds them
        (_, key), table = self.keys(self.path(first), kind), self._tables[split]
        return key not in table.column_names or (len(table) > 0 and set(table.unique(key)) <= {_UNLABELLED, None})

    def objects(self, path: Path) -> Iterator[tuple[int, Mapping[str, Any]] | InvalidRow]:
        """Yield the rows of a split, with the names of its classes in place of their numbers."""
        split = str(path).rpartition("[")[2].rstrip("]")
        table = self._tables[split]
        names = {key: each.names for key, each in table.features.items() if getattr(each, "names", None)}
        for number, row in enumerate(table, 1):
            yield number, {key: _named(value, names.get(key)) for key, value in row.items()}


def _named(value: Any, names: list[str] | None) -> Any:
    if names is None or not isinstance(value, int) or not 0 <= value < len(names):
        return value
    return names[value]
