r"""How many words two texts share, and how rare these are.

.. math:: \frac{|q \cap a|}{|q|}, \qquad
    \frac{\sum_{w \in q \cap a} \mathrm{idf}(w)}{\sum_{w \in q} \mathrm{idf}(w)}, \qquad \log |a|, \qquad
    \mathrm{idf}(w) = \log \frac{N + 1}{n_w + 1}

q and a are sets of words in the first two, without regard to case; the length is counted with repeats. n_w of the N
training sentences have the word w, which may be none: a name that nobody has seen weighs most.

Source:
    Yang, Yih and Meek (2015), https://aclanthology.org/D15-1237, section 4: "word count" and "weighted word count";
    they too add the lengths. The two are shares here, so that questions of any length compare.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from unrolled.errors import DataError

__all__ = ["SHAPES", "WordOverlap", "word_shape"]


@dataclass(frozen=True)
class WordOverlap:
    """What is known of words' rarity."""

    sentences: int
    """N."""
    counts: Mapping[str, int]
    """n_w, of every word that occurs, lower-cased."""

    feature_count = 3
    """How many numbers :meth:`features` gives."""

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sequence[str]]) -> Self:
        """Count in how many sentences each word occurs.

        Args:
            sentences: their tokens.

        Returns:
            The counts.
        """
        counts: Counter[str] = Counter()
        total = 0
        for total, tokens in enumerate(sentences, start=1):  # noqa: B007  # how many there were
            counts.update({token.lower() for token in tokens})
        return cls(total, dict(sorted(counts.items())))

    def features(self, question: Sequence[str], sentence: Sequence[str]) -> tuple[float, float, float]:
        """Compare two texts.

        Args:
            question: the tokens of q, at least one.
            sentence: the tokens of a, at least one.

        Returns:
            The share of shared words, their share weighed by rarity, and the logarithm of a's length.
        """
        asked, read = ({token.lower() for token in tokens} for tokens in (question, sentence))
        shared = asked & read
        whole = sum(map(self._rarity, sorted(asked)))
        # every word of the question is in every sentence: none of them is worth anything
        weighed = sum(map(self._rarity, sorted(shared))) / whole if whole else 0.0
        return len(shared) / len(asked), weighed, math.log(len(sentence))

    def _rarity(self, word: str) -> float:
        return math.log((self.sentences + 1) / (self.counts.get(word, 0) + 1))

    def to_record(self) -> dict[str, Any]:
        """Give the counts in JSON's types.

        Returns:
            What :meth:`from_record` takes back.
        """
        return {"sentences": self.sentences, "counts": dict(self.counts)}

    @classmethod
    def from_record(cls, record: object) -> Self:
        """Take back what :meth:`to_record` gave.

        Args:
            record: read from a file that may have been touched since.

        Returns:
            The counts.

        Raises:
            DataError: when these are no counts.
        """
        match record:
            case {"sentences": int(sentences), "counts": dict(counts)} if all(
                isinstance(count, int) and 0 < count <= sentences for count in counts.values()
            ):
                return cls(sentences, counts)
        raise DataError(f'overlap is {str(record)[:40]}; expected "sentences" and the "counts" of words in them')


SHAPES = ("", "lower", "Capital", "UPPER", "miXed", "1985", "b4", ".")
"""An example of each shape by its index; 0 is padding."""


def word_shape(token: str) -> int:
    """Tell a token's shape.

    Args:
        token: as it is written.

    Returns:
        An index into :data:`SHAPES`, from 1 on.

    Example:
        >>> [SHAPES[word_shape(token)] for token in ("Ms.", "EU", "of", "22-year-old", "3,000", "-")]
        ['Capital', 'UPPER', 'lower', 'b4', '1985', '.']
    """
    letters = "".join(sign for sign in token if sign.isalpha())
    if any(sign.isdigit() for sign in token):
        shape = "b4" if letters else "1985"
    elif not letters:
        shape = "."
    elif letters == letters.lower():
        shape = "lower"
    elif letters == letters.upper():
        shape = "UPPER"
    elif letters[1:] == letters[1:].lower():
        shape = "Capital"
    else:
        shape = "miXed"
    return SHAPES.index(shape)
