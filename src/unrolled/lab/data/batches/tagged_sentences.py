"""Batches of tagged sentences."""

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

__all__ = ["EncodedSentences", "TaggedBatch"]


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
