"""LSTM, GRU and CNN against learning rate, hidden size and batch size: sentiment and answer selection.

The lecture shows six curves of Yin et al. without numbers: three models on two tasks, against one setting each, to say
that no model is the best throughout. Yin et al. add that performance changes smoothly with the learning rate, and
fluctuates with hidden size and batch size. Ours: one setting is moved at a time while the others stay; everything
is learned from scratch, without word vectors from elsewhere and without counting shared words. The recurrent networks
are read at their last state, the CNN by the largest value of each feature. The curves are those of dev; the best
setting of each model is chosen there, and of it alone the test figure is shown.

Scale cpu is small: whole sentences of SST-2 (no phrases), the 873 answered questions of WikiQA, three epochs, word
vectors of 32 numbers. In an epoch small batches make more steps than large ones; the epochs are what is held fixed.

Source:
    CS 577, lecture 5, LSTM against GRU, after Yin et al. (2017), arXiv:1702.01923.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from unrolled.lab.papers.framework.corpus_cache import load_once
from unrolled.lab.papers.framework.experiment import Bench, Experiment, Report, Result, Scale, Trial
from unrolled.lab.papers.framework.synthetic_corpora import MADE_UP
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_training import figures, learn
from unrolled.lab.papers.framework.unique_splits import Sizes
from unrolled.lab.tasks import TASKS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Hyperparameters"]


@dataclass(frozen=True)
class _Task:
    """One of the two tasks."""

    title: str
    data: str
    measure: str
    unit: str
    counted: str
    """What a batch is made of."""
    model: Mapping[str, Any]
    """What is set for every model."""


_MODELS = {"lstm": "LSTM", "gru": "GRU", "cnn": "CNN"}
_POOLING = {"lstm": "last", "gru": "last", "cnn": "max"}
_TASKS = {
    "classify": _Task("Sentiment", "sst2-sentences", "accuracy", "accuracy on dev, %", "sentences", {}),
    # the task's own ranker reads both ways and counts shared words; here the models are compared as they are
    "rank": _Task(
        "Answer selection",
        "wikiqa",
        "mrr",
        "reciprocal rank on dev, mean × 100",
        "questions",
        {"bidirectional": False, "overlap": False},
    ),
}
_MOVED = {"lr": "learning rate", "hidden": "hidden size", "batch": "batch size"}

Values = Mapping[str, Sequence[float]]
# The lecture's figures have no numbers, so the values are ours. A setting stays at the middle one of its values.
_RATES = (0.0003, 0.001, 0.003, 0.01, 0.03)
_SMALL_VALUES: Values = {"lr": (0.003, 0.01), "hidden": (4, 8), "batch": (8, 16)}
_PAPER_VALUES: Values = {
    "lr": (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1),
    "hidden": (10, 20, 50, 100, 150, 200, 250),
    "batch": (5, 10, 20, 30, 50, 70, 100),
}
_VALUES: dict[Scale, dict[str, Values]] = {
    "smoke": dict.fromkeys(_TASKS, _SMALL_VALUES),
    "cpu": {
        "classify": {"lr": _RATES, "hidden": (16, 64, 128), "batch": (8, 32, 128)},
        "rank": {"lr": _RATES, "hidden": (16, 32, 64), "batch": (4, 16, 64)},
    },
    "paper": dict.fromkeys(_TASKS, _PAPER_VALUES),
}
_SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"seeds": 1, "epochs": 1, "embedding": 8},
    "cpu": {"seeds": 1, "epochs": 3, "embedding": 32},
    "paper": {"seeds": 3, "epochs": 20, "embedding": 300},
}


_FEW: Sizes = (40, 10, 10)


class Hyperparameters(Experiment):
    """Three models, two tasks, three settings."""

    name = "cs577-lecture-5/hyperparameters"
    title = "LSTM, GRU and CNN against learning rate, hidden size and batch size"
    source = "CS 577, lecture 5, LSTM against GRU: six curves of Yin et al. (2017), without numbers"

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the middle setting of all models first, then what is moved, the learning rate first."""
        sizes, values = dict(_SIZES[scale]), _VALUES[scale]
        seeds = range(sizes.pop("seeds"))
        points = [("", 0)] + [(moved, place) for moved in _MOVED for place in range(len(values["classify"][moved]))]
        listed = []
        for seed in seeds:
            for moved, place in points:
                for task in _TASKS:
                    at = _middle(values[task])
                    if moved:
                        if values[task][moved][place] == at[moved]:
                            continue
                        at[moved] = values[task][moved][place]
                    named = ", ".join(f"{name} {value:g}" for name, value in at.items())
                    listed += [
                        Trial(
                            f"{title}, {_TASKS[task].title.lower()}, {named}, seed {seed}",
                            {**sizes, "smoke": scale == "smoke", "task": task, "model": model, **at, "seed": seed},
                        )
                        for model, title in _MODELS.items()
                    ]
        return listed

    def run(self, trial: Trial, bench: Bench) -> Mapping[str, Any]:
        """Train, and measure on dev and test."""
        chosen = trial.settings
        task, kind = _TASKS[chosen["task"]], TASKS.get(chosen["task"])
        corpus = MADE_UP[kind.kind](_FEW, 0) if chosen["smoke"] else load_once(task.data, kind.kind, bench.data)
        encoder = {"encoder": chosen["model"], "pooling": _POOLING[chosen["model"]]}
        model = {**task.model, **encoder, **{name: chosen[name] for name in ("hidden", "embedding")}}
        training = {name: chosen[name] for name in ("lr", "batch", "epochs", "seed")}
        found = figures(learn(bench, chosen["task"], corpus, model, training))
        return {name: found[f"{name}_{task.measure}"] for name in ("dev", "test")}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate the curves and the best settings, and draw the six figures."""
        return Report(
            [_curves(results, task, moved, scale) for task in _TASKS for moved in _MOVED if _any(results, task)]
            + [_best_settings(results)],
            {"cs577-lecture-5-hyperparameters": lambda: _draw(results, scale)},
        )


def _middle(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {moved: these[len(these) // 2] for moved, these in values.items()}


def _any(results: Sequence[Result], task: str) -> bool:
    return any(each.trial.settings["task"] == task for each in results)


def _at(results: Sequence[Result], task: str, model: str, scale: Scale, moved: str, value: float) -> list[Result]:
    """Find the results of all seeds with one setting moved to a value."""
    wanted = {"task": task, "model": model, **_middle(_VALUES[scale][task]), moved: value}
    return [each for each in results if all(each.trial.settings[name] == wanted[name] for name in wanted)]


def _curves(results: Sequence[Result], task: str, moved: str, scale: Scale) -> Table:
    values = _VALUES[scale][task][moved]
    others = ", ".join(
        f"{_MOVED[name]} {value:g}" for name, value in _middle(_VALUES[scale][task]).items() if name != moved
    )
    rows: list[Sequence[str | Number]] = [
        (
            title,
            *(
                Number([each["dev"] for each in _at(results, task, model, scale, moved, value)], digits=1, percent=True)
                for value in values
            ),
        )
        for model, title in _MODELS.items()
    ]
    title = f"{_TASKS[task].title}: {_TASKS[task].unit}, by {_MOVED[moved]} ({others})"
    return Table(title, ("model", *(f"{value:g}" for value in values)), rows)


def _best(results: Sequence[Result], task: str, model: str) -> list[Result]:
    """Choose the setting with the best mean on dev; give the results of all its seeds."""
    by_setting: dict[tuple[float, ...], list[Result]] = {}
    for each in results:
        settings = each.trial.settings
        if (settings["task"], settings["model"]) == (task, model):
            by_setting.setdefault(tuple(settings[name] for name in _MOVED), []).append(each)
    return max(by_setting.values(), key=lambda those: fmean(each["dev"] for each in those), default=[])


def _best_settings(results: Sequence[Result]) -> Table:
    rows: list[Sequence[str | Number]] = []
    for task, about in _TASKS.items():
        for model, title in _MODELS.items():
            if best := _best(results, task, model):
                settings = best[0].trial.settings
                named = ", ".join(f"{_MOVED[name]} {settings[name]:g}" for name in _MOVED)
                shares = (Number([each[split] for each in best], digits=1, percent=True) for split in ("dev", "test"))
                rows.append((f"{about.title}, {title}", named, *shares))
    return Table(
        "The setting that is best on dev, ×100: accuracy, reciprocal rank", ("", "setting", "dev", "test"), rows
    )


def _draw(results: Sequence[Result], scale: Scale) -> Figure:
    from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid, legend_below

    figure, panels = grid(len(_TASKS), len(_MOVED), width=3.3, height=2.8)
    left = iter(panels)
    for task, about in _TASKS.items():
        for moved, label in _MOVED.items():
            panel = next(left)
            for number, (model, title) in enumerate(_MODELS.items()):
                found = {value: _at(results, task, model, scale, moved, value) for value in _VALUES[scale][task][moved]}
                means = {value: 100 * fmean(each["dev"] for each in those) for value, those in found.items() if those}
                panel.plot([*means], [*means.values()], color=COLOURS[number], marker=MARKERS[number], label=title)
            unit = f" ({about.counted})" if moved == "batch" else " (units)" if moved == "hidden" else ""
            panel.set(xscale="log", title=f"{about.title}", xlabel=f"{label}{unit}")
            panel.set_xticks(_VALUES[scale][task][moved], [f"{value:g}" for value in _VALUES[scale][task][moved]])
            panel.minorticks_off()
        row = panels[: panels.index(panel) + 1][-len(_MOVED) :]
        row[0].set_ylabel(about.unit)
        low, high = min(each.get_ylim()[0] for each in row), max(each.get_ylim()[1] for each in row)
        for each in row:
            each.set_ylim(low, high)
    legend_below(figure, panels[0], len(_MODELS))
    return figure
