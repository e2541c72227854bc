"""The notes' five extensions of a translation model, each alone and all together, from German into English.

The base is the notes' first model: one network for both languages, whose decoder reads only its own state. Each
extension is a setting of the task ``translate``. Extension IV needs I, because a decoder cannot read both ways, so it
is compared with I. Our choices where the notes are silent:

- Networks: GRU, and the plain network of equations 23 and 24; two layers for extension III.
- The first input of the base's decoder is zero, as for the word before the first one of a sentence.
- Corpus: Multi30k; the notes' own example is also from German into English.

BLEU is that of greedy translations. A base whose decoder reads nothing translates nearly all captions alike; where
BLEU is low, the perplexity of the reference is more informative. At scale cpu there are fewer sentence pairs, states of
96 units, and few epochs; scale day has all pairs, and the sizes and epochs of the task's own translation model.

Source:
    CS 224D, lecture notes IV (2015), section 2.4, equations 23 to 27.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from statistics import fmean
from typing import Any

from unrolled.lab.data.corpus import Translation
from unrolled.lab.papers.framework.experiment import (
    SCALES,
    Experiment,
    Report,
    Result,
    Scale,
    Trial,
    TrialSetup,
    average,
    where,
)
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_corpora import read_or_make_up
from unrolled.lab.papers.framework.trial_training import run_metrics, train_once

__all__ = ["FiveExtensions"]

_OFF = {"separate": False, "fed": False, "layers": 1, "bidirectional": False, "reverse": False}
_VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "all five": {"separate": True, "fed": True, "layers": 2, "bidirectional": True, "reverse": True},
    "base": {},
    "II: the decoder reads c and the previous word": {"fed": True},
    "I: weights of its own for the decoder": {"separate": True},
    "I and IV: the encoder reads both ways": {"separate": True, "bidirectional": True},
    "V: the source reversed": {"reverse": True},
    "III: two layers": {"layers": 2},
}
"""The settings of each variant that differ from the base, the most informative variant first."""
_ROWS = ("base", "I:", "II:", "III:", "I and IV:", "V:", "all five")
"""The beginnings of the variants' names, in the order of a table."""
_CELLS = ("gru", "rnn")
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {
        "seeds": 1,
        "data": "made up",
        "pairs": 40,
        "model": {"hidden": 6, "embedding": 6, "min_count": 1},
        "training": {"epochs": 1, "batch": 16},
    },
    "cpu": {
        "seeds": 1,
        "data": "multi30k",
        "pairs": 8000,
        "model": {"hidden": 96, "embedding": 96, "dropout": 0.1},
        "training": {"epochs": 4, "batch": 32, "lr": 0.003},
    },
    "day": {
        "seeds": 1,
        "data": "multi30k",
        "pairs": None,
        "model": {"hidden": 256, "embedding": 256, "dropout": 0.3},
        "training": {"epochs": 12, "patience": 3, "batch": 64, "lr": 0.001},
    },
    "paper": {
        "seeds": 3,
        "data": "multi30k",
        "pairs": None,
        "model": {"hidden": 256, "embedding": 256},
        "training": {"epochs": 12},
    },
}
_HOURS = {"gru": 0.7, "rnn": 0.5}
"""Estimated hours of a training at scale day, on one core."""


class FiveExtensions(Experiment):
    """A trial is one translation model."""

    name = "cs224d-notes-4/translation"
    title = "Five extensions of a translation model"
    source = "CS 224D, lecture notes IV, section 2.4; the notes have no numbers"
    scales = tuple(SCALES)

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List all variants of the GRU, all five together first; then those of the plain network."""
        sizes = _SIZES[scale]
        return [
            Trial(
                f"{cell}, {variant}, seed {seed}",
                {
                    "variant": variant,
                    "data": sizes["data"],
                    "pairs": sizes["pairs"],
                    "model": {**sizes["model"], **_OFF, **switches, "encoder": cell},
                    "training": {**sizes["training"], "seed": seed},
                },
            )
            for seed, cell, (variant, switches) in product(range(sizes["seeds"]), _CELLS, _VARIANTS.items())
        ]

    def day_hours(self, trial: Trial) -> float:
        """Estimate by the cell."""
        return _HOURS[trial.settings["model"]["encoder"]]

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, and measure BLEU and perplexity."""
        chosen = trial.settings
        corpus = read_or_make_up(chosen["data"], Translation, setup.data)
        if chosen["pairs"]:
            corpus = corpus.sample(chosen["pairs"])
        return run_metrics(train_once(setup, "translate", corpus, chosen["model"], chosen["training"]))

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate the base and its extensions."""
        tables = []
        for cell in _CELLS:
            rows: list[Sequence[str | Number]] = []
            for variant in sorted(_VARIANTS, key=_row):
                chosen = where(results, variant=variant)
                if chosen := [each for each in chosen if each.trial.settings["model"]["encoder"] == cell]:
                    values = ("dev_bleu", "test_bleu", "dev_perplexity", "test_perplexity")
                    parameters = Number([chosen[0]["parameters"] / 1000], digits=0)
                    rows.append((variant, parameters, *(average(chosen, value, digits=1) for value in values)))
            if rows:
                columns = ("", "thousand parameters", "dev BLEU", "test BLEU", "dev perplexity", "test perplexity")
                tables.append(Table(f"{_SIZES[scale]['data']}, {cell}", columns, rows))
        return Report(tables)

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool]:
        """The notes: each extension improves the translation."""
        dev: dict[tuple[str, str], list[float]] = {}
        for result in results:
            place = result.trial.settings["model"]["encoder"], result.trial.settings["variant"]
            dev.setdefault(place, []).append(result["dev_perplexity"])
        claims = {}
        for (cell, variant), longer in dev.items():
            base = "I: weights of its own for the decoder" if variant.startswith("I and IV") else "base"
            if variant != base and (cell, base) in dev:
                claims[f"{cell}, {variant}: lower dev perplexity than {base}"] = fmean(longer) < fmean(dev[cell, base])
        return claims


def _row(variant: str) -> int:
    return next(place for place, begins in enumerate(_ROWS) if variant.startswith(begins))
