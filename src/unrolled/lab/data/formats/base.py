"""The base classes of file formats: how to read the user's own files, which their suffix selects.

A format derives from :class:`RowFormat` if its files are independent examples, one after the other. It derives from
:class:`Format` if it builds its corpus in another way: running text, for example, is not held in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from unrolled.errors import DataError
from unrolled.lab.data.corpus import Corpus, hold_out
from unrolled.lab.data.text_files import malformed, without_compression

__all__ = ["Files", "Format", "Row", "RowFormat"]

R = TypeVar("R")

_HELD_OUT = 0.1  # for dev, and for test
_FEWEST = 10


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
class Row(Generic[R]):
    """An example as a file contains it, and the line at which it begins, counted from 1."""

    path: Path
    line: int
    value: R


class RowFormat(Format, Generic[R]):
    """A format of independent examples, held in memory.

    A split without files is a random tenth of the training examples, the same every time. The last example with a label
    stays in the training split.
    """

    @abstractmethod
    def rows(self, paths: Sequence[Path], kind: type[Corpus[object]]) -> Iterator[Row[R]]:
        """Read the examples of one split, in the order of the files."""

    def labels(self, value: R, kind: type[Corpus[object]]) -> Iterable[Hashable]:
        """Return the labels of an example that a training example must have too, for a model to predict them."""
        return ()

    def corpus(
        self, name: str, kind: type[Corpus[object]], train: Sequence[R], dev: Sequence[R], test: Sequence[R]
    ) -> Corpus[object]:
        """Build the corpus from the examples of the splits, of which none is empty."""
        return kind(name=name, train=tuple(train), dev=tuple(dev), test=tuple(test))

    def example(self, value: R, kind: type[Corpus[object]], known: Sequence[str]) -> object:
        """Convert what a file contains to an example of the corpus, by default unchanged."""
        return value

    def read(self, files: Files, kind: type[Corpus[object]]) -> Corpus[object]:
        """Read a corpus; also DataError for too few examples, and for a label that no training example has."""
        train = list(self.rows(files.train, kind))
        missing = sum(not paths for paths in (files.dev, files.test))
        if missing and len(train) < _FEWEST:
            raise DataError(
                f"{files.train[0]}: expected at least {_FEWEST} examples, found {len(train)}; "
                "a tenth of them is kept for dev, and for test"
            )
        count = round(_HELD_OUT * len(train))
        splits = []
        for paths in (files.dev, files.test):
            if paths:
                splits.append(list(self.rows(paths, kind)))
            else:
                train, split = hold_out(train, count, lambda row: self.labels(row.value, kind))
                splits.append(split)
        for paths, split in zip((files.train, files.dev, files.test), (train, *splits), strict=True):
            if not split and paths:
                raise _empty(paths)
            if not split:
                raise DataError(
                    f"{files.train[0]}: expected labels that occur on several lines, found each on one; "
                    "the label is the last column"
                )
        known = {label for row in train for label in self.labels(row.value, kind)}
        self._check_labels(known, [row for split in splits for row in split], kind)
        values = [[row.value for row in split] for split in (train, *splits)]
        try:
            return self.corpus(files.name, kind, *values)
        except DataError as error:
            raise DataError(f"{files.train[0]}: {error}") from None

    def split(self, paths: Sequence[Path], kind: type[Corpus[object]], known: Sequence[str]) -> tuple[object, ...]:
        """Read files as one split."""
        rows = list(self.rows(paths, kind))
        if not rows:
            raise _empty(paths)
        if known:
            self._check_labels(set(known), rows, kind)
        return tuple(self.example(row.value, kind, known) for row in rows)

    def _check_labels(self, known: Collection[Hashable], rows: Iterable[Row[R]], kind: type[Corpus[object]]) -> None:
        for row in rows:
            for label in self.labels(row.value, kind):
                if label not in known:
                    hint = "a model cannot predict a label that it was not trained on"
                    raise malformed(row.path, row.line, "a label that training examples have", repr(label), hint)


def _empty(paths: Sequence[Path]) -> DataError:
    return malformed(paths[0], 1, "an example", "an empty file", "every split needs one")
