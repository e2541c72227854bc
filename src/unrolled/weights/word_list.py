"""The vocabulary of a network from elsewhere: one word a line, a JSON list, or a JSON map to indices.

No word has a fixed place: padding and the unknown word may be anywhere, or missing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from unrolled.errors import DataError, FileError, UsageError

__all__ = ["UNKNOWN_WORDS", "WordList"]

UNKNOWN_WORDS = ("<unk>", "[UNK]", "<UNK>", "UNK", "unk", "<oov>", "[OOV]", "<OOV>")
"""Common names of the unknown word, tried in this order."""


@dataclass(frozen=True)
class WordList:
    """The words of a network and their indices."""

    indices: Mapping[str, int]
    unknown_word: str | None = None
    """The word for all words that are not in the list; None if there is none."""

    @classmethod
    def load(cls, path: Path, unknown_word: str | None = None) -> WordList:
        """Read a list of words.

        Args:
            path: A text file with one word a line, whose line number (from 0) is its index; or a ``.json`` file with a
                list of words, or a map from words to indices.
            unknown_word: The word for all others; by default the first of :data:`UNKNOWN_WORDS` in the list.
        """
        try:
            text = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise FileError(f"{path}: cannot be read: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: expected UTF-8 text; byte {error.start} is not") from error
        indices = _indices(_parse(text, path), path)
        if unknown_word is None:
            unknown_word = next((word for word in UNKNOWN_WORDS if word in indices), None)
        elif unknown_word not in indices:
            raise UsageError(f"the unknown word {unknown_word!r} is not in {path}; expected one of its words")
        return cls(indices, unknown_word)

    def __len__(self) -> int:
        return 1 + max(self.indices.values())

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the indices of tokens: as written, else in lower case, else of the unknown word."""
        return [self._index(token) for token in tokens]

    def unknown(self, tokens: Iterable[str]) -> tuple[str, ...]:
        """Return the tokens that are not in the list, each once, in order of appearance."""
        return tuple(dict.fromkeys(token for token in tokens if self._known(token) is None))

    def _known(self, token: str) -> int | None:
        return self.indices.get(token, self.indices.get(token.lower()))

    def _index(self, token: str) -> int:
        known = self._known(token)
        if known is not None:
            return known
        if self.unknown_word is None:
            raise DataError(
                f"the word {token!r} is not in the vocabulary, which has no word for unknown words; name one with --unk"
            )
        return self.indices[self.unknown_word]


def _parse(text: str, path: Path) -> list[str] | dict[str, int]:
    if path.suffix != ".json":
        return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: expected a whole JSON file; {error}") from error
    if isinstance(found, list) and all(isinstance(word, str) for word in found):
        return found
    if isinstance(found, dict) and all(type(index) is int for index in found.values()):
        return found
    raise DataError(f"{path}: expected a JSON list of words, or a map from words to indices")


def _indices(found: list[str] | dict[str, int], path: Path) -> dict[str, int]:
    if not found:
        raise DataError(f"{path} has no words; expected at least one")
    if isinstance(found, dict):
        if min(found.values()) < 0 or len(set(found.values())) < len(found):
            raise DataError(f"{path}: expected indices that are each used once and not below 0")
        return found
    if len(set(found)) < len(found):
        word, count = Counter(found).most_common(1)[0]
        raise DataError(f"{path} has the word {word!r} {count} times; expected every word once")
    spaced = [word for word in found if len(word.split()) > 1]
    if 2 * len(spaced) > len(found):
        raise DataError(f"{path}: expected one word a line, found {spaced[0]!r}; keep the column of the words alone")
    return {word: index for index, word in enumerate(found)}
