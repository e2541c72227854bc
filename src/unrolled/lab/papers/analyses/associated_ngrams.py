"""N-grams that tell the label of the texts that end with them.

Source:
    Sun and Lu, Sequence-level features (2020), section 5.1.2, the n-grams of figures 3 and 5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from unrolled.lab.data.corpus import Example

__all__ = ["TellingNgrams", "telling_ngrams"]


@dataclass(frozen=True)
class TellingNgrams:
    """N-grams of one order with spaces between their words, the frequent first."""

    positive: tuple[str, ...]
    negative: tuple[str, ...]


def telling_ngrams(examples: Iterable[Example], order: int, least: int, share: float, most: int) -> TellingNgrams:
    """Find the n-grams after which texts have one label nearly always.

    The paper does not say how association is measured, nor from where on it is strong; here it is the share of a
    label among the texts that end with the n-gram.

    Args:
        examples: texts with label 1 if they are positive, 0 if negative. Case is ignored.
        order: n.
        least: how many texts must end with the n-gram.
        share: how many of them must have the label, above a half.
        most: how many n-grams of each label to keep, the most frequent.

    Returns:
        The n-grams of both labels.
    """
    seen: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for example in examples:
        words = tuple(token.lower() for token in example.tokens[-order:])
        # a word may hold a no-break space, as "2 1/2" does; written out it would be two
        if len(words) == order and len((ngram := " ".join(words)).split()) == order:
            seen[example.label][ngram] += 1
    found: dict[int, list[str]] = {0: [], 1: []}
    total = seen[0] + seen[1]
    for ngram, count in sorted(total.items(), key=lambda item: (-item[1], item[0])):
        for label, ngrams in found.items():
            if count >= least and seen[label][ngram] >= share * count and len(ngrams) < most:
                ngrams.append(ngram)
    return TellingNgrams(tuple(found[1]), tuple(found[0]))
