"""How an estimator splits texts and numbers their words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import UsageError, kind_of
from unrolled.lab.data.tokenise import tokenise
from unrolled.lab.data.vocabulary import UNKNOWN, Vocabulary
from unrolled.weights.tokenizer import Tokenizer

__all__ = ["LearnedWords"]


@dataclass(frozen=True)
class LearnedWords:
    """A way to split texts, with the words that the training texts hold or that the tokenizer knows."""

    splitter: Callable[[str], Sequence[str]] | Tokenizer
    vocabulary: Vocabulary | None
    """None if the tokenizer numbers its words itself; index 0 of the model is then padding, and k + 1 its word k."""

    @classmethod
    def learn(cls, texts: Sequence[str], tokenizer: Any, min_count: int) -> LearnedWords:
        """Collect the words of training texts, or take those of a tokenizer."""
        if isinstance(tokenizer, str | os.PathLike) or hasattr(tokenizer, "encode"):
            return cls(Tokenizer.of(tokenizer), None)
        if tokenizer is not None and not callable(tokenizer):
            raise UsageError(
                f"tokenizer is {kind_of(tokenizer)}; expected None, a function, the path of a tokenizer.json, "
                "or an object with encode"
            )
        split = tokenizer or tokenise
        found = [_words_by(split, text) for text in texts]
        words = Vocabulary.from_texts(found, min_count=min_count, lowercase=tokenizer is None)
        if min_count > 1 and len(words) == UNKNOWN + 1:
            raise UsageError(
                f"min_count is {min_count}, and no word of the texts occurs so often: all would be unknown"
            )
        return cls(split, words)

    def __len__(self) -> int:
        if self.vocabulary is not None:
            return len(self.vocabulary)
        assert isinstance(self.splitter, Tokenizer)
        return len(self.splitter) + 1

    def split(self, text: str) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """Return the words of a text and their indices.

        Raises:
            UsageError: If the text has no words.
        """
        if isinstance(self.splitter, Tokenizer):
            words, numbers = self.splitter.encode(text)
            indices = [number + 1 for number in numbers]
        else:
            assert self.vocabulary is not None
            words = _words_by(self.splitter, text)
            indices = self.vocabulary.encode(words)
        if not words:
            raise UsageError(f"the text {text[:40]!r} has no words; expected at least one in each")
        return words, np.array(indices, dtype=np.int64)

    def unknown(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the words that no training text holds; a tokenizer of Hugging Face splits such words itself."""
        return () if self.vocabulary is None else self.vocabulary.unknown(words)


def _words_by(splitter: Callable[[str], Any], text: str) -> tuple[str, ...]:
    """Return the words that a function makes of a text; a string would be read as its letters, a set in any order."""
    found = splitter(text)
    expected = f"of the text {text[:40]!r}; expected a list of its words, such as its split()"
    if isinstance(found, str):
        raise UsageError(f"tokenizer makes the string {found[:40]!r} {expected}")
    if isinstance(found, Mapping | set | frozenset) or not isinstance(found, Iterable):
        raise UsageError(f"tokenizer makes {kind_of(found)} {expected}")
    words = tuple(found)
    if odd := [each for each in words if not isinstance(each, str)]:
        raise UsageError(f"tokenizer makes {kind_of(odd[0])} a word {expected}")
    return words
