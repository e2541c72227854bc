"""Load a corpus of the kind that a task trains on: a dataset by its name, or the user's own files."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from unrolled.errors import UnknownNameError, UsageError
from unrolled.lab.data.corpus import Corpus, Dataset
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.datasets import DATASETS
from unrolled.lab.data.formats import read_files
from unrolled.lab.data.hub import is_hub_object, read_hub_dataset
from unrolled.lab.data.reading import PLAIN, Reading
from unrolled.named_sources import check_no_folder, is_hub_dataset

__all__ = ["configured_dataset", "dataset_files", "dataset_names", "is_dataset", "load_dataset"]

C = TypeVar("C", bound=Corpus[Any])

_WITH_SETTINGS = re.compile(r"([\w-]+)\((.*)\)")


def load_dataset(
    data: Any,
    kind: type[C],
    folder: Path | None = None,
    *,
    dev: Sequence[Path] = (),
    test: Sequence[Path] = (),
    format: str | None = None,
    reading: Reading = PLAIN,
) -> C:
    """Read a dataset by its name, or training files.

    Args:
        data: A name of ``unrolled.lab.data.datasets``, alone or with settings, as ``dyck(2,8,seed=3)``; the paths of
            training files in a format of ``unrolled.lab.data.formats``; ``hf:NAME``, a folder of Hugging Face's library
            as ``hf:FOLDER``, or one of its ``Dataset`` and ``DatasetDict``.
        kind: The class of corpus wanted.
        folder: The data folder; the environment variable ``UNROLLED_DATA`` if None.
        dev: Files that choose the best epoch, beside training files; a tenth of the training examples if empty.
        test: Files to test on, beside training files; a tenth of the training examples if empty.
        format: The name of the files' format, if their suffix does not tell it.
        reading: What else the user says about the files.

    Raises:
        UnknownNameError: If there is no dataset of that name.
        UsageError: If the settings cannot be read, or the dataset is of another kind.
        FileError: If a file is missing or cannot be read.
        DataError: If the format does not allow what a file contains.

    Example:
        >>> from unrolled.lab.data.corpus import Classification
        >>> len(load_dataset("negation", Classification).test)
        200
    """
    if is_hub_object(data):
        return _from_hub(data, kind, (*dev, *test), format, reading)
    names = [data] if isinstance(data, str) else [str(name) for name in data]
    if names and is_hub_dataset(names[0]):
        return _from_hub(names[0], kind, (*map(Path, names[1:]), *dev, *test), format, reading)
    if names and is_dataset(names[0]):
        about_files = {"--skip-invalid": reading.skip_invalid, "--format": format is not None}
        if given := (*reading.columns, *(option for option, is_given in about_files.items() if is_given)):
            raise UsageError(f"{given[0]} is for your own files, and {names[0]} is a dataset; leave it out")
        return _load_by_name(names, kind, folder, (*dev, *test))
    if other := next((name for name in names[1:] if is_dataset(name) and not Path(name).exists()), None):
        raise UsageError(f"{other} is a dataset, and {names[0]} is a file; give files alone, or one dataset alone")
    paths = [Path(name) for name in names]
    for path in (*paths, *dev, *test):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UsageError(f"{path} is a pipe or a device, which can be read only once: write it to a file first")
        check_no_folder(path)
    if len(paths) == 1 and not paths[0].suffix and not paths[0].exists():
        raise UnknownNameError("dataset", _split_settings(names[0])[0], dataset_names(kind))
    return read_files(kind, paths, dev, test, format=format, reading=reading)


def _from_hub(data: object, kind: type[C], files: Sequence[Path], format: str | None, reading: Reading) -> C:
    if files:
        raise UsageError(f"a dataset of Hugging Face has its own splits; expected no other file, found {files[0]}")
    if format is not None:
        raise UsageError(f"--format is {format}, but a dataset of Hugging Face has columns of its own; leave it out")
    return read_hub_dataset(data, kind, reading)


def is_dataset(data: str) -> bool:
    """Tell whether ``data`` is a dataset's name, alone or with settings: ``sst2``, ``dyck(2,8)``."""
    return _split_settings(data)[0] in DATASETS.members


def configured_dataset(data: str) -> Dataset:
    """Create a dataset by its name, alone or with settings: ``sst2``, ``dyck(2,8)``; errors as in load_dataset."""
    name, settings = _split_settings(data)
    return _configure(DATASETS.get(name), data, settings)


def dataset_files(data: str, folder: Path | None) -> dict[str, Path]:
    """Return the files of a dataset in the data folder, by their names in it; none for one that is generated."""
    from unrolled.lab.data.collection.manifest import read_manifest

    name = _split_settings(data)[0]
    return {path: find_file(path, folder) for path in read_manifest().source(name).files}


def dataset_names(kind: type[Corpus[Any]]) -> list[str]:
    """List the names of the datasets of a kind, or of a subclass of it, in alphabetical order."""
    return [name for name, dataset in DATASETS.members.items() if issubclass(dataset.kind, kind)]


def _load_by_name(names: Sequence[str], kind: type[C], folder: Path | None, files: Sequence[Path]) -> C:
    dataset = DATASETS.get(_split_settings(names[0])[0])
    if others := [*names[1:], *map(str, files)]:
        raise UsageError(f"{names[0]} is a dataset with its own splits; expected no other file, found {others[0]}")
    if not issubclass(dataset.kind, kind):
        raise UsageError(
            f"{dataset.name} is a corpus for {dataset.kind.__name__.lower()}; expected one for "
            f"{kind.__name__.lower()}: {', '.join(dataset_names(kind)) or 'no dataset is, name files'}"
        )
    corpus = configured_dataset(names[0]).read(folder)
    assert isinstance(corpus, kind)
    return corpus


def _split_settings(data: str) -> tuple[str, str]:
    """Return the name, and the text in the brackets after it."""
    found = _WITH_SETTINGS.fullmatch(data)
    return (found[1], found[2]) if found else (data, "")


def _configure(dataset: type[Dataset], data: str, settings: str) -> Dataset:
    """Create a dataset from the settings in brackets; each must have its declared type."""
    takes = inspect.signature(dataset)
    if settings and not takes.parameters:
        raise UsageError(f"{data}: {dataset.name} has no settings; pass its name alone")
    expected = f"expected values of {', '.join(takes.parameters)}, as {dataset.name}(2,seed=3)"
    try:
        values, by_name = _parse_settings(settings)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # what Python raises for text that is not Python
        raise UsageError(f"{data}: the settings cannot be read; {expected}") from None
    for key in by_name:
        if key not in takes.parameters:
            raise UnknownNameError(f"setting of {dataset.name}", key, takes.parameters)
    try:
        chosen = takes.bind(*values, **by_name).arguments
    except TypeError as error:
        raise UsageError(f"{data}: {error}; {expected}") from None
    types = get_type_hints(dataset.__init__)
    for key, value in chosen.items():
        try:
            TypeAdapter(types[key]).validate_python(value, strict=True)
        except ValidationError as error:
            wanted = error.errors(include_url=False)[0]["msg"].removeprefix("Input should be ")
            raise UsageError(f"{data}: {key} is {value!r}; expected {wanted}") from None
    return dataset(**chosen)


def _parse_settings(settings: str) -> tuple[list[Any], dict[str, Any]]:
    """Parse ``2,seed=3`` as the arguments of a call; only literals are allowed, and nothing is executed."""
    call = ast.parse(f"_({settings})", mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError(settings)
    by_name = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    return [ast.literal_eval(each) for each in call.args], by_name
