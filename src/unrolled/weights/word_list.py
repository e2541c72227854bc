"""The vocabulary of a network from elsewhere: one word a line, a JSON list, or a JSON map of words and indices.

No word has a fixed place: padding and the unknown word may be anywhere, or missing.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unrolled.errors import DataError, FileError, UsageError

__all__ = ["UNKNOWN_WORDS", "WordList"]

_MORE = re.compile(r".+[\s,;|].*|.*\s.+|(['\"]).+\1", re.DOTALL)
"""A line that holds more than a word: other columns, quotes, or spaces around it."""
_SHOWN = 60  # characters of what a file holds instead

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
                list of words, or a map from words to indices or from indices to words.
            unknown_word: The word for all others; by default the first of :data:`UNKNOWN_WORDS` in the list.
        """
        try:
            text = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise FileError(f"{path}: cannot be read: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}: expected UTF-8 text, a word a line in the order of the embedding's rows, or JSON; byte "
                f"{error.start} is not UTF-8"
            ) from error
        indices = _indices(_parse(text, path), path)
        if unknown_word is None:
            unknown_word = next((word for word in UNKNOWN_WORDS if word in indices), None)
        elif unknown_word not in indices:
            raise UsageError(f"the unknown word {unknown_word!r} is not in {path}; expected one of its words")
        return cls(indices, unknown_word)

    @property
    def words(self) -> Mapping[int, str]:
        """The words by their indices."""
        return {index: word for word, index in self.indices.items()}

    def __len__(self) -> int:
        return 1 + max(self.indices.values())

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the indices of tokens: as written, else in lower case, else of the unknown word.

        A token that is not in the list as written is looked up in Unicode's forms NFC and NFD too, which look alike.
        """
        return [self._index(token) for token in tokens]

    def unknown(self, tokens: Iterable[str]) -> tuple[str, ...]:
        """Return the tokens that are not in the list, each once, in order of appearance."""
        return tuple(dict.fromkeys(token for token in tokens if self._known(token) is None))

    def _known(self, token: str) -> int | None:
        for form in (token, token.lower()):
            written = (form, unicodedata.normalize("NFC", form), unicodedata.normalize("NFD", form))
            if (index := next((self.indices[each] for each in written if each in self.indices), None)) is not None:
                return index
        return None

    def _index(self, token: str) -> int:
        known = self._known(token)
        if known is not None:
            return known
        if self.unknown_word is None:
            raise DataError(
                f"the word {token!r} is not in the vocabulary, which has no word for unknown words; name one with --unk"
            )
        return self.indices[self.unknown_word]


def _parse(text: str, path: Path) -> list[tuple[str, int]]:
    """Return every word with its index, as the file has them."""
    if path.suffix.lower() != ".json":
        words = [line.removesuffix("\r") for line in text.split("\n")]
        while words and not words[-1]:  # blank lines at the end are no words
            words.pop()
        odd = [word for word in words if _MORE.fullmatch(word)]
        if 2 * len(odd) > len(words):
            what = "keep the column of the words alone, without quotes and spaces"
            if _is_json(text):
                what = "a JSON list or map is read from a file whose name ends in .json"
            raise DataError(f"{path}: expected one word a line, found {odd[0][:_SHOWN]!r}; {what}")
        return [(word, index) for index, word in enumerate(words)]
    try:
        found: object = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: expected a whole JSON file; {error}") from error
    if isinstance(found, _Pairs):
        if all(type(index) is int for _, index in found):
            return found
        if all(isinstance(word, str) and key.isdecimal() for key, word in found):
            return [(word, int(key)) for key, word in found]
    elif isinstance(found, list) and all(isinstance(word, str) for word in found):
        return [(word, index) for index, word in enumerate(found)]
    raise DataError(
        f"{path}: expected a JSON list of words, a map from words to indices, or one from indices to words; found "
        f"{_described(found)}"
    )


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("[", "{"):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


class _Pairs(list[tuple[str, Any]]):
    """A JSON map, in which a key may occur twice."""


def _described(found: object) -> str:
    if isinstance(found, _Pairs):
        key, value = found[0]
        return f"a map that begins with {json.dumps(key, ensure_ascii=False)[:_SHOWN]}: {_short(value)}"
    if not isinstance(found, list):
        return _short(found)
    place, odd = next((place, each) for place, each in enumerate(found) if not isinstance(each, str))
    return f"a list with {_short(odd)} at index {place}"


def _short(value: object) -> str:
    if isinstance(value, list):
        return "{…}" if isinstance(value, _Pairs) else "[…]"
    return json.dumps(value, ensure_ascii=False)[:_SHOWN]


def _indices(found: list[tuple[str, int]], path: Path) -> dict[str, int]:
    if not found:
        raise DataError(f"{path} has no words; expected at least one")
    indices = dict(found)
    if len(indices) < len(found):
        twice, count = Counter(word for word, _ in found).most_common(1)[0]
        places = ", ".join(str(index) for word, index in found if word == twice)
        raise DataError(f"{path} has the word {twice!r} {count} times (indices {places}); expected every word once")
    words: dict[int, str] = {}
    for word, index in indices.items():
        if index in words or not 0 <= index < sys.maxsize:
            earlier = f"{_short(words[index])}: {index} and " if index in words else ""
            raise DataError(
                f"{path}: expected indices that are each used once and not below 0, nor beyond 64 bits; found "
                f"{earlier}{_short(word)}: {str(index)[:_SHOWN]}"
            )
        words[index] = word
    return indices
