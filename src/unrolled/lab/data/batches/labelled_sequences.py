"""Batches of sequences with a label at each position: tagged sentences, and strings of brackets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from unrolled.errors import DataError
from unrolled.lab.data.batches.base import Batch, EncodedSequences
from unrolled.lab.data.corpus import TaggedSentence
from unrolled.lab.data.spans import find_invalid_tag
from unrolled.lab.data.vocabulary import PADDING, Vocabulary
from unrolled.lab.data.word_features import word_shape

__all__ = ["IGNORE_INDEX", "BracketBatch", "EncodedBrackets", "EncodedSentences", "TaggedBatch", "closing_targets"]


@dataclass(frozen=True)
class TaggedBatch(Batch):
    """Padded sentences; all values are 0 after a sentence's end."""

    tokens: Tensor
    """Word indices, shape (batch, time), int64."""
    shapes: Tensor
    """The shapes of the words with their case, shape (batch, time), int64."""
    tags: Tensor
    """Tag indices, shape (batch, time), int64."""
    lengths: Tensor
    """The number of tokens of each sentence, shape (batch,), int64."""


@dataclass(frozen=True)
class EncodedSentences(EncodedSequences):
    """A split of tagged sentences: the word, its shape and its tag for every token."""

    @classmethod
    def encode(
        cls, examples: Sequence[TaggedSentence], vocabulary: Vocabulary, tags: Sequence[str], spans: bool
    ) -> EncodedSentences:
        """Look up all words and tags.

        ``tags`` are the known tags in the order of their indices; ``spans`` tells whether they spell spans, in IOBES.
        DataError if there is no sentence, one is empty, or a tag is unknown or invalid at its position.
        """
        index = {tag: number for number, tag in enumerate(tags)}
        rows = []
        for number, example in enumerate(examples, 1):
            for tag in example.tags:
                if tag not in index:
                    raise DataError(
                        f"sentence {number} has the tag {tag!r}, which no training sentence has; expected one of: "
                        + ", ".join(tags)
                    )
            fault = find_invalid_tag(example.tags, "IOBES") if spans else None
            if fault:
                raise DataError(
                    f"sentence {number}, token {fault.position + 1}, {example.tokens[fault.position]!r}: expected "
                    f"{fault.expected}, found {example.tags[fault.position]!r}; {fault.hint}"
                )
            shapes = [word_shape(token) for token in example.tokens]
            rows.append((vocabulary.encode(example.tokens), shapes, [index[tag] for tag in example.tags]))
        return cls.from_rows(rows)

    def select(self, which: Tensor) -> TaggedBatch:
        """Return the sentences with these indices as a batch."""
        (tokens, shapes, tags), lengths = self.gather(which, (PADDING, 0, 0))
        return TaggedBatch(tokens, shapes, tags, lengths)


IGNORE_INDEX = -100
"""The target where nothing is predicted: the ``ignore_index`` of ``torch.nn.functional.cross_entropy``."""


def closing_targets(string: Sequence[int], kinds: int, depth: int) -> tuple[list[int], list[int]]:
    """Find the closing bracket after each position of a string.

    Args:
        string: 0 … k-1 open, k … 2k-1 close the same kind.
        kinds: The number of kinds, k.
        depth: The maximal number of open brackets.

    Returns:
        For each position the kind that the next bracket closes, :data:`IGNORE_INDEX` if it opens or there is none; and
        the distance from that bracket to the one it closes, 0 if there is none.

    Raises:
        DataError: If the string is not well nested, too deep, or has another symbol.

    Example:
        >>> closing_targets([0, 1, 3, 2], kinds=2, depth=4)
        ([-100, 1, 0, -100], [0, 1, 3, 0])
    """
    kind, distance = [IGNORE_INDEX] * len(string), [0] * len(string)
    opened: list[int] = []
    for place, bracket in enumerate(string):
        if not 0 <= bracket < 2 * kinds:
            raise DataError(f"bracket {place + 1} is {bracket}; expected 0 to {2 * kinds - 1}")
        if bracket < kinds:
            opened.append(place)
            if len(opened) > depth:
                raise DataError(f"bracket {place + 1} opens level {depth + 1}; expected at most {depth}")
            continue
        if not opened or string[opened[-1]] != bracket - kinds:
            before = f"kind {string[opened[-1]]} was opened last" if opened else "nothing is open"
            raise DataError(f"bracket {place + 1} closes kind {bracket - kinds}, but {before}")
        kind[place - 1] = bracket - kinds
        distance[place - 1] = place - opened.pop()
    if opened:
        raise DataError(f"bracket {opened[-1] + 1} is never closed; close every bracket")
    return kind, distance


@dataclass(frozen=True)
class BracketBatch(Batch):
    """Padded strings."""

    brackets: Tensor
    """Shape (batch, time), int64; 0 after a string's end."""
    closing: Tensor
    """The kind that the next bracket closes, :data:`IGNORE_INDEX` if none, shape (batch, time), int64."""
    distances: Tensor
    """From that bracket to the one it closes, 0 if none, shape (batch, time), int64."""
    lengths: Tensor
    """The number of brackets of each string, shape (batch,), int64."""


@dataclass(frozen=True)
class EncodedBrackets(EncodedSequences):
    """A split of bracket strings."""

    @classmethod
    def encode(cls, strings: Sequence[Sequence[int]], kinds: int, depth: int) -> EncodedBrackets:
        """Find the targets of all strings; DataError if there is none, or one is empty or not well nested."""
        rows = []
        for number, string in enumerate(strings, 1):
            try:
                rows.append((string, *closing_targets(string, kinds, depth)))
            except DataError as error:
                raise DataError(f"string {number}: {error}") from None
        return cls.from_rows(rows)

    def select(self, which: Tensor) -> BracketBatch:
        """Return the strings with these indices as a batch."""
        (brackets, closing, distances), lengths = self.gather(which, (0, IGNORE_INDEX, 0))
        return BracketBatch(brackets, closing, distances, lengths)
