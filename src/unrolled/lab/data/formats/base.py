"""The base classes of file formats: how to read the user's own files, which their suffix selects.

A format derives from :class:`RowFormat` if its files are independent examples, one after the other. It derives from
:class:`Format` if it builds its corpus in another way: running text, for example, is not held in memory.
"""

from __future__ import annotations

import math
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from unrolled.errors import DataError, suggest
from unrolled.lab.data.corpus import Corpus, hold_out
from unrolled.lab.data.reading import PLAIN, InvalidRow, Reading, all_invalid, left_out
from unrolled.lab.data.text_files import malformed, without_compression

__all__ = ["Files", "Format", "RowFormat", "ValidRow"]

R = TypeVar("R")

_HELD_OUT = 0.1  # for dev, and for test
_FEWEST = 10
_SHOWN = 5
_MISSING = frozenset({"nan", "na", "<na>", "n/a", "#n/a", "null", "none"})
"""What programs write in the place of a value that is missing, without its case."""


@dataclass(frozen=True)
class Files:
    """The files of each split; a split without files is taken from the training files."""

    train: Sequence[Path]
    dev: Sequence[Path] = ()
    test: Sequence[Path] = ()

    @property
    def name(self) -> str:
        """The name of the corpus: the first training file's, without its suffixes."""
        return without_compression(self.train[0]).stem


class Format(ABC):
    """A file format. Every module of ``unrolled.lab.data.formats`` defines one or a family of them."""

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    """The suffixes of its files, as ``.tsv``; empty if it reads files of any name that no other format reads."""
    description: ClassVar[str]
    """One line for a list of formats: what a line of a file looks like."""
    kinds: ClassVar[tuple[type[Corpus[object]], ...]]
    """The classes of corpora that it can return; ``kind`` in the methods is one of them."""
    has_columns: ClassVar[bool] = False
    """Whether its files have columns that the user may choose."""
    side_by_side: ClassVar[bool] = False
    """Whether an example is a line of each file of a split: then the same file may stand on two sides."""

    def __init__(self, reading: Reading = PLAIN) -> None:
        self.reading = reading
        self.notes: list[str] = []
        """What was chosen or left out while the files were read, one line each."""
        self.columns: dict[str, None] = {}
        """The columns that were chosen, in the order of the files."""

    @abstractmethod
    def read(self, files: Files, kind: type[Corpus[object]]) -> Corpus[object]:
        """Read a corpus; DataError, with file and line, for what the format does not allow."""

    @abstractmethod
    def split(self, paths: Sequence[Path], kind: type[Corpus[object]], known: Sequence[str]) -> object:
        """Read files as one split, for a trained model.

        Args:
            paths: One file or more; two for parallel text.
            kind: The class of the corpus that the model was trained on.
            known: The classes of that corpus, in their order; empty if it has none. Others are a DataError.
        """


@dataclass(frozen=True, slots=True)
class ValidRow(Generic[R]):
    """An example as a file contains it, and the line at which it begins, counted from 1."""

    path: Path
    line: int
    value: R


class RowFormat(Format, Generic[R]):
    """A format of independent examples, held in memory.

    A split without files is a random tenth of the training examples, the same every time. The last example with a label
    stays in the training split.
    """

    examples: ClassVar[str] = "examples"
    """What its examples are called: questions, of which each has several lines."""

    @abstractmethod
    def rows(self, paths: Sequence[Path], kind: type[Corpus[object]]) -> Iterator[ValidRow[R] | InvalidRow]:
        """Read the examples of one split, in the order of the files; rows that are none in their places."""

    def follow_training(self) -> None:
        """Read what follows as the training files, which were read before it, where the files do not say otherwise."""

    def labels(self, value: R, kind: type[Corpus[object]]) -> Iterable[Hashable]:
        """Return the labels of an example that a training example must have too, for a model to predict them."""
        return ()

    def corpus(self, name: str, kind: type[Corpus[object]], splits: Mapping[str, tuple[R, ...]]) -> Corpus[object]:
        """Build the corpus from what the files contain of ``train``, ``dev`` and ``test``, of which none is empty."""
        return kind(name=name, **splits)

    def example(self, value: R, kind: type[Corpus[object]], known: Mapping[str, int]) -> object:
        """Convert what a file contains to an example, by default unchanged; ``known`` numbers the classes."""
        return value

    def read(self, files: Files, kind: type[Corpus[object]]) -> Corpus[object]:
        """Read a corpus; also DataError for too few examples, and for a label that no training example has."""
        invalid: list[InvalidRow] = []
        train = self._valid(files.train, kind, invalid)
        self.follow_training()
        given = [self._valid(paths, kind, invalid) for paths in (files.dev, files.test)]
        known = {label for row in train for label in self.labels(row.value, kind)}
        given = [self._with_known_labels(known, split, kind, invalid) for split in given]
        self._handle(invalid)
        if not all((files.dev, files.test)) and len(train) < _FEWEST:
            raise DataError(
                f"{files.train[0]}: expected at least {_FEWEST} {self.examples}, found {len(train)}; "
                "a tenth of them is kept for dev, and for test, unless --dev and --test name files"
                f"{_beside(files.train, invalid)}"
            )
        count = round(_HELD_OUT * len(train))
        others = []
        for paths, split in zip((files.dev, files.test), given, strict=True):
            if paths:
                others.append(split)
            else:
                train, drawn = hold_out(train, count, lambda row: self.labels(row.value, kind))
                others.append(drawn)
        rows = dict(zip(("train", "dev", "test"), (train, *others), strict=True))
        for paths, split in zip((files.train, files.dev, files.test), rows.values(), strict=True):
            if not split and paths:
                raise _empty(paths, invalid)
            if not split:
                raise DataError(
                    f"{files.train[0]}: expected labels that occur on several lines, found each on one{self._read}; "
                    f"name the column of the labels with --label-column{_if_numbers(known)}"
                )
        counts = Counter(str(label) for row in train for label in set(self.labels(row.value, kind)))
        self.notes += (f"{train[0].path}: {said}" for said in _remarkable_labels(counts))
        splits = {name: tuple(row.value for row in split) for name, split in rows.items()}
        try:
            corpus = self.corpus(files.name, kind, splits)
        except DataError as error:
            raise DataError(f"{files.train[0]}: {error}") from None
        return replace(corpus, notes=tuple(self.notes), columns=tuple(self.columns))

    def split(self, paths: Sequence[Path], kind: type[Corpus[object]], known: Sequence[str]) -> tuple[object, ...]:
        """Read files as one split."""
        invalid: list[InvalidRow] = []
        rows = self._valid(paths, kind, invalid)
        numbers = {label: number for number, label in enumerate(known)}
        # a label that is read is in NFC, one of a run of an earlier version need not be
        numbers = {unicodedata.normalize("NFC", label): number for label, number in numbers.items()} | numbers
        if known:
            rows = self._with_known_labels(numbers, rows, kind, invalid)
        self._handle(invalid)
        if not rows:
            raise _empty(paths, invalid)
        return tuple(self.example(row.value, kind, numbers) for row in rows)

    def _valid(self, paths: Sequence[Path], kind: type[Corpus[object]], invalid: list[InvalidRow]) -> list[ValidRow[R]]:
        """Read the examples of some files, and put the other rows aside."""
        valid = []
        for row in self.rows(paths, kind) if paths else ():
            if isinstance(row, InvalidRow):
                invalid.append(row)
            else:
                valid.append(row)
        return valid

    def _with_known_labels(
        self,
        known: Collection[Hashable],
        rows: Sequence[ValidRow[R]],
        kind: type[Corpus[object]],
        invalid: list[InvalidRow],
    ) -> list[ValidRow[R]]:
        """Put the rows aside that have a label that no training example has."""
        valid = []
        for row in rows:
            new = next((label for label in self.labels(row.value, kind) if label not in known), None)
            if new is None:
                valid.append(row)
                continue
            hint = f"a model cannot predict a label that it was not trained on{self._read}"
            hint += f"; {suggest(new, map(str, known))}"
            error = malformed(row.path, row.line, "a label that training examples have", repr(new), hint)
            invalid.append(InvalidRow(row.path, row.line, "with a label that no training example has", error))
        return valid

    @property
    def _read(self) -> str:
        """The columns that were chosen, in brackets, where they may be the cause of an error."""
        return f" ({'; '.join(self.columns)})" if self.columns else ""

    def _handle(self, invalid: Sequence[InvalidRow]) -> None:
        """Refuse rows that are no examples, or leave them out, as the user wants it."""
        if invalid and not self.reading.skip_invalid:
            raise all_invalid(invalid)
        self.notes += left_out(invalid)


def _remarkable_labels(counts: Mapping[str, int]) -> Iterator[str]:
    """Say which labels, of so many training examples each, may not be meant as they are."""
    if once := sorted(label for label, count in counts.items() if count == 1):
        what = "a label has one training example" if len(once) == 1 else "some labels have one training example each"
        yield f"{what}, too few to be learned: {_first_of(once)}"
    alike: dict[str, Callable[[str], object]] = {
        "that differ in their case alone": str.casefold,
        "that are the same number": _number_or_itself,
        "that look the same": _as_it_looks,
    }
    for said, form in alike.items():
        same: dict[object, set[str]] = {}
        for label in counts:
            same.setdefault(form(label), set()).add(label)
        shown_as = ascii if form is _as_it_looks else str
        pairs = sorted(" and ".join(map(shown_as, sorted(each))) for each in same.values() if len(each) > 1)
        if pairs:
            yield f"labels {said} are different labels: {_first_of(pairs)}"
    if missing := sorted(label for label in counts if label.casefold() in _MISSING):
        shown = ", ".join(f"{label} ({counts[label]:,} examples)" for label in missing)
        yield f"labels that may stand for a missing one are learned as labels: {shown}"
    if quoted := sorted(label for label in counts if len(label) > 2 and label[0] + label[-1] in _QUOTES):
        yield f"quotes are learned as part of labels: {_first_of(quoted)}"


def _first_of(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")


_QUOTES = ('""', "''", "\u201c\u201d", "\u2018\u2019", "\u00ab\u00bb")


def _as_it_looks(label: str) -> str:
    """Compose accents that are characters of their own; leave out characters and further spaces that nobody sees."""
    seen = "".join(c for c in unicodedata.normalize("NFC", label) if unicodedata.category(c) != "Cf")
    return " ".join(seen.split())


def _if_numbers(labels: Iterable[Hashable]) -> str:
    """What to do if labels are numbers rather than names."""
    numbers = all(isinstance(_number_or_itself(str(label)), float) for label in labels)
    return "; to predict numbers, train regress" if numbers else ""


def _number_or_itself(label: str) -> object:
    """Return the finite number that a label writes, or the label."""
    try:
        number = float(label)
    except ValueError:
        return label
    return number if math.isfinite(number) else label


def _empty(paths: Sequence[Path], invalid: Sequence[InvalidRow]) -> DataError:
    return malformed(paths[0], 1, "an example", "none", f"give a file with at least one{_beside(paths, invalid)}")


def _beside(paths: Sequence[Path], invalid: Sequence[InvalidRow]) -> str:
    """Say which rows of some files were left out: without them too few examples may be left."""
    return "".join(f"; {said}" for said in left_out([row for row in invalid if row.path in paths]))
