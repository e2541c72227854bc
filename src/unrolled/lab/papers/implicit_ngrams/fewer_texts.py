"""Accuracy on AG News after training on fewer texts.

In ``table3`` GRU, LSTM and MVMA-ME are 3.8 points below the paper on AG News, and MVMA-G 4.9. They learn from 18,550
texts; the paper has 110,000. Is that the cause? Here they learn from a half, a quarter and an eighth of those texts,
which shows what each halving costs. A power law through the errors says which accuracy 110,000 texts would give: an
extrapolation by a factor of six, and no measurement.

Half of the 18,550 texts are rows drawn at random, as those of dev are. The others are an early part of the published
file, with title and description joined. So the networks also learn from the random rows alone, all and a half: if
they are better than as many of all texts, the joined rows are worth less.

Source:
    Sun and Lu (2022), Implicit n-grams, tables 3 and 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from unrolled.lab.data.corpus import Classification, hold_out
from unrolled.lab.papers.framework.experiment import (
    SCALES,
    SPLITS,
    Experiment,
    Report,
    Result,
    Scale,
    Trial,
    TrialSetup,
    average,
    settings_of,
    where,
)
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.implicit_ngrams.table3 import PUBLISHED, SentimentAndTopics, learn, read_corpus

__all__ = ["FewerTexts", "errors_at", "with_fewer"]

_NETWORKS: dict[Scale, tuple[str, ...]] = {"smoke": ("MVMA-G",)}  # those that table 3 has at this scale
_NETWORKS |= {"cpu": ("GRU", "LSTM", "MVMA-ME")}
_NETWORKS |= dict.fromkeys(("day", "paper"), ("GRU", "LSTM", "MVMA-ME", "MVMA-G"))
_PARTS = {"ag_news_extended": (1, 2, 4, 8), "ag_news": (1, 2, 4, 8), "made-up topics": (1, 2)}
_RANDOM = {"ag_news_extended": {"ag_news": (1, 2)}}
"""Of a corpus, the part that is drawn at random, and its own parts."""
_NAMES = {"ag_news_extended": "all", "ag_news": "drawn at random", "made-up topics": "made up"}
_TEXTS = 110_000
"""Of the paper's training split (its table 6)."""


class FewerTexts(Experiment):
    """A trial is one of ``table3`` that learns from a part of its texts."""

    name = "implicit-ngrams/fewer-texts"
    title = "Accuracy on AG News after training on fewer texts"
    source = "Sun and Lu (2022), Implicit n-grams, tables 3 and 6"
    scales = tuple(SCALES)

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the trials of the other item, seed by seed, each with every part of its texts."""
        listed = []
        for chosen in settings_of(SentimentAndTopics, scale, column="AG News"):
            if chosen["model"] not in _NETWORKS[scale]:
                continue
            whole = chosen["corpus"]
            for corpus, parts in {whole: _PARTS[whole], **_RANDOM.get(whole, {})}.items():
                for part in parts:
                    share = "all texts" if part == 1 else f"1/{part} of the texts"
                    label = f"{chosen['model']}, {share} of {corpus}, seed {chosen['seed']}"
                    listed.append(Trial(label, {**chosen, "corpus": corpus, "part": part}))
        return listed

    def day_hours(self, trial: Trial) -> float:
        """Estimate by the number of texts."""
        whole = SentimentAndTopics().day_hours(trial) / trial.settings["part"]
        return whole if trial.settings["corpus"] == "ag_news_extended" else whole / 2

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train and measure as the other item does, on a part of the texts."""
        chosen = trial.settings
        corpus = with_fewer(read_corpus(chosen["corpus"], None, None, setup.data), chosen["part"], chosen["seed"])
        return learn(corpus, chosen, setup)

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Show the accuracy by the number of texts, and what a power law of the errors gives for the paper's number."""
        measured: list[Sequence[str | Number]] = []
        expected: list[Sequence[str | Number]] = []
        for network in _NETWORKS[scale]:
            for corpus, name in _NAMES.items():
                found = where(results, model=network, corpus=corpus)
                for part in _PARTS[corpus]:
                    if chosen := where(found, part=part):
                        accuracies = (_percent(chosen, f"{split}_accuracy") for split in SPLITS)
                        texts = f"{chosen[0]['examples'][0]:,}"
                        epoch = average(chosen, "best_epoch", digits=0)
                        measured.append((network, name, texts, *accuracies, epoch))
                sizes = sorted({result["examples"][0] for result in found})
                if len(sizes) > 2:  # a line through two points alone is no law
                    for (place, split), least in product(enumerate(SPLITS), (sizes[0], sizes[-2])):
                        through = [result for result in found if result["examples"][0] >= least]
                        expected.append(_expected(through, network, place, split))
        columns = ("network", "texts", "number", *SPLITS, "best epoch")
        tables = [Table("AG News: accuracy by the number of training texts, %", columns, measured)]
        if expected:
            title = f"Accuracy, %, that a power law of the errors gives for {_TEXTS:,} texts; 2 sizes: the largest two"
            columns = ("network", "split", "through", "error, halved texts", "extrapolated", "published")
            tables.append(Table(title, columns, expected))
        return Report(tables)


def with_fewer(corpus: Classification, part: int, seed: int) -> Classification:
    """Keep one in ``part`` of the training texts, drawn at random; smaller parts are parts of larger ones."""
    _, kept = hold_out(corpus.train, len(corpus.train) // part, lambda _: (), seed=seed)
    return replace(corpus, train=tuple(kept))


def errors_at(sizes: Sequence[float], errors: Sequence[float], size: float) -> tuple[float, float]:
    """Fit a power law error = a · size^-b; return the factor of half the size, 2^b, and the error at ``size``.

    The fit is least squares of the logarithms.
    """
    slope, start = np.polyfit(np.log(sizes), np.log(errors), 1)
    return float(2.0**-slope), float(np.exp(start + slope * np.log(size)))


def _expected(found: Sequence[Result], network: str, place: int, split: str) -> Sequence[str | Number]:
    sizes = [result["examples"][0] for result in found]
    errors = [1.0 - result[f"{split}_accuracy"] for result in found]
    factor, error = errors_at(sizes, errors, _TEXTS)
    published = PUBLISHED[network][2 + place]  # those of SST-2 stand first
    accuracy = Number([1.0 - error], digits=1, percent=True)
    return (network, split, f"{len(set(sizes))} sizes", f"× {factor:.2f}", accuracy, f"{published:.1f}")


def _percent(chosen: Sequence[Result], name: str) -> Number:
    return average(chosen, name, digits=1, percent=True)
