"""File formats, found by listing this folder, and the functions that choose among them by a file's suffix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from unrolled.errors import UsageError
from unrolled.lab.data.corpus import Corpus
from unrolled.lab.data.formats.base import Files, Format
from unrolled.lab.data.reading import PLAIN, Reading
from unrolled.lab.data.text_files import check_text, without_compression
from unrolled.named_sources import given_twice
from unrolled.registry import Registry

__all__ = ["FORMATS", "ReadSplit", "read_files", "read_split"]

C = TypeVar("C", bound=Corpus[Any])

FORMATS: Registry[Format] = Registry(__name__, Format, "format")  # type: ignore[type-abstract]  # a base


def read_files(
    kind: type[C],
    train: Sequence[Path],
    dev: Sequence[Path] = (),
    test: Sequence[Path] = (),
    *,
    format: str | None = None,
    reading: Reading = PLAIN,
) -> C:
    """Read files as a corpus of one kind, in the format that their suffix tells.

    Args:
        kind: The class of corpus wanted.
        train: One file or more, all in one format.
        dev: Files that choose the best epoch; a tenth of the training examples, always the same, if empty.
        test: Files to test on; a tenth of the training examples, always the same, if empty.
        format: The name of the format, if the suffix does not tell it.
        reading: What else the user says about the files. The notes of the corpus say what was chosen or left out.

    Raises:
        UsageError: If no file is given, or no format of that suffix can return that kind.
        UnknownNameError: If there is no format of that name.
        FileError: If a file cannot be read.
        DataError: For what the format does not allow, as ``file:line: expected …, found …; hint``.

    Example:
        >>> from unrolled.lab.data.corpus import Classification
        >>> read_files(Classification, [Path("train.tsv")], test=[Path("test.tsv")])  # doctest: +SKIP
    """
    if not train:
        raise UsageError("no training file; pass at least one")
    reader = _find_reader(kind, (*train, *dev, *test), format, reading)
    reader.notes += [note for split in (train, dev, test) for note in _given_twice(split, reader)]
    return cast(C, reader.read(Files(tuple(train), tuple(dev), tuple(test)), kind))


class ReadSplit(NamedTuple):
    """The examples of a split, and what was chosen or left out while they were read."""

    examples: Any
    notes: tuple[str, ...]


def read_split(
    kind: type[Corpus[Any]],
    paths: Sequence[Path],
    known: Sequence[str],
    format: str | None = None,
    reading: Reading = PLAIN,
) -> ReadSplit:
    """Read files as one split, for a model that was trained on another corpus of this kind.

    ``known`` are the classes of that corpus in their order, empty if it has none; another class is a DataError.
    """
    reader = _find_reader(kind, paths, format, reading)
    reader.notes += _given_twice(paths, reader)
    return ReadSplit(reader.split(paths, kind, known), tuple(reader.notes))


def _given_twice(split: Sequence[Path], reader: Format) -> list[str]:
    """Note the files of a split that are given more than once, by this name or another one."""
    if reader.side_by_side:
        return []
    return [
        f"{path} is given {count} times; each of its examples counts {count} times"
        for path, count in given_twice(split).items()
    ]


def _find_reader(kind: type[Corpus[Any]], paths: Sequence[Path], format: str | None, reading: Reading) -> Format:
    """Find the one format that reads all of these files."""
    able = {name: member for name, member in FORMATS.members.items() if kind in member.kinds}
    if format is None:
        chosen = {_choose(path, kind, able) for path in paths}
        if len(chosen) > 1:
            names = ", ".join(sorted(member.name for member in chosen))
            raise UsageError(f"files of several formats ({names}) for one corpus; expected one format")
        reader = chosen.pop()
    else:
        reader = FORMATS.get(format)
        if reader.name not in able:
            raise UsageError(
                f"the format {format} cannot be read for {kind.__name__.lower()}; expected one of {_listed(able)}"
            )
    if reading.columns and not reader.has_columns:
        raise UsageError(f"{reading.columns[0]} is given, but the format {reader.name} has fixed columns; leave it out")
    chosen_reader = reader(reading)
    if format is None and not reader.suffixes:
        meant = (
            f"every line is read whole, with what separates its fields; pass --format {reader.name} if that is meant"
        )
        chosen_reader.notes += [f"{path}: {meant}" for path in paths if _has_fields(path)]
    return chosen_reader


def _has_fields(path: Path) -> bool:
    """Tell whether the suffix of a file is that of a format whose lines have fields."""
    suffix = without_compression(path).suffix.lower()
    return any(suffix in member.suffixes for member in FORMATS.members.values())


def _choose(path: Path, kind: type[Corpus[Any]], able: dict[str, type[Format]]) -> type[Format]:
    """Find the format of a file's suffix, else the one that reads files of any name."""
    suffix = without_compression(path).suffix.lower()
    for member in able.values():
        if suffix in member.suffixes:
            return member
    for member in able.values():
        if not member.suffixes:
            return member
    check_text(path)
    raise UsageError(
        f"{path}: no format of the suffix {suffix!r} can be read for {kind.__name__.lower()}; "
        f"expected one of {_listed(able)}; name the format of a file with another suffix by --format"
    )


def _listed(able: dict[str, type[Format]]) -> str:
    """List formats with their suffixes; of a single one, also what a line of its files looks like."""
    named = [f"{name} ({', '.join(member.suffixes) or 'any file'})" for name, member in able.items()]
    return ", ".join(named) if len(able) != 1 else f"{named[0]}: {next(iter(able.values())).description}"
