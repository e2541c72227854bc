"""N-grams that are associated with the label of the texts that end with them.

Source:
    Sun and Lu, Sequence-level features (2020), section 5.1.2, the n-grams of figures 3 and 5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from unrolled.lab.data.corpus import Example

__all__ = ["AssociatedNgrams", "associated_ngrams"]


class AssociatedNgrams(NamedTuple):
    """N-grams of one order, their words separated by spaces, the most frequent first."""

    positive: tuple[str, ...]
    negative: tuple[str, ...]


def associated_ngrams(examples: Iterable[Example], order: int, least: int, share: float, most: int) -> AssociatedNgrams:
    """Find the n-grams that end at least ``least`` texts, at least ``share`` of them with the same label.

    Keeps the ``most`` frequent n-grams of each label (1 positive, 0 negative) and ignores case. The paper does not
    say how it measures association, nor which threshold it uses; the share of a label is our choice.
    """
    seen: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for example in examples:
        words = tuple(token.lower() for token in example.tokens[-order:])
        # a token may contain a no-break space, as "2 1/2" does; the joined n-gram would then split into more words
        if len(words) == order and len((ngram := " ".join(words)).split()) == order:
            seen[example.label][ngram] += 1
    found: dict[int, list[str]] = {0: [], 1: []}
    total = seen[0] + seen[1]
    for ngram, count in sorted(total.items(), key=lambda item: (-item[1], item[0])):
        for label, ngrams in found.items():
            if count >= least and seen[label][ngram] >= share * count and len(ngrams) < most:
                ngrams.append(ngram)
    return AssociatedNgrams(tuple(found[1]), tuple(found[0]))
