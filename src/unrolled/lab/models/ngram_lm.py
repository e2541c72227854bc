r"""N-gram language models: the probability of a word given the n - 1 words before it, from counts.

Maximum likelihood is count(w_{t-n+1} … w_t) / count(w_{t-n+1} … w_{t-1}). Interpolated Kneser-Ney is

.. math::
    p_k(w \mid h) = \frac{\max(c_k(h w) - d, 0)}{\sum_{w'} c_k(h w')}
        + \frac{d\, |\{w' : c_k(h w') > 0\}|}{\sum_{w'} c_k(h w')}\; p_{k-1}(w \mid h')

where c_k counts occurrences for k = n, and for smaller k the different words seen before h w. Both models are nltk's.
nltk counts these words for each prediction by a pass over all contexts; here they are tabulated once.

Modified Kneser-Ney takes off another d from what was counted once, twice, and more often, and estimates each for each k
from n_1 … n_4, the numbers of k-grams that were counted once … four times:

.. math:: Y = n_1 / (n_1 + 2 n_2), \quad d_1 = 1 - 2 Y n_2 / n_1, \quad d_2 = 2 - 3 Y n_3 / n_2,
    \quad d_3 = 3 - 4 Y n_4 / n_3

A text is running text: line ends are words, and contexts reach across them. The n - 1 positions before the first word
hold a token that is never predicted; so every n-gram is the end of a longer one, and probabilities sum to 1.

Source:
    Kneser and Ney (1995), Improved backing-off for m-gram language modeling; Chen and Goodman (1998), sections 2.7
    and 3.
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

_START = "<pad>"  # before the first word of a text; no vocabulary has it as a word


class NGramLanguageModel:
    """An n-gram language model.

    Args:
        order: n; 2 for bigrams, 3 for trigrams.
        smoothing: ``"none"`` is maximum likelihood, under which a text with an unseen n-gram has probability 0.
        discount: d of Kneser-Ney; of the modified one, for those k of which a text is too short to estimate it.

    Raises:
        UsageError: The order is below 2, or the discount is outside 0 to 1.

    Example:
        >>> model = NGramLanguageModel(2).fit([["a", "rose", "is", "a", "rose", "<eos>"]])
        >>> round(model.probability("rose", ["a"]), 3)
        0.7
    """

    def __init__(
        self,
        order: int,
        smoothing: Literal["none", "kneser-ney", "modified kneser-ney"] = "kneser-ney",
        discount: float = 0.75,
    ) -> None:
        if order < 2:
            raise UsageError(f"order is {order}; expected 2 or more")
        if not 0 <= discount <= 1:
            raise UsageError(f"discount is {discount}; expected 0 to 1")
        self.order = order
        self.smoothing = smoothing
        self.discount = discount
        self.vocabulary = Vocabulary((_START, UNKNOWN_WORD))
        self._model: Any = None

    def fit(self, text: Iterable[Sequence[str]], vocabulary: Vocabulary | None = None) -> NGramLanguageModel:
        """Count a text, given line by line.

        Args:
            text: The words of each line.
            vocabulary: The known words; all words of the text, collected in a separate pass, when omitted.

        Returns:
            The model itself.

        Raises:
            DataError: The text has no words, or more different n-grams than nltk can count.
            UsageError: nltk is not installed.
        """
        self.vocabulary = vocabulary or Vocabulary.from_texts(text)
        self._model = _make(self.order, self.smoothing, self.discount)
        try:
            self._model.counts.update([gram[cut:] for cut in range(self.order)] for gram in self._grams(text))
        except ValueError:  # nltk limits its memory
            raise DataError(
                "the text has more different n-grams than nltk can count; "
                f"use a shorter text, or an order below {self.order}"
            ) from None
        if not self._model.counts.unigrams:
            raise DataError("the text has no words; expected at least one")
        return self

    def probability(self, word: str, context: Sequence[str]) -> float:
        """Return the probability of a word after a context.

        Args:
            word: The word; an unknown one is read as ``<unk>``.
            context: The words before it, of which the last n - 1 matter; fewer at the start of a text.

        Returns:
            The probability.

        Raises:
            UsageError: The model is not fitted.
        """
        model = self._fitted()
        word, *known = self.vocabulary.decode(self.vocabulary.encode((word, *context)))
        before = [_START] * (self.order - 1)
        return float(model.unmasked_score(word, tuple([*before, *known][1 - self.order :])))

    def perplexity(self, text: Iterable[Sequence[str]]) -> float:
        """Compute exp of the mean negative log-probability of all words of a text, line ends included.

        Args:
            text: The words of each line.

        Returns:
            The perplexity; infinite if a word has probability 0.

        Raises:
            DataError: The text has no words.
            UsageError: The model is not fitted.
        """
        model = self._fitted()
        nats = 0.0
        grams = Counter(self._grams(text))
        for (*context, word), count in grams.items():
            probability = model.unmasked_score(word, tuple(context))
            if not probability:
                return math.inf
            nats -= count * math.log(probability)
        if not grams:
            raise DataError("the text has no words; expected at least one")
        return math.exp(nats / grams.total())

    def _fitted(self) -> Any:
        """Return the model of nltk."""
        if self._model is None:
            raise UsageError("the n-gram language model is not fitted; call fit(text) first")
        return self._model

    def _grams(self, text: Iterable[Sequence[str]]) -> Iterator[tuple[str, ...]]:
        """Yield the n-gram that ends at each word."""
        last = deque([_START] * self.order, maxlen=self.order)
        for line in text:
            for word in self.vocabulary.decode(self.vocabulary.encode(line)):
                last.append(word)
                yield tuple(last)


def _make(order: int, smoothing: str, discount: float) -> Any:
    """Build the model of nltk."""
    try:
        from nltk.lm import MLE
        from nltk.lm.models import InterpolatedLanguageModel
    except ImportError:
        raise UsageError("n-gram language models need nltk; install it with: pip install 'unrolled[tasks]'") from None
    from unrolled.lab.models.kneser_ney import ModifiedKneserNey, TabulatedKneserNey

    if smoothing == "none":
        return MLE(order)
    kind = ModifiedKneserNey if smoothing == "modified kneser-ney" else TabulatedKneserNey
    return InterpolatedLanguageModel(kind, order, params={"discount": discount, "order": order})
