"""A bag of n-grams with a linear classifier: what a network must do better than on a small corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["MOST_TEXTS", "ngram_accuracy"]

MOST_TEXTS = 5000
"""Training texts for which the fit takes about a second."""
_MOST_TOKENS = 300_000
_LONGEST = 3


def ngram_accuracy(train: Sequence[Any], test: Sequence[Any]) -> float | None:
    """Fit a logistic regression on the counts of words, word pairs and triples, and return its accuracy on ``test``.

    Args:
        train: Examples with ``tokens`` and a ``label``.
        test: Examples that are not trained on.

    Returns:
        The share of right labels; None for a corpus that is too large to be fitted in about a second, or whose training
        examples have one label.
    """
    if len({example.label for example in train}) < 2:
        return None
    if len(train) > MOST_TEXTS or sum(len(example.tokens) for example in train) > _MOST_TOKENS:
        return None
    import warnings

    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    counter = CountVectorizer(analyzer=_ngrams, dtype="float64")
    counts = counter.fit_transform(example.tokens for example in train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that has not converged is a fit nevertheless
        fitted = LogisticRegression(C=10.0, max_iter=200).fit(counts, [example.label for example in train])
    answers = fitted.predict(counter.transform(example.tokens for example in test))
    return sum(int(answer) == example.label for answer, example in zip(answers, test, strict=True)) / len(test)


def _ngrams(tokens: Sequence[str]) -> list[str]:
    words = [token.lower() for token in tokens]
    return [" ".join(words[i : i + n]) for n in range(1, _LONGEST + 1) for i in range(len(words) - n + 1)]
