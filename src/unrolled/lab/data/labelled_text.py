"""Texts with a label each, as tables write them; what the label is depends on the kind of corpus."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from unrolled.errors import DataError
from unrolled.lab.data.corpus import Classification, Corpus, Example, Rated, Regression, Relations
from unrolled.lab.data.markers import tokenise_marked
from unrolled.lab.data.row_formats import Row, RowFormat
from unrolled.lab.data.text_files import malformed
from unrolled.lab.data.tokenise import tokenise

__all__ = ["LabelledFormat", "columns"]

_TEXTS = frozenset({"text", "sentence"})
_LABELS = frozenset({"label", "class", "rating", "relation"})

Labelled = tuple[tuple[str, ...], str]


def columns(path: Path, header: Sequence[str]) -> tuple[int, int] | None:
    """Find the two columns in what may be a table's header.

    A text's column is called text or sentence, a label's label, class, rating or relation, in any case.

    Args:
        path: the file, for errors.
        header: the fields of its first line.

    Returns:
        The indices of the text's and the label's column; None when the line names neither and so is no header.

    Raises:
        DataError: when it names one of them and not the other, or one twice.
    """
    names = [field.strip().lower() for field in header]
    texts = [index for index, name in enumerate(names) if name in _TEXTS]
    labels = [index for index, name in enumerate(names) if name in _LABELS]
    if not texts and not labels:
        return None
    if len(texts) != 1 or len(labels) != 1:
        hint = "or no header: the text first, then the label"
        raise malformed(path, 1, "one column named text and one named label", repr(", ".join(names)), hint)
    return texts[0], labels[0]


class LabelledFormat(RowFormat[tuple[tuple[str, ...], str]]):
    """A format whose examples are a text and a label.

    The label is a class for classification, the name of a relation for texts in which two entities are marked, a
    number for regression.
    """

    kinds = (Classification, Regression, Relations)

    @abstractmethod
    def fields(self, path: Path) -> Iterator[tuple[int, str, str]]:
        """Read the texts and labels as they are written.

        Args:
            path: one file.

        Yields:
            The line an example begins at, its text, its label.
        """

    def rows(self, paths: Sequence[Path], kind: type[Corpus[Any]]) -> Iterator[Row[Labelled]]:
        """Read the examples of one split; see :meth:`RowFormat.rows`.

        Args:
            paths: the split's files.
            kind: one of ``kinds``.

        Yields:
            Each text in tokens, with its label.

        Raises:
            DataError: when a text or a label is missing, or not of that kind.
        """
        for path in paths:
            for line, text, label in self.fields(path):
                label = label.strip()
                if not text.strip():
                    raise malformed(path, line, "a text", f"the label {label!r} alone", "every label needs a text")
                if not label:
                    raise malformed(path, line, "a label", f"the text {text!r} alone", "every text needs a label")
                if issubclass(kind, Regression):
                    _number(path, line, label)
                yield Row(path, line, (_tokens(path, line, text, kind), label))

    def labels(self, value: Labelled, kind: type[Corpus[Any]]) -> Iterable[str]:
        """Give an example's class; a number needs not to have been seen before.

        Args:
            value: the example.
            kind: one of ``kinds``.

        Returns:
            The class, or nothing.
        """
        return () if issubclass(kind, Regression) else (value[1],)

    def corpus(
        self,
        name: str,
        kind: type[Corpus[Any]],
        train: Sequence[Labelled],
        dev: Sequence[Labelled],
        test: Sequence[Labelled],
    ) -> Corpus[Any]:
        """Make the corpus; classes are in alphabetical order.

        Args:
            name: what it is called.
            kind: its class.
            train: its examples.
            dev: its examples.
            test: its examples.

        Returns:
            The corpus.

        Raises:
            DataError: when there is one class only.
        """
        classes = () if issubclass(kind, Regression) else tuple(sorted({label for _, label in train}))
        splits = {
            key: tuple(self.example(value, kind, classes) for value in split)
            for key, split in {"train": train, "dev": dev, "test": test}.items()
        }
        if not issubclass(kind, Classification):
            return Regression(name=name, **splits)
        if len(classes) < 2:
            raise DataError(
                f"expected at least two labels, found {classes[0]!r} on every example; is it the last column?"
            )
        return kind(name=name, labels=classes, **splits)

    def example(self, value: Labelled, kind: type[Corpus[Any]], known: Sequence[str]) -> Any:
        """Make a rated text, or one whose class is counted as in ``known``.

        Args:
            value: tokens and label.
            kind: one of ``kinds``.
            known: the classes, in their order.

        Returns:
            The example.
        """
        tokens, label = value
        return Rated(tokens, float(label)) if issubclass(kind, Regression) else Example(tokens, known.index(label))


def _tokens(path: Path, line: int, text: str, kind: type[Corpus[Any]]) -> tuple[str, ...]:
    if not issubclass(kind, Relations):
        return tuple(tokenise(text))
    try:
        return tokenise_marked(text)
    except DataError as error:
        raise DataError(f"{path}:{line}: {error}; mark the two entities that the relation is between") from None


def _number(path: Path, line: int, label: str) -> None:
    """Check that a label is a number that can be learned."""
    try:
        value = float(label.replace("_", "?"))  # Python reads 1_000
    except ValueError:
        hint = "for labels that are names, train classify"
        raise malformed(path, line, "a number", repr(label), hint) from None
    if not math.isfinite(value):
        raise malformed(path, line, "a finite number", repr(label), "leave the example out")
