r"""Count models: the probability of a word from how often it followed the n - 1 words before it.

Maximum likelihood, count(w_{t-n+1} … w_t) / count(w_{t-n+1} … w_{t-1}), or interpolated Kneser-Ney,

.. math::
    p_k(w \mid h) = \frac{\max(c_k(h w) - d, 0)}{\sum_{w'} c_k(h w')}
        + \frac{d\, |\{w' : c_k(h w') > 0\}|}{\sum_{w'} c_k(h w')}\; p_{k-1}(w \mid h')

where c_k counts occurrences for k = n, and below that the different words seen before h w. Both are nltk's, which goes
through all contexts to count these words, for each prediction anew; here they are tabulated once.

A text is running text: line ends are words, and a context reaches beyond them. Before the first word there is
nothing, n - 1 times, which stands in contexts and is never predicted; so every n-gram ends a longer one, and
probabilities sum to 1.

Source:
    Kneser and Ney (1995), Improved backing-off for m-gram language modeling; Chen and Goodman (1998), section 2.7.
    The library is nltk.lm.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.vocabulary import UNKNOWN_WORD, Vocabulary

__all__ = ["NGramLanguageModel"]

_NOTHING = "<pad>"  # in no vocabulary as a word of a text


class NGramLanguageModel:
    """An n-gram model of counts.

    Args:
        order: n; 2 for bigrams, 3 for trigrams.
        smoothing: none for maximum likelihood, for which a text with an n-gram never seen is impossible.
        discount: d of Kneser-Ney.

    Raises:
        UsageError: when the order is below 2, or the discount outside 0 to 1; or nltk is not installed.

    Example:
        >>> model = NGramLanguageModel(2).fit([["a", "rose", "is", "a", "rose", "<eos>"]])
        >>> round(model.probability("rose", ["a"]), 3)
        0.7
    """

    def __init__(
        self, order: int, smoothing: Literal["none", "kneser-ney"] = "kneser-ney", discount: float = 0.75
    ) -> None:
        if order < 2:
            raise UsageError(f"order is {order}; expected 2 or more")
        if not 0 <= discount <= 1:
            raise UsageError(f"discount is {discount}; expected 0 to 1")
        self.order = order
        self.smoothing = smoothing
        self.discount = discount
        self.vocabulary = Vocabulary((_NOTHING, UNKNOWN_WORD))
        self._model: Any = None

    def fit(self, text: Iterable[Sequence[str]], vocabulary: Vocabulary | None = None) -> NGramLanguageModel:
        """Count a text.

        Args:
            text: its words, line by line.
            vocabulary: what is known; all words of the text when left out, which are gathered in a pass of their own.

        Returns:
            The model itself.

        Raises:
            DataError: when the text has no words, or more different n-grams than nltk takes.
        """
        self.vocabulary = vocabulary or Vocabulary.from_texts(text)
        self._model = _make(self.order, self.smoothing, self.discount)
        try:
            self._model.counts.update([gram[cut:] for cut in range(self.order)] for gram in self._grams(text))
        except ValueError:  # nltk's guard of memory
            raise DataError(
                "a text has more different n-grams than nltk takes; "
                f"expected a shorter text, or an order below {self.order}"
            ) from None
        if not self._model.counts.unigrams:
            raise DataError("a text has no words; expected at least one")
        return self

    def probability(self, word: str, context: Sequence[str]) -> float:
        """Say how likely a word is.

        Args:
            word: which; one that is not known is ``<unk>``.
            context: the words before it, the last n - 1 of which matter; fewer at a text's beginning.

        Returns:
            Its probability.

        Raises:
            UsageError: when nothing was counted yet.
        """
        if self._model is None:
            raise UsageError("a count model was asked before it was fitted; expected fit(text) first")
        word, *known = self.vocabulary.decode(self.vocabulary.encode((word, *context)))
        nothing = [_NOTHING] * (self.order - 1)
        return float(self._model.unmasked_score(word, tuple([*nothing, *known][1 - self.order :])))

    def perplexity(self, text: Iterable[Sequence[str]]) -> float:
        """Measure the model on a text: exp of the mean negative log-probability of its words, line ends among them.

        Args:
            text: its words, line by line.

        Returns:
            The perplexity; infinite when a word is impossible.

        Raises:
            DataError: when the text has no words.
            UsageError: when nothing was counted yet.
        """
        if self._model is None:
            raise UsageError("a count model was asked before it was fitted; expected fit(text) first")
        nats = 0.0
        grams = Counter(self._grams(text))
        for (*context, word), count in grams.items():
            probability = self._model.unmasked_score(word, tuple(context))
            if not probability:
                return math.inf
            nats -= count * math.log(probability)
        if not grams:
            raise DataError("a text has no words; expected at least one")
        return math.exp(nats / grams.total())

    def _grams(self, text: Iterable[Sequence[str]]) -> Iterator[tuple[str, ...]]:
        """Give the n-gram that ends at each word."""
        last = deque([_NOTHING] * self.order, maxlen=self.order)
        for line in text:
            for word in self.vocabulary.decode(self.vocabulary.encode(line)):
                last.append(word)
                yield tuple(last)


def _make(order: int, smoothing: str, discount: float) -> Any:
    """Make the model of nltk."""
    try:
        from nltk.lm import MLE  # type: ignore[import-untyped]  # no stubs
        from nltk.lm.models import InterpolatedLanguageModel  # type: ignore[import-untyped]  # no stubs
        from nltk.lm.smoothing import KneserNey  # type: ignore[import-untyped]  # no stubs
    except ImportError:
        raise UsageError("count models need nltk; expected pip install 'unrolled[tasks]'") from None

    class Tabulated(KneserNey):
        """Counts the different words before each n-gram once, when all of the text is known."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.before: Counter[tuple[str, ...]] | None = None
            self.totals: Counter[tuple[str, ...]] = Counter()

        def _continuation_counts(self, word: str, context: tuple[str, ...] = ()) -> tuple[int, int]:
            if self.before is None:
                self.before = Counter()
                for length in range(2, order + 1):
                    for prefix, words in self.counts[length].items():
                        self.totals[prefix[1:]] += len(words)
                        self.before.update((*prefix[1:], each) for each in words)
            return self.before[(*context, word)], self.totals[context]

    if smoothing == "none":
        return MLE(order)
    return InterpolatedLanguageModel(Tabulated, order, params={"discount": discount, "order": order})
