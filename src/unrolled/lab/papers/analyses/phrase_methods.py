"""Ways to score a phrase, by name, and what one of them comes to: agreement with the labels, and its price.

A price is processor time in units of one run of the network over the sentences, so that neither the machine nor other
programs on it decide it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from unrolled.lab.papers.analyses.phrase_lengths import SPANS
from unrolled.lab.papers.analyses.phrase_scores import (
    Reader,
    alone,
    by_contextual_decomposition,
    by_expansion,
    by_gradients,
    error_at_the_end,
    gradient_times_input,
    integrated_gradients,
)
from unrolled.lab.papers.analyses.phrases import Phrases
from unrolled.lab.papers.framework.bootstrap import Correlation

__all__ = [
    "ALONE",
    "AT_ITS_END",
    "CONTEXTUAL_DECOMPOSITION",
    "GRADIENT_TIMES_INPUT",
    "INTEGRATED_GRADIENTS",
    "RANDOM",
    "measure",
    "one_run",
]

ALONE, RANDOM = "the phrase alone", "random"
INTEGRATED_GRADIENTS, GRADIENT_TIMES_INPUT = "integrated gradients", "gradient x input"
CONTEXTUAL_DECOMPOSITION = "contextual decomposition"
AT_ITS_END = ", at the phrase's end"
"""Behind the name of a method that otherwise reads the end of the sentence."""
_ROWS = 512  # how many interpolated sentences are in a batch of integrated gradients
_NOT_EXPANSIONS = (ALONE, RANDOM, INTEGRATED_GRADIENTS, GRADIENT_TIMES_INPUT, CONTEXTUAL_DECOMPOSITION)

Score = Callable[[Reader, Phrases], tuple[Tensor, ...]]
"""Gives scores of the phrases; an expansion gives those of the n-grams themselves too."""


def one_run(reader: Reader, phrases: Phrases) -> float:
    """Measure what a run of the network over the sentences costs.

    Args:
        reader: the classifier.
        phrases: in their sentences.

    Returns:
        Seconds of processor time, the least of three.
    """
    return min(_seconds(partial(reader.polarities, phrases.sentences))[1] for _ in range(3))


def measure(method: str, reader: Reader, phrases: Phrases, once: float, draws: int, steps: int) -> dict[str, Any]:
    """Score phrases and lay the scores beside their labels.

    Args:
        method: one of those named here, or an expansion as ``decompose`` takes it.
        reader: the classifier.
        phrases: in their sentences.
        once: what :func:`one_run` gave.
        draws: how many resamples of the sentences.
        steps: of integrated gradients.

    Returns:
        In JSON's types, each correlation with the ends of its interval: ``pearson``, ``spearman``, ``by_length`` for
        each of :data:`SPANS` (None where there are no two phrases), ``draws`` of Pearson's, and ``cost``; of an
        expansion also ``ngram``, of the n-grams' own terms, and ``error``, how far the terms are from adding up to the
        last state, mean and median.
    """
    scorer = _scorer(method, steps)
    scorer(reader, phrases.first())  # what is done at the first call only is no price of the method
    scores, seconds = _seconds(partial(scorer, reader, phrases))
    found = {**_judge(phrases, draws, *scores), "cost": round(seconds / once, 2)}
    if not method.startswith(_NOT_EXPANSIONS):
        error = error_at_the_end(reader, phrases.sentences, method)
        found["error"] = [float(f"{value:.4g}") for value in (error.mean(), error.median())]
    return found


def _seconds(work: Callable[[], Any]) -> tuple[Any, float]:
    """Do something, and tell how much of the processor's time it took: other programs do not count."""
    began = time.process_time()
    done = work()
    return done, time.process_time() - began


def _scorer(method: str, steps: int) -> Score:
    """Find out how a method scores; what it imports is imported here, before the clock runs."""
    name, at_the_end, _ = method.partition(AT_ITS_END)
    if name == ALONE:
        return lambda reader, phrases: (alone(reader, phrases),)
    if name == CONTEXTUAL_DECOMPOSITION:
        return lambda reader, phrases: (by_contextual_decomposition(reader, phrases, to_the_end=not at_the_end),)
    if name == RANDOM:
        generator = torch.Generator().manual_seed(0)
        return lambda _, phrases: (torch.rand(len(phrases), generator=generator, dtype=torch.float64),)
    if name in (GRADIENT_TIMES_INPUT, INTEGRATED_GRADIENTS):
        simple = name == GRADIENT_TIMES_INPUT
        attribute, size = (
            (gradient_times_input, 64) if simple else (integrated_gradients(steps), max(1, _ROWS // steps))
        )
        return lambda reader, phrases: (by_gradients(reader, phrases, attribute, to_the_end=not at_the_end, size=size),)
    return lambda reader, phrases: by_expansion(reader, phrases, name)


def _judge(phrases: Phrases, draws: int, scores: Tensor, ngrams: Tensor | None = None) -> dict[str, Any]:
    """Correlate scores with labels, by length too; four digits."""

    def told(correlation: Correlation) -> list[float]:
        return [round(value, 4) for value in (correlation.value, *correlation.interval)]

    plain = phrases.agreement(scores, draws=draws)
    spans = [phrases.between(low, high) for low, high in SPANS]
    found: dict[str, Any] = {
        "pearson": told(plain),
        "draws": [round(value, 4) for value in plain.draws],
        "spearman": told(phrases.agreement(scores, ranked=True, draws=draws)),
        "by_length": [
            told(phrases.agreement(scores, which=which, draws=draws)) if which.sum() > 1 else None for which in spans
        ],
    }
    if ngrams is not None:
        found["ngram"] = told(phrases.agreement(ngrams, draws=draws))
    return found
