"""The file formats: one file each, found by listing the folder, and the reader that chooses among them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from unrolled.errors import UsageError
from unrolled.lab.data.corpus import Corpus
from unrolled.lab.data.formats.base import Files, Format
from unrolled.lab.data.text_files import without_compression
from unrolled.registry import Registry

__all__ = ["FORMATS", "read_files", "read_split"]

C = TypeVar("C", bound=Corpus[Any])

FORMATS: Registry[Format] = Registry(__name__, Format, "format")  # type: ignore[type-abstract]  # a base


def read_files(
    kind: type[C],
    train: Sequence[Path],
    dev: Sequence[Path] = (),
    test: Sequence[Path] = (),
    *,
    format: str | None = None,
) -> C:
    """Read a user's own files as a corpus of one kind, in the format that their suffix says.

    A split without files is taken from the training files: a tenth of them each, the same every time.

    Args:
        kind: the class of corpus wanted.
        train: one file or more; those of a split are of one format.
        dev: files that choose the best epoch.
        test: files looked at once, at the end.
        format: a member of ``unrolled.lab.data.formats``, for files whose suffix does not say it.

    Returns:
        The corpus.

    Raises:
        UsageError: when no file is named, or no format of that suffix gives that kind.
        UnknownNameError: when no format has that name.
        FileError: when a file cannot be read.
        DataError: for what the format does not allow, as ``file:line: expected …, found …; hint``.

    Example:
        >>> from unrolled.lab.data.corpus import Classification
        >>> read_files(Classification, [Path("train.tsv")], test=[Path("test.tsv")])  # doctest: +SKIP
    """
    if not train:
        raise UsageError("no training file; expected at least one")
    reader = _reader(kind, (*train, *dev, *test), format)
    return cast(C, reader().read(Files(tuple(train), tuple(dev), tuple(test)), kind))


def read_split(kind: type[Corpus[Any]], paths: Sequence[Path], known: Sequence[str], format: str | None = None) -> Any:
    """Read all of a user's files as one split, for a model that was trained on another corpus.

    Args:
        kind: the class of that corpus.
        paths: one file or more.
        known: its classes, in their order; empty where there are none.
        format: a member of ``unrolled.lab.data.formats``, for files whose suffix does not say it.

    Returns:
        The split.

    Raises:
        UsageError: when no format of that suffix gives that kind.
        DataError: for what the format does not allow, or a class that is not known.
    """
    return _reader(kind, paths, format)().split(paths, kind, known)


def _reader(kind: type[Corpus[Any]], paths: Sequence[Path], format: str | None) -> type[Format]:
    """Find the one format that reads all of these files."""
    able = {name: member for name, member in FORMATS.members.items() if kind in member.kinds}
    if format is None:
        chosen = {_choose(path, kind, able) for path in paths}
        if len(chosen) > 1:
            names = ", ".join(sorted(member.name for member in chosen))
            raise UsageError(f"files of several formats ({names}) for one corpus; expected one")
        return chosen.pop()
    reader = FORMATS.get(format)
    if reader.name not in able:
        raise UsageError(f"the format {format} gives no {kind.__name__.lower()}; expected one of {_listed(able)}")
    return reader


def _choose(path: Path, kind: type[Corpus[Any]], able: dict[str, type[Format]]) -> type[Format]:
    """Find the format that a file's suffix says, else the one that reads files of any name."""
    suffix = without_compression(path).suffix.lower()
    for member in able.values():
        if suffix in member.suffixes:
            return member
    for member in able.values():
        if not member.suffixes:
            return member
    raise UsageError(
        f"{path}: no format of the suffix {suffix!r} gives a corpus for {kind.__name__.lower()}; "
        f"expected one of {_listed(able)}"
    )


def _listed(able: dict[str, type[Format]]) -> str:
    return ", ".join(f"{name} ({', '.join(member.suffixes) or 'any file'})" for name, member in able.items())
