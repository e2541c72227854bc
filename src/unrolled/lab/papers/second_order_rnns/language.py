"""Language models of equal size, of characters and of words: does an input-dependent transition matrix help?

All networks have the same number of parameters, embedding and softmax included, as ``unrolled parameters`` counts
them. By this count, the published sizes of mRNN and mLSTM exceed the stated number (see the last table), so ours are
smaller. Our choices where the paper is silent, and one difference:

- The paper drops a quarter of the softmax's input; we also drop a quarter of the character and word vectors.
- Gradients flow back 50 characters (100 at scale paper) or 35 words; the state is carried on.
- The learning rate is constant at scale paper; at the others it decays, as training is short.

At scale cpu all networks learn the first lines of the training text for two epochs, with 0.3M parameters for
characters and the paper's 2M for words. That shows who learns faster, and little about the final order. Words outside
these lines are ``<unk>`` in the test text too, which makes it easier to predict.

Scale day has the paper's sizes and texts. There the rate falls to zero: characters are learned in 3 epochs, words as by
``unrolled train lm`` in 12. At its constant rate, the paper needs 7 to 26 epochs for characters and 24 to 50 for words.
Beside the paper's networks stand three of related work that it does not measure.

Source:
    Second-order RNNs, section 5, tables 1 and 2 without their Dyck rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from unrolled.cells.parameter_budget import count_parameters, fit_parameters
from unrolled.lab.data.corpus import Characters, Language, Words
from unrolled.lab.data.stream_encoding import build_vocabulary
from unrolled.lab.papers.analyses.equal_size_networks import RELATED, UNITS, Published
from unrolled.lab.papers.framework.corpora import first_lines
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
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_corpora import read_or_make_up
from unrolled.lab.papers.framework.trial_training import run_metrics, train_model, train_once

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unrolled.lab.tasks.lm import LanguageModelling

__all__ = ["EqualParameters", "learn"]

_NETWORKS = [(unit, row) for unit, known in UNITS.items() for row in known.networks]
_SIZES: dict[Scale, dict[str, dict[str, Any]]] = {
    "smoke": {
        unit: {"data": "made up", "lines": [24, 8, 8], "budget": 3000, "embedding": 8, "bptt": 20} for unit in UNITS
    },
    "cpu": {
        "characters": {
            "data": "ptb-chars",
            "lines": [3000, 500, 1500],
            "budget": 300_000,
            "embedding": 128,
            "bptt": 50,
        },
        "words": {"data": "ptb", "lines": [8000, None, None], "budget": 2_000_000, "embedding": 64, "bptt": 35},
    },
    "day": {
        "characters": {"data": "ptb-chars", "lines": [None] * 3, "budget": 4_500_000, "embedding": 128, "bptt": 50},
        "words": {"data": "ptb", "lines": [None] * 3, "budget": 2_000_000, "embedding": 64, "bptt": 35},
    },
    "paper": {
        "characters": {"data": "ptb-chars", "lines": [None] * 3, "budget": 4_500_000, "embedding": 128, "bptt": 100},
        "words": {"data": "ptb", "lines": [None] * 3, "budget": 2_000_000, "embedding": 64, "bptt": 35},
    },
}
"""``lines``: the number of lines of train, dev and test; None for all."""
_TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"epochs": 1},
    "cpu": {"epochs": 2, "batch": 32, "lr": 0.003, "schedule": "cosine", "clip": 3.5},
    "paper": {"epochs": 200, "patience": 5, "batch": 128, "lr": 0.001, "schedule": "constant", "clip": 3.5},
}
_DAY_TRAINING: dict[str, dict[str, Any]] = {
    "characters": {"epochs": 3, "batch": 64, "lr": 0.002, "schedule": "cosine", "clip": 3.5},
    "words": {"clip": 3.5},
}
"""At scale day; for words, what differs from the defaults of the task."""
_HOURS = {"characters": 1.1, "words": 0.4}
_SLOWER = {"RNN": 1.4, "tensor RNN": 1.5, "mmLSTM, 2 layers": 2.0, "mmRNN, 2 layers": 2.0}
"""Estimated hours of a training at scale day, on one core, and how many times as long some networks take.

An epoch of a word model took two minutes.
"""
_SEEDS: dict[Scale, int] = {"smoke": 1, "cpu": 1, "day": 1, "paper": 3}
_DROPOUT = 0.25
_TEST = "test, bits per character or nats per word"


class EqualParameters(Experiment):
    """A trial is one network."""

    name = "second-order-rnns/language"
    title = "Character and word models of equal size"
    source = "Second-order RNNs, tables 1 and 2, the character and word models"
    compared_columns = (_TEST,)
    scales = tuple(SCALES)

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the networks, those of one layer first, characters before words."""
        rows = sorted(_NETWORKS, key=lambda network: network[1].layers)
        return [
            Trial(
                f"{unit}, {row.title}, seed {seed}",
                {
                    "unit": unit,
                    "model": row.title,
                    "encoder": row.encoder,
                    "layers": row.layers,
                    "dropout": _DROPOUT,
                    **_SIZES[scale][unit],
                    "training": {**(_DAY_TRAINING[unit] if scale == "day" else _TRAINING[scale]), "seed": seed},
                },
            )
            for seed in range(_SEEDS[scale])
            for unit, row in rows
        ]

    def day_hours(self, trial: Trial) -> float:
        """Estimate by the unit and the network."""
        return _HOURS[trial.settings["unit"]] * _SLOWER.get(trial.settings["model"], 1.0)

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train and measure on the test text; see :func:`learn`."""
        return learn(trial.settings, setup)

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Compare scores and times with the published ones, and count the parameters of the published networks."""
        return Report([_scores(results), _counts(results)], {"second-order-rnns-language": partial(_draw, results)})


def learn(chosen: Mapping[str, Any], setup: TrialSetup, task: type[LanguageModelling] | None = None) -> dict[str, Any]:
    """Train the network that the settings of a trial name, at the hidden size of the parameter budget, and measure.

    Of another ``task`` than that of the unit the network is not shared with other trials.
    """
    unit = UNITS[chosen["unit"]]
    row = next(row for row in unit.networks if row.title == chosen["model"])
    corpus = _corpus(chosen, setup)
    types = len(build_vocabulary(corpus.train))
    size = fit_parameters(row.cell, chosen["budget"], chosen["embedding"], chosen["layers"], vocabulary=types).nearest
    settings = {name: chosen[name] for name in ("encoder", "layers", "embedding", "dropout", "bptt")}
    model = {**settings, "tied": False, "hidden": size.hidden_size}
    setup.log(f"{size.hidden_size} units, {size.parameters:,} parameters")
    if task is None:
        run = train_once(setup, unit.task, corpus, model, chosen["training"])
    else:
        run = train_model(setup, task, corpus, model, chosen["training"])
    dev = [epoch.dev[unit.measure] for epoch in run.history]
    return {**run_metrics(run), "hidden": size.hidden_size, "dev": dev}


def _corpus(chosen: Mapping[str, Any], setup: TrialSetup) -> Language:
    kind = Characters if chosen["unit"] == "characters" else Words
    whole: Language = read_or_make_up(chosen["data"], kind, setup.data)
    return first_lines(whole, *chosen["lines"])


def _values(results: Sequence[Result], unit: str, model: str, value: str) -> list[float]:
    return [result[value] for result in where(results, unit=unit, model=model)]


def _scores(results: Sequence[Result]) -> Table:
    rows: list[Sequence[str | Number]] = []
    for unit, row in _NETWORKS:
        if chosen := where(results, unit=unit, model=row.title):
            known = UNITS[unit]
            seconds, epochs, score = (
                (60 * row.minutes / row.epochs, row.epochs, row.score) if isinstance(row, Published) else (None,) * 3
            )
            times = [result["seconds"] / result["epochs"] for result in chosen]
            rows.append((
                f"{unit}, {row.title}",
                str(Number([chosen[0]["parameters"] / 1e6], known.budget / 1e6)),
                str(Number(times, seconds)),
                str(average(chosen, "best_epoch", epochs, digits=0)),
                average(chosen, f"test_{known.measure}", score, digits=3, unit=known.logarithm),
            ))  # fmt: skip
    columns = ("model", "parameters, millions", "seconds per epoch", "epochs", _TEST)
    return Table("Penn Treebank: ours (published, on a Tesla M60)", columns, rows)


def _counts(results: Sequence[Result]) -> Table:
    rows: list[Sequence[str | Number]] = []
    for unit, known in UNITS.items():
        for row in known.rows:
            hidden = _values(results, unit, row.title, "hidden")[:1]
            size = count_parameters(row.cell, known.embedding, row.hidden, row.layers, vocabulary=known.types)
            excess = f"{100 * (size.parameters / known.budget - 1):+.1f}"
            rows.append(
                (f"{unit}, {row.title}", f"{row.hidden}", f"{size.parameters:,}", excess, Number(hidden, digits=0))
            )
    columns = (
        "model",
        "published units",
        "their parameters by our count",
        "excess over the stated number, %",
        "our units",
    )
    return Table("Sizes: the paper states 4.5M parameters for characters, 2M for words", columns, rows)


def _draw(results: Sequence[Result]) -> Figure:
    shown = [unit for unit in UNITS if where(results, unit=unit)]
    figure, panels = grid(1, len(shown), width=4.4, height=3.2)
    handles = []
    for panel, unit in zip(panels, shown, strict=True):
        known = UNITS[unit]
        names = [row.title for row in sorted(known.rows, key=lambda row: -row.score)]
        names += [row.title for row in RELATED if where(results, unit=unit, model=row.title)]
        places = {name: place for place, name in enumerate(names)}
        ours = [(_values(results, unit, name, f"test_{known.measure}"), place) for name, place in places.items()]
        points = [(value, place) for values, place in ours for value in values]
        (mine,) = panel.plot(*zip(*points, strict=True), MARKERS[0], color=COLOURS[0])
        scores = [row.score for row in known.rows]
        (theirs,) = panel.plot(
            scores, [places[row.title] for row in known.rows], MARKERS[1], markerfacecolor="none", color=COLOURS[1]
        )
        panel.set(title=unit, xlabel=f"test, {known.unit}", yticks=range(len(names)), yticklabels=names)
        handles = [mine, theirs]
    figure.legend(handles, ["ours", "published"], loc="outside lower center", ncols=2)
    return figure
