"""Tagged sentences in numbers."""

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
    """Some sentences, side by side; all is 0 behind a sentence's end."""

    tokens: Tensor
    """Word indices, shape (batch, time), int64."""
    shapes: Tensor
    """The shapes of the words as they were written, shape (batch, time), int64."""
    tags: Tensor
    """Indices of tags, shape (batch, time), int64."""
    lengths: Tensor
    """How many tokens each sentence has, shape (batch,), int64."""


@dataclass(frozen=True)
class EncodedSentences(EncodedSequences):
    """A corpus of tagged sentences: of every token its word, its shape and its tag."""

    @classmethod
    def encode(
        cls, examples: Sequence[TaggedSentence], vocabulary: Vocabulary, tags: Sequence[str], spans: bool
    ) -> EncodedSentences:
        """Look up all words and tags.

        Args:
            examples: the sentences.
            vocabulary: where to look for words.
            tags: the tags that are known, in the order of their indices.
            spans: whether they spell spans, in IOBES.

        Returns:
            The sentences in numbers.

        Raises:
            DataError: when there is none, one is empty, or has a tag that is not known or cannot stand where it does.
        """
        index = {tag: number for number, tag in enumerate(tags)}
        rows = []
        for number, example in enumerate(examples, 1):
            for tag in example.tags:
                if tag not in index:
                    raise DataError(
                        f"sentence {number} has the tag {tag!r}, which training has not seen; expected one of: "
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
        """Lay some sentences side by side.

        Args:
            which: their numbers, shape (batch,), int64.

        Returns:
            The batch, as wide as its longest sentence.
        """
        (tokens, shapes, tags), lengths = self.gather(which, (PADDING, 0, 0))
        return TaggedBatch(tokens, shapes, tags, lengths)
