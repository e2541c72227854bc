"""What simple answers reach where a network was trained: the same answer for every text, and counted n-grams."""

from __future__ import annotations

import math
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from unrolled.report.formatting import visible

if TYPE_CHECKING:
    from unrolled.lab.data.corpus import Corpus
    from unrolled.lab.training.run_folder import Run
    from unrolled.lab.training.settings import DataSettings, TrainingSettings

__all__ = ["compare_run", "longer_training", "note_of_ratings"]

_FEWEST_RATINGS = 3
"""Two numbers, such as 0 and 1, are classes."""


def compare_run(run: Run, corpus: Corpus[Any], words: Sequence[str], folder: Path) -> None:
    """Say if the same answer for every text, or n-grams without a network, are as good; then how to train longer.

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
    if all(is_number(label) for label in corpus.labels):
        yield (
            f"the {len(corpus.labels):,} labels are numbers, learned as classes without an order; "
            "if they have one, such as stars, `unrolled train regress` learns it"
        )


def longer_training(words: Sequence[str], settings: TrainingSettings, folder: Path) -> str:
    """Write the command that trains once more: four times the epochs or steps, and more patience.

    Adam's learning rate is three times as high, up to 0.01. The run is another one, in a folder that does not exist.
    """
    changed = {"--epochs": f"{4 * settings.epochs}", "--patience": f"{max(10, 3 * settings.patience)}"}
    if settings.optimiser.startswith("adam") and settings.lr < 0.01:
        changed["--lr"] = f"{min(3 * settings.lr, 0.01):g}"
    if settings.steps is not None:
        changed["--steps"] = f"{4 * settings.steps}"
    changed["--out"] = f"{folder}-longer"
    while Path(changed["--out"]).exists():
        changed["--out"] += "-longer"
    kept = [word for word in _without(set(changed), words) if word != "--force"]
    return shlex.join(["unrolled", "train", *kept, *(word for pair in changed.items() for word in pair)])


def _without(options: set[str], words: Sequence[str]) -> Iterator[str]:
    """Leave out some options that have a value."""
    value_follows = False
    for word in words:
        if value_follows:
            value_follows = False
            continue
        name, equals, _ = word.partition("=")
        value_follows = name in options and not equals
        if name not in options:
            yield word


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
            "train longer (--epochs, --patience), or with a larger --lr or a smaller --dropout"
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
