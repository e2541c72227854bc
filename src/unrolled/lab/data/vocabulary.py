"""A vocabulary: the words that a model knows, and their indices.

Unicode writes some letters in two ways: ``é`` is one character, or ``e`` and an accent. Both look alike, and which one
a text holds depends on the program that wrote it. A vocabulary that is made of texts takes both for the first, NFC.
"""

from __future__ import annotations

import heapq
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from unrolled.errors import DataError, UsageError

__all__ = ["PADDING", "UNKNOWN", "UNKNOWN_WORD", "Vocabulary", "compose"]

PADDING = 0
UNKNOWN = 1
UNKNOWN_WORD = "<unk>"
_SPECIAL = ("<pad>", UNKNOWN_WORD)
_FORMAT = "unrolled-vocabulary"
_VERSION = 1


@dataclass(frozen=True)
class Vocabulary:
    """The words that a model knows. Index 0 is padding, index 1 stands for every unknown word.

    Args:
        words: All words in the order of their indices; the first two are ``<pad>`` and ``<unk>``.
        lowercase: Whether tokens are lower-cased before they are looked up.
        composed: Whether tokens are put into Unicode's form NFC, which all words then have. Vocabularies that were
            stored before this setting are not composed, so that their models read what they read before.

    Example:
        >>> vocabulary = Vocabulary.from_texts([["a", "rose", "is", "a", "rose"]])
        >>> vocabulary.encode(["a", "red", "rose"])
        [2, 1, 3]
    """

    words: tuple[str, ...]
    lowercase: bool = False
    composed: bool = False

    def __post_init__(self) -> None:
        if self.words[:2] != _SPECIAL:
            raise DataError(f"a vocabulary begins with {list(self.words[:2])}; expected {list(_SPECIAL)}")
        if len(self._indices) != len(self.words):
            twice = Counter(self.words).most_common(1)[0][0]
            raise DataError(f"a vocabulary contains the word {twice!r} twice; expected every word once")

    @classmethod
    def from_texts(cls, texts: Iterable[Sequence[str]], *, min_count: int = 1, lowercase: bool = False) -> Vocabulary:
        """Collect the words of a corpus, the most frequent first, ties in alphabetical order.

        Args:
            texts: The tokens of each text. Their order does not matter.
            min_count: How often a word must occur to be included.
            lowercase: Whether to ignore case.
        """
        counts: Counter[str] = Counter()
        for tokens in texts:
            counts.update(compose([token.lower() for token in tokens] if lowercase else tokens))
        return cls.from_counts(counts.items(), min_count=min_count, lowercase=lowercase)

    @classmethod
    def from_counts(
        cls,
        counts: Iterable[tuple[str, int]],
        *,
        min_count: int = 1,
        most: int | None = None,
        lowercase: bool = False,
    ) -> Vocabulary:
        """Order words by their counts, the most frequent first, ties in alphabetical order.

        Args:
            counts: Every word once, composed, lower-cased if ``lowercase``, and how often it occurs.
            min_count: How often a word must occur to be included.
            most: The maximal number of words; None for all.
            lowercase: Whether case was ignored.

        Raises:
            UsageError: If ``min_count`` or ``most`` is not positive.
        """
        if min_count < 1:
            raise UsageError(f"min_count is {min_count}; expected 1 or more")
        if most is not None and most < 1:
            raise UsageError(f"most is {most}; expected 1 or more")
        ranked = ((-count, word) for word, count in counts if count >= min_count and word not in _SPECIAL)
        kept = sorted(ranked) if most is None else heapq.nsmallest(most, ranked)
        return cls((*_SPECIAL, *(word for _, word in kept)), lowercase, composed=True)

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, token: object) -> bool:
        return isinstance(token, str) and self._index(token) > UNKNOWN

    def _index(self, token: str) -> int:
        return self.encode([token])[0]

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the indices of tokens; 1 for an unknown token."""
        indices = self._indices
        folded = (token.lower() for token in tokens) if self.lowercase else tokens
        # `or`, since a "<pad>" in a text, which has index 0, is not padding but an unknown word; and since it is fast:
        # a language model looks up a hundred million tokens, of which a word that is known needs no composing
        if self.composed:
            return [indices.get(token) or indices.get(_composed(token)) or UNKNOWN for token in folded]
        return [indices.get(token) or UNKNOWN for token in folded]

    def decode(self, indices: Iterable[int]) -> list[str]:
        """Return the words at these indices; UsageError if an index has no word."""
        words = []
        for index in indices:
            if not 0 <= index < len(self.words):
                raise UsageError(f"no word has index {index}; expected 0 to {len(self.words) - 1}")
            words.append(self.words[index])
        return words

    def unknown(self, tokens: Iterable[str]) -> tuple[str, ...]:
        """Return the unknown tokens, each once, in the order of appearance."""
        return tuple(dict.fromkeys(token for token in tokens if self._index(token) == UNKNOWN))

    def to_record(self) -> dict[str, Any]:
        """Return the vocabulary as a record that JSON can store."""
        folding = {"lowercase": self.lowercase, "composed": self.composed}
        return {"format": _FORMAT, "version": _VERSION, **folding, "words": list(self.words)}

    @classmethod
    def from_record(cls, record: object) -> Vocabulary:
        """Return the vocabulary of a record of :meth:`to_record`; DataError if it is not such a record."""
        if not isinstance(record, dict) or record.get("format") != _FORMAT:
            raise DataError(f'not a vocabulary; expected JSON with "format": "{_FORMAT}"')
        if record.get("version") != _VERSION:
            raise DataError(f"vocabulary version {record.get('version')!r}; expected {_VERSION}")
        words, lowercase, composed = record.get("words"), record.get("lowercase"), record.get("composed", False)
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise DataError('expected "words" to be a list of strings')
        if not isinstance(lowercase, bool):
            raise DataError(f'"lowercase" is {lowercase!r}; expected true or false')
        if not isinstance(composed, bool):
            raise DataError(f'"composed" is {composed!r}; expected true or false')
        return cls(tuple(words), lowercase, composed)


def compose(tokens: Sequence[str]) -> Sequence[str]:
    """Put tokens into Unicode's form NFC; of a string the whole, since an accent is a token of its own in it."""
    if isinstance(tokens, str):
        return _composed(tokens)
    return tokens if all(map(str.isascii, tokens)) else [_composed(token) for token in tokens]


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)
