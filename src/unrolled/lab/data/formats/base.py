"""What a file format is: a way to read a user's own files, found by their suffix.

A member derives from :class:`Format` when it makes its corpus in a way of its own (running text is not held in
memory), from :class:`~unrolled.lab.data.formats.base.RowFormat` when its files are examples one after the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from unrolled.errors import DataError
from unrolled.lab.data.corpus import Corpus
from unrolled.lab.data.hold_out import hold_out
from unrolled.lab.data.text_files import malformed, without_compression

__all__ = ["Files", "Format", "Row", "RowFormat"]


@dataclass(frozen=True)
class Files:
    """The files of a corpus. A split may be several files, one after the other, or, for parallel text, two.

    Splits without a file are taken from the training files.
    """

    train: Sequence[Path]
    dev: Sequence[Path] = ()
    test: Sequence[Path] = ()

    @property
    def name(self) -> str:
        """What the corpus is called: the first training file's name, without its suffixes."""
        return without_compression(self.train[0]).stem


class Format(ABC):
    """A way to write a corpus to files; each one is a file in ``unrolled.lab.data.formats``."""

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    """The endings of its files, ``.tsv``; none when it reads a file of any name that no other format reads."""
    description: ClassVar[str]
    """One line for a list of formats: what a line of it looks like."""
    kinds: ClassVar[tuple[type[Corpus[object]], ...]]
    """The classes of corpora that it can give."""

    @abstractmethod
    def read(self, files: Files, kind: type[Corpus[object]]) -> Corpus[object]:
        """Read a user's files.

        Args:
            files: the training files and, where there are some, those of dev and test.
            kind: one of ``kinds``.

        Returns:
            The corpus, an instance of ``kind``.

        Raises:
            DataError: for what the format does not allow: ``file:line: expected …, found …; hint``.
        """

    @abstractmethod
    def split(self, paths: Sequence[Path], kind: type[Corpus[object]], known: Sequence[str]) -> object:
        """Read all of some files as one split, for a model that was trained on another corpus.

        Args:
            paths: one file or more; of parallel text, two.
            kind: one of ``kinds``.
            known: the classes that the model was trained on, in their order; empty where there are none.

        Returns:
            A split of such a corpus.

        Raises:
            DataError: for what the format does not allow, or a class that is not known.
        """


R = TypeVar("R")

_SHARE = 0.1  # of dev and of test, each
_FEWEST = 10


@dataclass(frozen=True, slots=True)
class Row(Generic[R]):
    """One example as it stands in a file, and where."""

    path: Path
    line: int
    """Where the example begins, counted from 1."""
    value: R


class RowFormat(Format, Generic[R]):
    """A format of examples that do not depend on each other, few enough to hold.

    A split without a file is a tenth of the training files' examples, drawn at random, the same every time; an
    example that alone has a label stays in training.
    """

    @abstractmethod
    def rows(self, paths: Sequence[Path], kind: type[Corpus[object]]) -> Iterator[Row[R]]:
        """Read the examples of one split, in the files' order.

        Args:
            paths: the split's files.
            kind: one of ``kinds``.

        Yields:
            Each example, with the line it begins at.
        """

    def labels(self, value: R, kind: type[Corpus[object]]) -> Iterable[Hashable]:  # most have their own
        """List what of an example must also stand in a training example, or it could not be predicted.

        Args:
            value: the example.
            kind: one of ``kinds``.

        Returns:
            Its class, its tags; nothing unless a format says so, as for a translation or a question.
        """
        return ()

    @abstractmethod
    def corpus(
        self, name: str, kind: type[Corpus[object]], train: Sequence[R], dev: Sequence[R], test: Sequence[R]
    ) -> Corpus[object]:
        """Make the corpus from the three splits' examples.

        Args:
            name: what it is called.
            kind: its class.
            train: at least one example.
            dev: at least one, with labels of training examples only.
            test: likewise.

        Returns:
            The corpus.

        Raises:
            DataError: when the examples together are none; :meth:`read` puts the file's name before the text.
        """

    def read(self, files: Files, kind: type[Corpus[object]]) -> Corpus[object]:
        """Read a user's files; see :meth:`Format.read`.

        Args:
            files: the training files and, where there are some, those of dev and test.
            kind: one of ``kinds``.

        Returns:
            The corpus.

        Raises:
            DataError: for what the format does not allow, too few examples, or a label never trained on.
        """
        train = list(self.rows(files.train, kind))
        missing = sum(not paths for paths in (files.dev, files.test))
        if missing and len(train) < _FEWEST:
            raise DataError(
                f"{files.train[0]}: expected at least {_FEWEST} examples, found {len(train)}; "
                "a tenth of them is kept for dev, and for test"
            )
        held_out = round(_SHARE * len(train))
        splits = []
        for paths in (files.dev, files.test):
            if paths:
                splits.append(list(self.rows(paths, kind)))
            else:
                train, split = hold_out(train, held_out, lambda row: self.labels(row.value, kind))
                splits.append(split)
        for paths, split in zip((files.train, files.dev, files.test), (train, *splits), strict=True):
            if not split:
                raise _nothing(paths or files.train, bool(paths))
        known = {label for row in train for label in self.labels(row.value, kind)}
        self._check_labels(known, [row for split in splits for row in split], kind)
        values = [[row.value for row in split] for split in (train, *splits)]
        try:
            return self.corpus(files.name, kind, *values)
        except DataError as error:
            raise DataError(f"{files.train[0]}: {error}") from None

    def split(self, paths: Sequence[Path], kind: type[Corpus[object]], known: Sequence[str]) -> tuple[object, ...]:
        """Read some files as one split; see :meth:`Format.split`.

        Args:
            paths: one file or more.
            kind: one of ``kinds``.
            known: the classes that may occur; empty where there are none.

        Returns:
            The examples.
        """
        rows = list(self.rows(paths, kind))
        if not rows:
            raise _nothing(paths, given=True)
        if known:
            self._check_labels(set(known), rows, kind)
        return tuple(self.example(row.value, kind, known) for row in rows)

    def example(self, value: R, kind: type[Corpus[object]], known: Sequence[str]) -> object:  # most
        """Make an example of what stands in a file; the same thing, for most formats.

        Args:
            value: what stands there.
            kind: one of ``kinds``.
            known: the classes, in their order.

        Returns:
            The example.
        """
        return value

    def _check_labels(self, known: Collection[Hashable], rows: Iterable[Row[R]], kind: type[Corpus[object]]) -> None:
        """Refuse a label that training never shows."""
        for row in rows:
            for label in self.labels(row.value, kind):
                if label not in known:
                    raise malformed(
                        row.path,
                        row.line,
                        "a label that training examples have",
                        repr(label),
                        "a label never trained on cannot be predicted",
                    )


def _nothing(paths: Sequence[Path], given: bool) -> DataError:
    """Say that a split is empty: its file is, or no example could be spared for it."""
    if given:
        return malformed(paths[0], 1, "an example", "an empty file", "every split needs one")
    return DataError(
        f"{paths[0]}: expected labels that stand on several lines, found each on one; the label is the last column"
    )
