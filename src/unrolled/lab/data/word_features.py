r"""Features of words beside their indices: the shape of a word, and the words that two texts share.

The overlap of a question q and a sentence a has three features:

.. math:: \frac{|q \cap a|}{|q|}, \qquad
    \frac{\sum_{w \in q \cap a} \mathrm{idf}(w)}{\sum_{w \in q} \mathrm{idf}(w)}, \qquad \log |a|, \qquad
    \mathrm{idf}(w) = \log \frac{N + 1}{n_w + 1}

In the first two, q and a are sets of words, and case is ignored. The length in the third counts every token. n_w of
the N training sentences contain the word w; n_w may be 0, so an unseen name has the highest weight.

Source:
    Yang, Yih and Meek (2015), https://aclanthology.org/D15-1237, section 4: "word count" and "weighted word count",
    with the lengths. Here the two are shares, so that questions of different lengths are comparable.
    Collobert et al. (2011), Natural Language Processing (Almost) from Scratch, arXiv:1103.0398, section 3.1.2: the
    shape is their "caps" feature, with classes for digits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from unrolled.errors import DataError

__all__ = ["SHAPES", "WordOverlap", "word_shape"]

SHAPES = ("", "lower", "Capital", "UPPER", "miXed", "1985", "b4", ".")
"""An example of each word shape, by its index; 0 is padding."""


def word_shape(token: str) -> int:
    """Return the index in :data:`SHAPES` of a token's shape, from 1 on; pass the token with its case.

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


@dataclass(frozen=True)
class WordOverlap:
    """The overlap of two texts, with the document frequencies of the training sentences."""

    sentences: int
    """The number of training sentences, N."""
    counts: Mapping[str, int]
    """In how many sentences each lower-cased word occurs, n_w."""

    feature_count = 3

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sequence[str]]) -> Self:
        """Count in how many sentences each word occurs."""
        counts: Counter[str] = Counter()
        total = 0
        for total, tokens in enumerate(sentences, start=1):  # noqa: B007  # the number of sentences
            counts.update({token.lower() for token in tokens})
        return cls(total, dict(sorted(counts.items())))

    def features(self, question: Sequence[str], sentence: Sequence[str]) -> tuple[float, float, float]:
        """Return the share of shared words, this share weighted by idf, and the logarithm of the sentence's length."""
        asked, read = ({token.lower() for token in tokens} for tokens in (question, sentence))
        shared = asked & read
        whole = sum(map(self._idf, sorted(asked)))
        # whole is 0 if every word of the question is in every training sentence
        weighted = sum(map(self._idf, sorted(shared))) / whole if whole else 0.0
        return len(shared) / len(asked), weighted, math.log(len(sentence))

    def _idf(self, word: str) -> float:
        return math.log((self.sentences + 1) / (self.counts.get(word, 0) + 1))

    def to_record(self) -> dict[str, Any]:
        """Return the counts as a record that JSON can store."""
        return {"sentences": self.sentences, "counts": dict(self.counts)}

    @classmethod
    def from_record(cls, record: object) -> Self:
        """Return the counts of a record of :meth:`to_record`; DataError if it is not such a record."""
        match record:
            case {"sentences": int(sentences), "counts": dict(counts)} if all(
                isinstance(count, int) and 0 < count <= sentences for count in counts.values()
            ):
                return cls(sentences, counts)
        raise DataError(f'overlap is {str(record)[:40]}; expected "sentences" and the "counts" of words in them')
