"""Kneser-Ney smoothing of nltk that counts once, before it predicts; the formulas are those of ``ngram_lm.py``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import repeat

from nltk.lm.smoothing import KneserNey

__all__ = ["ModifiedKneserNey", "TabulatedKneserNey"]


class TabulatedKneserNey(KneserNey):
    """Tabulates the number of different words before each n-gram once, after the text has been counted."""

    @cached_property
    def before(self) -> dict[tuple[str, ...], Counter[str]]:
        """For each context, how many different words stand before it and each word that follows it."""
        found: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for length in range(2, self._order + 1):
            for prefix, words in self.counts[length].items():
                found[prefix[1:]].update(words.keys())
        return found

    @cached_property
    def totals(self) -> dict[tuple[str, ...], int]:
        """The same, summed over the words that follow."""
        return {context: words.total() for context, words in self.before.items()}

    def _continuation_counts(self, word: str, context: tuple[str, ...] = ()) -> tuple[int, int]:
        return self.before[context][word], self.totals[context]


class ModifiedKneserNey(TabulatedKneserNey):
    """Takes off a discount of its own from what was counted once, twice, and more often."""

    @cached_property
    def parts(self) -> dict[tuple[str, ...], tuple[int, float]]:
        """The total of the counts after each context, and what is taken off them in all."""
        return {
            context: (sum(counts), sum(map(self._discount, counts, repeat(len(context) + 1))))
            for context, counts in self._counts()
        }

    @cached_property
    def discounts(self) -> dict[int, tuple[float, float, float]]:
        """d_1, d_2 and d_3 of the k-grams of each length."""
        seen: dict[int, Counter[int]] = defaultdict(Counter)
        for context, counts in self._counts():
            seen[len(context) + 1].update(counts)
        return {length: _discounts(times, self.discount) for length, times in seen.items()}

    def _counts(self) -> Iterator[tuple[tuple[str, ...], list[int]]]:
        for context, words in self.counts[self._order].items():
            yield context, list(words.values())
        for context, words in self.before.items():
            if 0 < len(context) < self._order - 1:
                yield context, list(words.values())

    def _discount(self, count: int, length: int) -> float:
        return self.discounts[length][min(count, 3) - 1] if count else 0.0

    def alpha_gamma(self, word: str, context: tuple[str, ...]) -> tuple[float, float]:
        """Return the discounted share of a word after a context, and the share that is left to shorter contexts."""
        longest = len(context) + 1 == self._order
        count = self.counts[context][word] if longest else self.before[context][word]
        total, taken = self.parts[context]
        return (count - self._discount(count, len(context) + 1)) / total, taken / total


def _discounts(times: Mapping[int, int], otherwise: float) -> tuple[float, float, float]:
    """Estimate d_1, d_2 and d_3 from the numbers of k-grams that were counted once, twice, three and four times."""
    once, twice, thrice, four = (times.get(count, 0) for count in (1, 2, 3, 4))
    if not (once and twice and thrice and four):
        return otherwise, otherwise, otherwise
    share = once / (once + 2 * twice)
    found = 1 - 2 * share * twice / once, 2 - 3 * share * thrice / twice, 3 - 4 * share * four / thrice
    return max(found[0], 0.0), max(found[1], 0.0), max(found[2], 0.0)
