"""How far a gradient reaches: the norm of ∂h_T/∂s_{T-k}, and of ∂E/∂s_{T-k}, against k.

The notes argue with the bound (β_W β_h)^k and propose clipping against explosion, an identity matrix and the rectifier
against vanishing, and gated cells; they measure nothing. Where they are silent we chose:

- the task: theirs, with eight names drawn anew for every text and fillers of every length up to a limit;
- the sizes, and Adam for all cells alike: under plain gradient descent, at rates from 0.1 to 3, neither LSTM nor GRU
  learns it in the time that is enough for Adam. The two cells that do are trained by plain descent too;
- "identity" sets U = I and both biases to 0, for the rectifier and, to tell the two remedies apart, for tanh; the
  rectifier is also run from random weights;
- the state s is h, and for the LSTM [c; h].

Source:
    CS 224D, lecture notes IV (2015), sections 2.1 and 2.2, algorithm 1, eq. 16.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unrolled.cells.base import Cell
from unrolled.cells.elman import Elman
from unrolled.cells.gru import GRU
from unrolled.cells.lstm import LSTM
from unrolled.lab.papers.analyses import greeting_corpus
from unrolled.lab.papers.analyses.gradient_flow import gradient_flow
from unrolled.lab.papers.framework.experiment import Bench, Experiment, Report, Result, Scale, Trial, where
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.training_loop import WordReader, learn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Gradients"]


def _identity(nonlinearity: str) -> Callable[[int, int], Cell]:
    def build(inputs: int, hidden: int) -> Cell:
        cell = Elman(inputs, hidden, nonlinearity=nonlinearity)
        cell.initialise_identity()
        return cell

    return build


_CELLS: dict[str, Callable[[int, int], Cell]] = {
    "sigmoid": lambda inputs, hidden: Elman(inputs, hidden, nonlinearity="sigmoid"),
    "tanh": Elman,
    "tanh, identity": _identity("tanh"),
    "relu": lambda inputs, hidden: Elman(inputs, hidden, nonlinearity="relu"),
    "relu, identity": _identity("relu"),
    "LSTM": LSTM,
    "GRU": GRU,
}
_DESCENT = ("tanh, identity", "relu, identity")
_RATES = {"adam": 0.003, "descent": 0.1}
_CLIPS = (1.0, None)
_SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"seeds": 1, "hidden": 8, "inputs": 8, "batch": 8, "steps": 4, "longest": 12, "reach": 16, "texts": 16},
    "cpu": {
        "seeds": 3,
        "hidden": 64,
        "inputs": 32,
        "batch": 32,
        "steps": 400,
        "longest": 28,
        "reach": 48,
        "texts": 400,
    },
    "paper": {"seeds": 5, "hidden": 256, "inputs": 64, "batch": 64, "steps": 4000, "longest": 58, "reach": 108}
    | {"texts": 1000},
}
_MEASURED = 16  # texts in which norms are measured


class Gradients(Experiment):
    """Seven cells, before and after training, with and without clipping."""

    name = "cs224d-notes-4/gradients"
    title = "Vanishing and exploding gradients: norm against distance"
    source = "CS 224D, lecture notes IV, sections 2.1 and 2.2; the notes have no figures of it"

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List every cell with Adam, and those that learn by it with plain descent; clipped or not; every seed."""
        sizes = dict(_SIZES[scale])
        seeds = sizes.pop("seeds")
        ways = [("adam", cell) for cell in _CELLS] + [("descent", cell) for cell in _DESCENT]
        return [
            Trial(
                f"{cell}, {way}, {f'clipped at {clip:g}' if clip else 'not clipped'}, seed {seed}",
                {**sizes, "cell": cell, "optimiser": way, "rate": _RATES[way], "clip": clip, "seed": seed},
            )
            for seed in range(seeds)
            for clip in _CLIPS
            for way, cell in ways
        ]

    def run(self, trial: Trial, bench: Bench) -> Mapping[str, Any]:
        """Measure, train, measure again."""
        chosen = trial.settings
        torch.manual_seed(chosen["seed"])
        generator = random.Random(chosen["seed"])  # noqa: S311  # texts, not secrets
        cell = _CELLS[chosen["cell"]](chosen["inputs"], chosen["hidden"])
        model = WordReader(len(greeting_corpus.VOCABULARY), cell, len(greeting_corpus.NAMES))
        before = _norms(model, chosen)
        kind = torch.optim.Adam if chosen["optimiser"] == "adam" else torch.optim.SGD
        clip = math.inf if chosen["clip"] is None else chosen["clip"]

        def draw() -> tuple[Tensor, Tensor]:
            distance = generator.randint(greeting_corpus.NEAREST, chosen["longest"])
            return greeting_corpus.batch(chosen["batch"], distance, generator)

        batches = (draw() for _ in range(chosen["steps"]))
        went = learn(model, batches, _loss, kind(model.parameters(), lr=chosen["rate"]), clip)
        bench.say(f"{len(went.losses)} steps" + (f", loss {went.losses[-1]:.3f}" if went.losses else ""))
        found: dict[str, Any] = {"before": before, "longest_gradient": max(went.norms, default=0.0)}
        if went.diverged:
            return {**found, "after": None, "diverged": len(went.losses), "accuracy": None}
        right = greeting_corpus.accuracy(model, _distances(chosen), chosen["texts"], _unseen(chosen))
        return {**found, "after": _norms(model, chosen), "diverged": None, "accuracy": right}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate norms and accuracies."""
        sizes = _SIZES[scale]
        far, beyond = sizes["longest"], sizes["reach"]
        adam = where(results, optimiser="adam")
        norms = Table(
            f"‖∂h_T/∂s_(T-k)‖, spectral norm, mean over texts, median over seeds; k = {far}",
            ("cell", "per step, at first", "at first", "trained, clipped", "trained, not clipped"),
            [
                (cell, _per_step(adam, cell, far), *(_norm(adam, cell, far, stage) for stage in _STAGES))
                for cell in _CELLS
                if where(adam, cell=cell)
            ],
        )
        recall = Table(
            f"Accuracy, %, of naming the second person (chance {100 / (len(greeting_corpus.NAMES) - 1):.0f}); "
            f"trained on distances {greeting_corpus.NEAREST} to {far}",
            ("cell, optimiser", "clipped", f"distance {far}", f"distance {beyond}", "longest gradient", "diverged"),
            [
                (f"{cell}, {way}", "at 1" if clip else "no", *_recall(chosen, (far, beyond)))
                for way in _RATES
                for cell in _CELLS
                for clip in _CLIPS
                if (chosen := _of(results, cell, clip, way))
            ],
        )
        figures = {
            "cs224d-notes-4-gradients": lambda: _draw_norms(adam, far),
            "cs224d-notes-4-gradients-recall": lambda: _draw_recall(adam, far),
        }
        return Report([norms, recall], figures)


def _loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    words, answers = batch
    return F.cross_entropy(model(words)[-1], answers)


def _unseen(chosen: Mapping[str, Any]) -> random.Random:
    """Draw texts other than those that are trained on."""
    return random.Random(f"unseen {chosen['seed']}")  # noqa: S311  # texts, not secrets


def _distances(chosen: Mapping[str, Any]) -> list[int]:
    first, last = greeting_corpus.NEAREST, chosen["reach"]
    return sorted({*range(first, last, max(1, (last - first) // 8)), chosen["longest"], last})


def _norms(model: WordReader, chosen: Mapping[str, Any]) -> dict[str, Any] | None:
    words, answers = greeting_corpus.batch(_MEASURED, chosen["reach"], _unseen(chosen))
    flow = gradient_flow(model, words, answers, chosen["reach"])
    return None if flow is None else flow._asdict()


_STAGES: tuple[tuple[str, float | None], ...] = (("before", 1.0), ("after", 1.0), ("after", None))


def _of(results: Sequence[Result], cell: str, clip: float | None, way: str = "adam") -> list[Result]:
    return where(results, cell=cell, optimiser=way, clip=clip)


def _curve(results: Sequence[Result], cell: str, stage: tuple[str, float | None], what: str) -> list[float]:
    """Take the median over the seeds whose numbers stayed finite."""
    when, clip = stage
    curves = [result[when][what] for result in _of(results, cell, clip) if result[when] is not None]
    return [median(values) for values in zip(*curves, strict=True)]


def _norm(results: Sequence[Result], cell: str, distance: int, stage: tuple[str, float | None]) -> str:
    curve = _curve(results, cell, stage, "jacobian")
    return f"{curve[distance]:.1e}" if curve else "–"


def _per_step(results: Sequence[Result], cell: str, distance: int) -> str:
    curve = _curve(results, cell, _STAGES[0], "jacobian")
    return f"× {curve[distance] ** (1 / distance):.3f}" if curve else "–"


def _recall(results: Sequence[Result], distances: Sequence[int]) -> list[str | Number]:
    whole = [result for result in results if result["accuracy"] is not None]
    accuracies: list[str | Number] = [
        Number([result["accuracy"][str(distance)] for result in whole], digits=1, percent=True)
        for distance in distances
    ]
    longest = max(result["longest_gradient"] for result in results)
    return [*accuracies, f"{longest:.3g}", f"{len(results) - len(whole)} of {len(results)}"]


def _line(panel: Axes, cell: str, xs: Sequence[float], ys: Sequence[float]) -> None:
    from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS

    number = list(_CELLS).index(cell)
    every = max(1, len(xs) // 8)
    panel.plot(xs, ys, color=COLOURS[number], marker=MARKERS[number], markevery=every, label=cell)


def _draw_norms(results: Sequence[Result], far: int) -> Figure:
    from unrolled.lab.papers.framework.figure_style import grid, legend_below

    figure, panels = grid(2, 3, width=3.4, height=2.9)
    titles = ("at initialisation", "trained, clipped at 1", "trained, not clipped")
    quantities = (("jacobian", "‖∂h_T / ∂s_(T-k)‖"), ("loss", "‖∂E / ∂s_(T-k)‖ relative to k = 0"))
    for row, (what, label) in enumerate(quantities):
        for column, (stage, title) in enumerate(zip(_STAGES, titles, strict=True)):
            panel = panels[3 * row + column]
            for cell in _CELLS:
                curve = _curve(results, cell, stage, what)
                if curve and curve[0] > 0:
                    # A rectifier may pass nothing at all, which a logarithm cannot show.
                    ys = [value / curve[0] if value > 0 else math.nan for value in curve]
                    _line(panel, cell, range(len(curve)), ys)
            panel.axvline(far, color="#888888", linestyle=":", linewidth=1)
            panel.set(yscale="log", ylim=(1e-12, 1e6), title=title, xlabel="distance k, steps")
            if column == 0:
                panel.set_ylabel(label)
    legend_below(figure, panels[0], len(_CELLS))
    return figure


def _draw_recall(results: Sequence[Result], far: int) -> Figure:
    from unrolled.lab.papers.framework.figure_style import grid, legend_below

    figure, panels = grid(1, 2, width=4.0)
    for panel, clip, title in zip(panels, _CLIPS, ("clipped at 1", "not clipped"), strict=True):
        for cell in _CELLS:
            found = [result["accuracy"] for result in _of(results, cell, clip)]
            whole = [accuracy for accuracy in found if accuracy is not None]
            if whole:
                xs = [int(distance) for distance in whole[0]]
                _line(panel, cell, xs, [100 * sum(each[str(x)] for each in whole) / len(whole) for x in xs])
        panel.axvline(far, color="#888888", linestyle=":", linewidth=1)
        panel.axhline(100 / (len(greeting_corpus.NAMES) - 1), color="#888888", linestyle="--", linewidth=1)
        panel.set(title=title, xlabel="distance of the name, words", ylabel="right answers, %", ylim=(0, 104))
    legend_below(figure, panels[0], 4)
    return figure
