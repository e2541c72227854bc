"""Words and their indices."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from unrolled.errors import DataError, FileError, UsageError

__all__ = ["PADDING", "UNKNOWN", "UNKNOWN_WORD", "Vocabulary"]

PADDING = 0
UNKNOWN = 1
UNKNOWN_WORD = "<unk>"
_SPECIAL = ("<pad>", UNKNOWN_WORD)
_FORMAT = "unrolled-vocabulary"
_VERSION = 1


@dataclass(frozen=True)
class Vocabulary:
    """The words a network knows: 0 is padding, 1 any word it does not know.

    Args:
        words: all words by index, ``<pad>`` and ``<unk>`` first.
        lowercase: whether words are lower-cased before they are looked up.
    """

    words: tuple[str, ...]
    lowercase: bool = False

    def __post_init__(self) -> None:
        if self.words[:2] != _SPECIAL:
            raise DataError(f"a vocabulary begins with {list(self.words[:2])}; expected {list(_SPECIAL)}")
        if len(self._indices) != len(self.words):
            twice = Counter(self.words).most_common(1)[0][0]
            raise DataError(f"the word {twice!r} stands twice in a vocabulary; expected every word once")

    @classmethod
    def from_texts(cls, texts: Iterable[Sequence[str]], *, min_count: int = 1, lowercase: bool = False) -> Vocabulary:
        """Gather the words of a corpus, the frequent first; equally frequent ones in alphabetical order.

        Args:
            texts: the tokens of each text.
            min_count: how often a word must occur to be known.
            lowercase: whether case is ignored.

        Returns:
            The vocabulary; the same for the same counts, whatever the texts' order.
        """
        counts: Counter[str] = Counter()
        for tokens in texts:
            counts.update(token.lower() if lowercase else token for token in tokens)
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
        """Gather the words of a corpus that was counted, the frequent first; equals in alphabetical order.

        Args:
            counts: every word once, lower-cased where case is ignored, and how often it occurs.
            min_count: how often a word must occur to be known.
            most: how many words to know, the most frequent; all of them when left out.
            lowercase: whether case is ignored.

        Returns:
            The vocabulary; the same for the same counts, whatever their order.

        Raises:
            UsageError: when ``min_count`` or ``most`` is not positive.
        """
        if min_count < 1:
            raise UsageError(f"min_count is {min_count}; expected 1 or more")
        if most is not None and most < 1:
            raise UsageError(f"most is {most}; expected 1 or more")
        ranked = ((-count, word) for word, count in counts if count >= min_count and word not in _SPECIAL)
        kept = sorted(ranked) if most is None else heapq.nsmallest(most, ranked)
        return cls((*_SPECIAL, *(word for _, word in kept)), lowercase)

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, token: object) -> bool:
        return isinstance(token, str) and self._index(token) > UNKNOWN

    def _index(self, token: str) -> int:
        # a text that says "<pad>" means no padding: it is a word we do not know
        return max(UNKNOWN, self._indices.get(token.lower() if self.lowercase else token, UNKNOWN))

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Look up tokens.

        Args:
            tokens: the words of a text.

        Returns:
            Their indices; 1 for each that is not known.
        """
        indices = self._indices
        folded = (token.lower() for token in tokens) if self.lowercase else tokens
        # `or`: as above, but a language model looks up a hundred million tokens
        return [indices.get(token) or UNKNOWN for token in folded]

    def decode(self, indices: Iterable[int]) -> list[str]:
        """Give the words at these indices.

        Args:
            indices: whole numbers from 0 to ``len(self) - 1``.

        Returns:
            The words.

        Raises:
            UsageError: when an index has no word.
        """
        words = []
        for index in indices:
            if not 0 <= index < len(self.words):
                raise UsageError(f"no word has index {index}; expected 0 to {len(self.words) - 1}")
            words.append(self.words[index])
        return words

    def unknown(self, tokens: Iterable[str]) -> tuple[str, ...]:
        """Name the tokens that the vocabulary does not know.

        Args:
            tokens: the words of a text.

        Returns:
            Those read as ``<unk>``, each once, in order of appearance.
        """
        return tuple(dict.fromkeys(token for token in tokens if self._index(token) == UNKNOWN))

    def to_record(self) -> dict[str, Any]:
        """Give the vocabulary in JSON's types.

        Returns:
            What :meth:`from_record` takes back.
        """
        return {"format": _FORMAT, "version": _VERSION, "lowercase": self.lowercase, "words": list(self.words)}

    @classmethod
    def from_record(cls, record: object) -> Vocabulary:
        """Make a vocabulary of what :meth:`to_record` gave.

        Args:
            record: read from a file that may have been touched since.

        Returns:
            The vocabulary.

        Raises:
            DataError: when it is not a vocabulary of ours.
        """
        if not isinstance(record, dict) or record.get("format") != _FORMAT:
            raise DataError(f'not a vocabulary of ours; expected JSON with "format": "{_FORMAT}"')
        if record.get("version") != _VERSION:
            raise DataError(f"vocabulary version {record.get('version')!r}; expected {_VERSION}")
        words, lowercase = record.get("words"), record.get("lowercase")
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise DataError('expected "words" to be a list of strings')
        if not isinstance(lowercase, bool):
            raise DataError(f'"lowercase" is {lowercase!r}; expected true or false')
        return cls(tuple(words), lowercase)

    def save(self, path: Path) -> None:
        """Write the vocabulary as JSON.

        Args:
            path: the file to write.

        Raises:
            FileError: when it cannot be written.
        """
        try:
            path.write_text(json.dumps(self.to_record(), ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
        except OSError as error:
            raise FileError(f"{path}: cannot be written: {error.strerror or error}") from None

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read a vocabulary that :meth:`save` wrote.

        Args:
            path: the JSON file.

        Returns:
            The vocabulary.

        Raises:
            FileError: when the file cannot be read.
            DataError: when it is truncated or not a vocabulary of ours.
        """
        try:
            record: Any = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
        except ValueError as error:
            raise DataError(f"{path}: expected a whole JSON file; {error}") from None
        try:
            return cls.from_record(record)
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
