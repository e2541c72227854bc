"""Evaluation of a way to score phrases: its correlation with the labels, and its cost.

The cost is processor time in units of one run of the network over the sentences, so it depends neither on the machine
nor on other programs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from unrolled.lab.papers.analyses.attribution_methods.labelled_phrases import LENGTH_RANGES, LabelledPhrases
from unrolled.lab.papers.analyses.attribution_methods.phrase_scores import (
    PolarityModel,
    attribution_scores,
    contextual_decomposition_scores,
    expansion_error,
    expansion_scores,
    gradient_times_input,
    integrated_gradients,
    isolated_scores,
)
from unrolled.lab.papers.analyses.attribution_methods.word_sums import word_sum_scores
from unrolled.lab.papers.analyses.faithfulness.processor_time import least_time, timed
from unrolled.lab.papers.framework.bootstrap import Correlation

__all__ = [
    "ACCOUNT",
    "ALONE",
    "AT_PHRASE_END",
    "CONTEXTUAL_DECOMPOSITION",
    "GRADIENT_TIMES_INPUT",
    "INTEGRATED_GRADIENTS",
    "RANDOM",
    "RELEVANCE",
    "evaluate_method",
    "time_one_run",
]

ALONE, RANDOM = "the phrase alone", "random"
INTEGRATED_GRADIENTS, GRADIENT_TIMES_INPUT = "integrated gradients", "gradient x input"
CONTEXTUAL_DECOMPOSITION = "contextual decomposition"
ACCOUNT, RELEVANCE = "account", "LRP"
"""``account`` reads by the default expansion, ``account, EXPANSION`` by another one."""
AT_PHRASE_END = ", at the phrase's end"
"""Suffix to the name of a method that otherwise reads the end of the sentence."""
_ROWS = 512  # interpolated sentences in a batch of integrated gradients
_SUMS = (ACCOUNT, RELEVANCE)
_NOT_EXPANSIONS = (ALONE, RANDOM, INTEGRATED_GRADIENTS, GRADIENT_TIMES_INPUT, CONTEXTUAL_DECOMPOSITION, *_SUMS)

Scorer = Callable[[PolarityModel, LabelledPhrases], tuple[Tensor, ...]]
"""Scores phrases; an expansion also scores the n-grams' own terms."""


def time_one_run(reader: PolarityModel, phrases: LabelledPhrases) -> float:
    """Measure the seconds of processor time of a run of the network over the sentences, the least of three."""
    return least_time(partial(reader.polarities, phrases.sentences))


def evaluate_method(
    method: str, reader: PolarityModel, phrases: LabelledPhrases, once: float, draws: int, steps: int
) -> dict[str, Any]:
    """Score phrases by a method named here or by an expansion, and correlate the scores with the labels.

    ``once`` comes from :func:`time_one_run`, ``draws`` is the number of resamples, ``steps`` that of integrated
    gradients. The result holds JSON types only. Each correlation is followed by its interval: ``pearson``,
    ``spearman``, and ``by_length`` for each of :data:`LENGTH_RANGES` (None for fewer than two phrases). ``draws`` are
    those of Pearson's, and ``cost`` is in runs. An expansion adds ``ngram``, for the n-grams' own terms, and
    ``error``, the mean and median error of the sum of terms at the last state; of an even number of sentences, the
    median is torch's, the lower of the two in the middle.
    """
    scorer = _scorer(method, steps)
    scorer(reader, phrases.first())  # work that only the first call does is not part of the cost
    scores, seconds = timed(partial(scorer, reader, phrases))
    found = {**_correlations(phrases, draws, *scores), "cost": round(seconds / once, 2)}
    if not method.startswith(_NOT_EXPANSIONS):
        error = expansion_error(reader, phrases.sentences, method)
        found["error"] = [float(f"{value:.4g}") for value in (error.mean(), error.median())]
    return found


def _scorer(method: str, steps: int) -> Scorer:
    """Find the function of a method; its imports happen here, before the time is measured."""
    name, at_phrase_end, _ = method.partition(AT_PHRASE_END)
    end = not at_phrase_end
    if name == ALONE:
        return lambda reader, phrases: (isolated_scores(reader, phrases),)
    if name == CONTEXTUAL_DECOMPOSITION:
        return lambda reader, phrases: (contextual_decomposition_scores(reader, phrases, to_the_end=end),)
    if name.startswith(_SUMS):
        return lambda reader, phrases: (word_sum_scores(reader, phrases, name, to_the_end=end),)
    if name == RANDOM:
        generator = torch.Generator().manual_seed(0)
        return lambda _, phrases: (torch.rand(len(phrases), generator=generator, dtype=torch.float64),)
    if name in (GRADIENT_TIMES_INPUT, INTEGRATED_GRADIENTS):
        simple = name == GRADIENT_TIMES_INPUT
        attribute, size = (
            (gradient_times_input, 64) if simple else (integrated_gradients(steps), max(1, _ROWS // steps))
        )
        return lambda reader, phrases: (attribution_scores(reader, phrases, attribute, to_the_end=end, size=size),)
    return lambda reader, phrases: expansion_scores(reader, phrases, name)


def _correlations(phrases: LabelledPhrases, draws: int, scores: Tensor, ngrams: Tensor | None = None) -> dict[str, Any]:
    """Correlate scores with labels, overall and by length, to four digits."""

    def rounded(correlation: Correlation) -> list[float]:
        return [round(value, 4) for value in (correlation.value, *correlation.interval)]

    overall = phrases.agreement(scores, draws=draws)
    ranges = [phrases.of_length(low, high) for low, high in LENGTH_RANGES]
    found: dict[str, Any] = {
        "pearson": rounded(overall),
        "draws": [round(value, 4) for value in overall.draws],
        "spearman": rounded(phrases.agreement(scores, ranked=True, draws=draws)),
        "by_length": [
            rounded(phrases.agreement(scores, which=which, draws=draws)) if which.sum() > 1 else None
            for which in ranges
        ],
    }
    if ngrams is not None:
        found["ngram"] = rounded(phrases.agreement(ngrams, draws=draws))
    return found
