"""Finding a corpus: a dataset by its name, or files of the user's, of the kind that a task learns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from unrolled.datasets import DATASETS
from unrolled.errors import UnknownNameError, UsageError
from unrolled.formats import read_files
from unrolled.text.corpus import Corpus

__all__ = ["load_dataset", "named"]

C = TypeVar("C", bound=Corpus[Any])


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
        data: a member of ``unrolled.datasets``, or the paths of training files, of a format of ``unrolled.formats``.
        kind: the class of corpus wanted.
        folder: where the datasets' folders lie; the environment variable ``UNROLLED_DATA`` when left out.
        dev: files that choose the best epoch, beside training files; a tenth of these when left out.
        test: files looked at once, at the end; likewise.
        format: the name of the files' format, where their suffix does not say it.

    Returns:
        The corpus.

    Raises:
        UsageError: when the dataset is of another kind, or comes with files although it has splits of its own.
        UnknownNameError: when there is neither a dataset nor a file of that name.

    Example:
        >>> from unrolled.text.corpus import Classification
        >>> len(load_dataset("negation", Classification).test)
        200
    """
    names = [data] if isinstance(data, str) else [str(name) for name in data]
    if names and names[0] in DATASETS.names():
        return _named(names, kind, folder, (*dev, *test))
    paths = [Path(name) for name in names]
    if len(paths) == 1 and not paths[0].suffix and not paths[0].exists():
        raise UnknownNameError("dataset", names[0], named(kind))
    return read_files(kind, paths, dev, test, format=format)


def _named(names: Sequence[str], kind: type[C], folder: Path | None, files: Sequence[Path]) -> C:
    """Read a dataset of the zoo."""
    source = DATASETS.get(names[0])
    if others := [*names[1:], *map(str, files)]:
        raise UsageError(
            f"{names[0]} is a dataset with splits of its own; expected no file beside it, found {others[0]}"
        )
    if not issubclass(source.kind, kind):
        raise UsageError(
            f"{source.name} is a corpus for {source.kind.__name__.lower()}; expected one for {kind.__name__.lower()}: "
            f"{', '.join(named(kind)) or 'none has a name, name files'}"
        )
    corpus = source().read(folder)
    assert isinstance(corpus, kind)
    return corpus


def named(kind: type[Corpus[Any]]) -> list[str]:
    """Name the datasets that are of a kind, or of a kind of it.

    Args:
        kind: a class of corpora.

    Returns:
        Their names, in alphabetical order.
    """
    return [name for name, source in DATASETS.members.items() if issubclass(source.kind, kind)]
