"""Baselines of a network that was trained: the same answer for every text, and logistic regression on n-grams."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from unrolled.lab.cli.longer_training import longer_training
from unrolled.report.formatting import visible

if TYPE_CHECKING:
    from unrolled.lab.data.corpus import Corpus
    from unrolled.lab.training.data_settings import DataSettings
    from unrolled.lab.training.run_folder import Run

__all__ = ["compare_with_baselines", "note_of_ratings"]

_FEWEST_RATINGS = 3
"""Two numbers, such as 0 and 1, are classes."""


def compare_with_baselines(run: Run, corpus: Corpus[Any], words: Sequence[str], folder: Path) -> None:
    """Say which baselines are as good as a network; then how to train longer.

    Under torchrun the command line is not that of ``unrolled``, and no longer training is named.

    Args:
        run: The training that has ended.
        corpus: Its data.
        words: The command line of the training, behind ``unrolled train``.
        folder: Its run folder, as it was given.
    """
    said = [*_constant_class(run, corpus), *_ngrams(run, corpus), *_constant_rating(run, corpus)]
    for line in said:
        typer.echo(line, err=True)
    if said and "WORLD_SIZE" not in os.environ:
        typer.echo(f"longer:  {visible(longer_training(words, run.settings, folder))}", err=True)


def note_of_ratings(corpus: Corpus[Any], data: DataSettings) -> Iterator[str]:
    """Say what learns an order, if the classes of a user's files are numbers."""
    from unrolled.lab.data.corpus import Classification
    from unrolled.lab.data.load import is_dataset
    from unrolled.lab.data.tables.values import is_number

    if is_dataset(data.data[0]) or not isinstance(corpus, Classification) or len(corpus.labels) < _FEWEST_RATINGS:
        return
    if all(is_number(label) and math.isfinite(float(label.replace(",", "."))) for label in corpus.labels):
        yield (
            f"the {len(corpus.labels):,} labels are numbers, learned as classes without an order; "
            "if they have one, such as stars, `unrolled train regress` learns it"
        )


def _constant_class(run: Run, corpus: Corpus[Any]) -> Iterator[str]:
    from unrolled.lab.data.corpus import Classification

    reached = run.metrics.get("test_accuracy")
    if not isinstance(corpus, Classification) or reached is None or not corpus.test:
        return
    counts = Counter(each.label for each in corpus.test)
    label, count = counts.most_common(1)[0]
    share = count / len(corpus.test)
    if len(counts) > 1 and share >= reached:
        yield (
            f"the same class for every text, {visible(corpus.labels[label])}, has an accuracy of {share:.2%} on test, "
            "no less than this network; `unrolled evaluate` shows which classes it finds"
        )


def _ngrams(run: Run, corpus: Corpus[Any]) -> Iterator[str]:
    """Compare with n-grams without a network, on a small corpus."""
    from unrolled.lab.data.corpus import Classification
    from unrolled.lab.models.bag_of_ngrams import ngram_accuracy

    reached = run.metrics.get("test_accuracy")
    if not isinstance(corpus, Classification) or reached is None:
        return
    counted = ngram_accuracy(corpus.train, corpus.test)
    if counted is not None and counted > reached:
        yield (
            f"logistic regression on 1- to 3-grams has an accuracy of {counted:.2%} on test, more than this network: "
            "train longer (--epochs, --patience), or with another --lr or --dropout"
        )


def _constant_rating(run: Run, corpus: Corpus[Any]) -> Iterator[str]:
    """Compare with the mean rating of the training texts, which a network without any use for its texts predicts."""
    from unrolled.lab.data.corpus import Regression

    reached = run.metrics.get("test_mse")
    if not isinstance(corpus, Regression) or reached is None or not corpus.test:
        return
    mean = math.fsum(each.rating for each in corpus.train) / len(corpus.train)
    error = math.fsum((each.rating - mean) ** 2 for each in corpus.test) / len(corpus.test)
    if error <= reached:
        yield (
            f"the same rating for every text, {mean:.4g}, the mean of train, has an mse of {error:.4g} on test, no "
            "more than this network"
        )
