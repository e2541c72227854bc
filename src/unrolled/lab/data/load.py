"""Finding a corpus: a dataset by its name, or files of the user's, of the kind that a task learns."""

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
from unrolled.lab.data.datasets import DATASETS
from unrolled.lab.data.formats import read_files

__all__ = ["dataset_names", "is_dataset", "load_dataset"]

C = TypeVar("C", bound=Corpus[Any])

_WITH_SETTINGS = re.compile(r"([\w-]+)\((.*)\)")


def load_dataset(
    data: str | Sequence[str | Path],
    kind: type[C],
    folder: Path | None = None,
    *,
    dev: Sequence[Path] = (),
    test: Sequence[Path] = (),
    format: str | None = None,
) -> C:
    """Read a dataset by its name, or files of the user's.

    Args:
        data: a member of ``unrolled.lab.data.datasets``, alone or with settings of its own, as ``dyck(2,8,seed=3)``; or
            the paths of training files, of a format of ``unrolled.lab.data.formats``.
        kind: the class of corpus wanted.
        folder: where the datasets' folders lie; the environment variable ``UNROLLED_DATA`` when left out.
        dev: files that choose the best epoch, beside training files; a tenth of these when left out.
        test: files looked at once, at the end; likewise.
        format: the name of the files' format, where their suffix does not say it.

    Returns:
        The corpus.

    Raises:
        UsageError: when the dataset is of another kind, has no such settings, or comes with files although it has
            splits of its own.
        UnknownNameError: when there is neither a dataset nor a file of that name.

    Example:
        >>> from unrolled.lab.data.corpus import Classification
        >>> len(load_dataset("negation", Classification).test)
        200
    """
    names = [data] if isinstance(data, str) else [str(name) for name in data]
    if names and is_dataset(names[0]):
        return _named(names, kind, folder, (*dev, *test))
    paths = [Path(name) for name in names]
    if len(paths) == 1 and not paths[0].suffix and not paths[0].exists():
        raise UnknownNameError("dataset", _parts(names[0])[0], dataset_names(kind))
    return read_files(kind, paths, dev, test, format=format)


def _named(names: Sequence[str], kind: type[C], folder: Path | None, files: Sequence[Path]) -> C:
    """Read a dataset of the zoo."""
    name, settings = _parts(names[0])
    source = DATASETS.get(name)
    if others := [*names[1:], *map(str, files)]:
        raise UsageError(
            f"{names[0]} is a dataset with splits of its own; expected no file beside it, found {others[0]}"
        )
    if not issubclass(source.kind, kind):
        raise UsageError(
            f"{source.name} is a corpus for {source.kind.__name__.lower()}; expected one for {kind.__name__.lower()}: "
            f"{', '.join(dataset_names(kind)) or 'none has a name, name files'}"
        )
    corpus = _made(source, names[0], settings).read(folder)
    assert isinstance(corpus, kind)
    return corpus


def is_dataset(data: str) -> bool:
    """Tell a dataset's name from a file's.

    Args:
        data: ``sst2``, ``dyck(2,8)``, ``reviews.tsv``.

    Returns:
        Whether it is a member of ``unrolled.lab.data.datasets``, alone or with settings.
    """
    return _parts(data)[0] in DATASETS.members


def _parts(data: str) -> tuple[str, str]:
    """The name, and what stands in brackets behind it."""
    found = _WITH_SETTINGS.fullmatch(data)
    return (found[1], found[2]) if found else (data, "")


def _made(source: type[Dataset], data: str, settings: str) -> Dataset:
    """Make a dataset with the settings behind its name, each of the type that it declares."""
    takes = inspect.signature(source)
    if settings and not takes.parameters:
        raise UsageError(f"{data}: {source.name} has no settings; expected its name alone")
    expected = f"expected values of {', '.join(takes.parameters)}, as {source.name}(2,seed=3)"
    try:
        values, by_name = _values(settings)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # what Python says of a text that is none of its
        raise UsageError(f"{data}: the settings cannot be read; {expected}") from None
    for key in by_name:
        if key not in takes.parameters:
            raise UnknownNameError(f"setting of {source.name}", key, takes.parameters)
    try:
        chosen = takes.bind(*values, **by_name).arguments
    except TypeError as error:
        raise UsageError(f"{data}: {error}; {expected}") from None
    types = get_type_hints(source.__init__)
    for key, value in chosen.items():
        try:
            TypeAdapter(types[key]).validate_python(value, strict=True)
        except ValidationError as error:
            wanted = error.errors(include_url=False)[0]["msg"].removeprefix("Input should be ")
            raise UsageError(f"{data}: {key} is {value!r}; expected {wanted}") from None
    return source(**chosen)


def _values(settings: str) -> tuple[list[Any], dict[str, Any]]:
    """Read ``2,seed=3`` as the arguments of a call; literals alone, nothing is ever run."""
    call = ast.parse(f"_({settings})", mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError(settings)
    by_name = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    return [ast.literal_eval(each) for each in call.args], by_name


def dataset_names(kind: type[Corpus[Any]]) -> list[str]:
    """Name the datasets that are of a kind, or of a kind of it.

    Args:
        kind: a class of corpora.

    Returns:
        Their names, in alphabetical order.
    """
    return [name for name, source in DATASETS.members.items() if issubclass(source.kind, kind)]
