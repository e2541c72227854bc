"""LSTM, GRU and CNN against learning rate, hidden size and batch size: sentiment and answer selection.

The lecture shows six curves of Yin et al. without numbers: three models on two tasks, against one setting each, to say
that no model is always the best. Yin et al. add that performance changes smoothly with the learning rate and fluctuates
with hidden size and batch size. Here one setting changes at a time. All models are trained from scratch, without
pretrained word vectors and without counting shared words. Recurrent networks are read at their last state, the CNN by
the maximum of each feature. The curves show dev; the best setting of each model is chosen on dev and measured on test.

Scale cpu is small: whole sentences of SST-2 (no phrases), the 873 answered questions of WikiQA, three epochs, word
vectors of 32 dimensions. At scale day, each of three seeds trains until dev stops improving, with vectors of 100
dimensions. Small batches make more steps in an epoch; the number of epochs is fixed.

Source:
    CS 577, lecture 5, LSTM against GRU, after Yin et al. (2017), arXiv:1702.01923.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any

from unrolled.lab.papers.framework.corpora import Sizes
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
    pick,
    where,
)
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid, legend_below, write_seeds
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_corpora import read_or_make_up
from unrolled.lab.papers.framework.trial_training import run_metrics, train_model
from unrolled.lab.tasks import TASKS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["VALUES", "Hyperparameters", "best_results"]


@dataclass(frozen=True)
class _Task:
    """One of the two tasks."""

    title: str
    data: str
    measure: str
    unit: str
    counted: str
    """The unit of the batch size."""
    model: Mapping[str, Any]
    """Settings of every model."""


_MODELS = {"lstm": "LSTM", "gru": "GRU", "cnn": "CNN"}
_POOLING = {"lstm": "last", "gru": "last", "cnn": "max"}
_TASKS = {
    "classify": _Task("Sentiment", "sst2-sentences", "accuracy", "accuracy on dev, %", "sentences", {}),
    # the task's default ranker is bidirectional and counts shared words; here neither, for a fair comparison
    "rank": _Task(
        "Answer selection",
        "wikiqa",
        "mrr",
        "mean reciprocal rank on dev, × 100",
        "questions",
        {"bidirectional": False, "overlap": False},
    ),
}
_CHANGED = {"lr": "learning rate", "hidden": "hidden size", "batch": "batch size"}

Values = Mapping[str, Sequence[float]]
# The lecture's figures have no numbers, so the values are ours. A setting that does not change has its middle value.
_RATES = (0.0003, 0.001, 0.003, 0.01, 0.03)
_SMALL_VALUES: Values = {"lr": (0.003, 0.01), "hidden": (4, 8), "batch": (8, 16)}
_PAPER_VALUES: Values = {
    "lr": (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1),
    "hidden": (10, 20, 50, 100, 150, 200, 250),
    "batch": (5, 10, 20, 30, 50, 70, 100),
}
VALUES: dict[Scale, dict[str, Values]] = {
    "smoke": dict.fromkeys(_TASKS, _SMALL_VALUES),
    "cpu": {
        "classify": {"lr": _RATES, "hidden": (16, 64, 128), "batch": (8, 32, 128)},
        "rank": {"lr": _RATES, "hidden": (16, 32, 64), "batch": (4, 16, 64)},
    },
    "day": {
        "classify": {"lr": _RATES, "hidden": (16, 64, 256), "batch": (8, 32, 128)},
        "rank": {"lr": _RATES, "hidden": (16, 64, 256), "batch": (4, 16, 64)},
    },
    "paper": dict.fromkeys(_TASKS, _PAPER_VALUES),
}
_SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"seeds": 1, "epochs": 1, "embedding": 8},
    "cpu": {"seeds": 1, "epochs": 3, "embedding": 32},
    "day": {"seeds": 3, "epochs": 20, "patience": 3, "embedding": 100},
    "paper": {"seeds": 3, "epochs": 20, "embedding": 300},
}
_HOURS = {"classify": 0.015, "rank": 0.03}
"""Estimated hours of a training at scale day, on one core."""
_POINT = 0.1
"""The worth of a point of a curve, beside a number of a table."""

_FEWEST_SEEDS = 3
_FEW: Sizes = (40, 10, 10)
_CAPTION = (
    "a line joins the means over the seeds on dev; its band reaches from the lowest seed to the highest. In each panel "
    "one setting changes, and the two others have the middle of their values."
)


class Hyperparameters(Experiment):
    """A trial is one model on one task with one setting."""

    name = "cs577-lecture-5/hyperparameters"
    title = "LSTM, GRU and CNN against learning rate, hidden size and batch size"
    source = "CS 577, lecture 5, LSTM against GRU: six curves of Yin et al. (2017) without numbers"
    scales = tuple(SCALES)
    day_hours_by = ("task", _HOURS)

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the middle settings of all models first, then the changed ones, the learning rate first."""
        sizes = dict(_SIZES[scale])
        points = list(zip(*(_points(VALUES[scale][task]) for task in _TASKS), strict=True))
        listed = []
        for seed, of_tasks in product(range(sizes.pop("seeds")), points):
            for task, at in zip(_TASKS, of_tasks, strict=True):
                named = ", ".join(f"{name} {value:g}" for name, value in at.items())
                listed += [
                    Trial(
                        f"{title}, {_TASKS[task].title.lower()}, {named}, seed {seed}",
                        {**sizes, "smoke": scale == "smoke", "task": task, "model": model, **at, "seed": seed},
                    )
                    for model, title in _MODELS.items()
                ]
        return listed

    def worth(self, trial: Trial) -> float:
        """Count the points of curves, of which no numbers are published, less than numbers."""
        return _POINT

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, and measure on dev and test."""
        chosen = trial.settings
        task, kind = _TASKS[chosen["task"]], TASKS.get(chosen["task"])
        corpus = read_or_make_up("made up" if chosen["smoke"] else task.data, kind.kind, setup.data, _FEW)
        encoder = {"encoder": chosen["model"], "pooling": _POOLING[chosen["model"]]}
        model = {**task.model, **encoder, **{name: chosen[name] for name in ("hidden", "embedding")}}
        training = pick(chosen, ("lr", "batch", "epochs", "patience", "seed"))
        found = run_metrics(train_model(setup, chosen["task"], corpus, model, training))
        return {name: found[f"{name}_{task.measure}"] for name in SPLITS}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate the curves and the best settings, and draw the six figures."""
        name = "cs577-lecture-5-hyperparameters"
        return Report(
            [
                _curves(results, task, changed, scale)
                for task in _TASKS
                for changed in _CHANGED
                if where(results, task=task)
            ]
            + [_best_settings(results)],
            {name: partial(_draw, results, scale)},
            {name: _CAPTION},
        )

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool]:
        """The lecture: no model is the best throughout. Fewer seeds than three do not say which model is the best."""
        if len({result.trial.seed for result in results}) < _FEWEST_SEEDS:
            return {}
        best = set()
        for task in _TASKS:
            chosen = {model: best_results(results, task, model) for model in _MODELS}
            if not all(chosen.values()):
                return {}
            best.add(max(chosen, key=lambda model: fmean(each["test"] for each in chosen[model])))
        return {"no model is the best of both tasks": len(best) > 1}


def _middle(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {changed: these[len(these) // 2] for changed, these in values.items()}


def _points(values: Values) -> list[dict[str, float]]:
    """List the middle setting, then those in which one setting has each of its other values."""
    middle = _middle(values)
    changed = [{**middle, name: each} for name in _CHANGED for each in values[name] if each != middle[name]]
    return [middle, *changed]


def _at(results: Sequence[Result], task: str, model: str, scale: Scale, changed: str, value: float) -> list[Result]:
    """Select the results of all seeds with one setting changed to a value."""
    return where(results, **{"task": task, "model": model, **_middle(VALUES[scale][task]), changed: value})


def _curves(results: Sequence[Result], task: str, changed: str, scale: Scale) -> Table:
    values = VALUES[scale][task][changed]
    others = ", ".join(
        f"{_CHANGED[name]} {value:g}" for name, value in _middle(VALUES[scale][task]).items() if name != changed
    )
    rows: list[Sequence[str | Number]] = []
    for model, title in _MODELS.items():
        chosen = (_at(results, task, model, scale, changed, value) for value in values)
        rows.append((title, *(average(each, "dev", digits=1, percent=True) for each in chosen)))
    title = f"{_TASKS[task].title}: {_TASKS[task].unit}, by {_CHANGED[changed]} ({others})"
    return Table(title, ("model", *(f"{value:g}" for value in values)), rows)


def best_results(results: Sequence[Result], task: str, model: str) -> list[Result]:
    """Select the results of the setting with the best mean on dev."""
    by_setting: dict[tuple[float, ...], list[Result]] = {}
    for each in results:
        settings = each.trial.settings
        if (settings["task"], settings["model"]) == (task, model):
            by_setting.setdefault(tuple(settings[name] for name in _CHANGED), []).append(each)
    return max(by_setting.values(), key=lambda those: fmean(each["dev"] for each in those), default=[])


def _best_settings(results: Sequence[Result]) -> Table:
    rows: list[Sequence[str | Number]] = []
    for task, about in _TASKS.items():
        for model, title in _MODELS.items():
            if best := best_results(results, task, model):
                settings = best[0].trial.settings
                named = ", ".join(f"{_CHANGED[name]} {settings[name]:g}" for name in _CHANGED)
                shares = (average(best, split, digits=1, percent=True) for split in SPLITS)
                rows.append((f"{about.title}, {title}", named, *shares))
    return Table(
        "The best setting on dev: accuracy or mean reciprocal rank, × 100", ("", "setting", "dev", "test"), rows
    )


def _draw(results: Sequence[Result], scale: Scale) -> Figure:
    figure, panels = grid(len(_TASKS), len(_CHANGED), width=3.3, height=2.8)
    left = iter(panels)
    for task, about in _TASKS.items():
        for changed, label in _CHANGED.items():
            panel = next(left)
            values = VALUES[scale][task][changed]
            for number, (model, title) in enumerate(_MODELS.items()):
                found = {value: _at(results, task, model, scale, changed, value) for value in values}
                dev = {value: [100 * each["dev"] for each in those] for value, those in found.items() if those}
                means = [fmean(each) for each in dev.values()]
                panel.plot([*dev], means, color=COLOURS[number], marker=MARKERS[number], label=title)
                lowest, highest = (list(map(end, dev.values())) for end in (min, max))
                panel.fill_between([*dev], lowest, highest, color=COLOURS[number], alpha=0.15, linewidth=0)
            unit = f" ({about.counted})" if changed == "batch" else " (units)" if changed == "hidden" else ""
            panel.set(xscale="log", title=f"{about.title}", xlabel=f"{label}{unit}")
            panel.set_xticks(values, [f"{value:g}" for value in values])
            panel.minorticks_off()
        row = panels[: panels.index(panel) + 1][-len(_CHANGED) :]
        row[0].set_ylabel(about.unit)
        low, high = min(each.get_ylim()[0] for each in row), max(each.get_ylim()[1] for each in row)
        for each in row:
            each.set_ylim(low, high)
    write_seeds(panels, results)
    legend_below(figure, panels[0], len(_MODELS))
    return figure
