"""Gradient norms against distance: ‖∂h_T/∂s_{T-k}‖ and ‖∂E/∂s_{T-k}‖ for every k.

The notes derive the bound (β_W β_h)^k. They propose clipping against explosion, an identity matrix and the rectifier
against vanishing, and gated cells; they measure nothing. Our choices where they are silent:

- Task: theirs, with eight names drawn anew for every text and fillers of every length up to a limit.
- Training: Adam for all cells. With plain gradient descent, at rates from 0.1 to 3, neither LSTM nor GRU learns the
  task in the time that suffices for Adam. The two cells that learn it, tanh and relu from U = I, are also trained with
  plain descent.
- "identity" sets U = I and both biases to 0: for the rectifier and, to separate the two remedies, for tanh. The
  rectifier also starts from random weights.
- The state s is h, and [c; h] for the LSTM.

Source:
    CS 224D, lecture notes IV (2015), sections 2.1 and 2.2, algorithm 1, eq. 16.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unrolled.cells.base import Cell
from unrolled.cells.elman import Elman
from unrolled.cells.gru import GRU
from unrolled.cells.lstm import LSTM
from unrolled.lab.papers.analyses.gradient_flow import gradient_flow
from unrolled.lab.papers.analyses.sentences import greeting_corpus
from unrolled.lab.papers.cs224d_notes_4.gradient_figures import draw_norms, draw_recall
from unrolled.lab.papers.cs224d_notes_4.gradient_tables import bound_table, named, norm_table, recall_table
from unrolled.lab.papers.framework.experiment import Experiment, Report, Result, Scale, Trial, TrialSetup, where
from unrolled.lab.papers.framework.training_loop import WordScorer, train_steps

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
"""Learning rates; the notes state none, nor any of the sizes below."""
_CLIPS = (1.0, None)
"""The norm to which gradients are clipped; None for no clipping."""
_SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"seeds": 1, "hidden": 8, "inputs": 8, "batch": 8, "steps": 4, "longest": 12, "reach": 16, "texts": 16},
    "cpu": {
        "seeds": 3, "hidden": 64, "inputs": 32, "batch": 32, "steps": 400, "longest": 28, "reach": 48, "texts": 400,
    },
    "paper": {
        "seeds": 5, "hidden": 256, "inputs": 64, "batch": 64, "steps": 4000, "longest": 58, "reach": 108, "texts": 1000,
    },
}  # fmt: skip
_KEPT = 0.1  # the least part of a norm, near to far, that is left where a gradient is said not to be attenuated
_MEASURED = 16  # number of texts for the norms


class Gradients(Experiment):
    """A trial is one cell, before and after training, with or without clipping."""

    name = "cs224d-notes-4/gradients"
    title = "Vanishing and exploding gradients: norm against distance"
    source = "CS 224D, lecture notes IV, sections 2.1 and 2.2; the notes have no numbers"

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List every cell with Adam and two with plain descent, with and without clipping, seed by seed."""
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

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Measure, train, measure again."""
        chosen = trial.settings
        torch.manual_seed(chosen["seed"])
        generator = random.Random(chosen["seed"])  # noqa: S311  # texts, not secrets
        cell = _CELLS[chosen["cell"]](chosen["inputs"], chosen["hidden"])
        model = WordScorer(len(greeting_corpus.VOCABULARY), cell, len(greeting_corpus.NAMES))
        before = _norms(model, chosen)
        kind = torch.optim.Adam if chosen["optimiser"] == "adam" else torch.optim.SGD
        clip = math.inf if chosen["clip"] is None else chosen["clip"]

        def draw() -> tuple[Tensor, Tensor]:
            distance = generator.randint(greeting_corpus.NEAREST, chosen["longest"])
            return greeting_corpus.batch(chosen["batch"], distance, generator)

        batches = (draw() for _ in range(chosen["steps"]))
        training = train_steps(model, batches, _loss, kind(model.parameters(), lr=chosen["rate"]), clip)
        setup.log(f"{len(training.losses)} steps" + (f", loss {training.losses[-1]:.3f}" if training.losses else ""))
        found: dict[str, Any] = {"before": before, "longest_gradient": max(training.norms, default=0.0)}
        if training.diverged:
            return {**found, "after": None, "diverged": len(training.losses), "accuracy": None}
        right = greeting_corpus.accuracy(model, _distances(chosen), chosen["texts"], _unseen(chosen))
        return {**found, "after": _norms(model, chosen), "diverged": None, "accuracy": right}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate norms and accuracies."""
        far, beyond = _SIZES[scale]["longest"], _SIZES[scale]["reach"]
        adam, cells = where(results, optimiser="adam"), list(_CELLS)
        ways = [(cell, clip, way) for way in _RATES for cell in _CELLS for clip in _CLIPS]
        tables = [norm_table(adam, cells, far), bound_table(adam, cells, far), recall_table(results, ways, far, beyond)]
        figures = {
            "cs224d-notes-4-gradients": partial(draw_norms, adam, cells, far, f"{_MEASURED} texts"),
            "cs224d-notes-4-gradients-recall": partial(draw_recall, adam, cells, _CLIPS, far),
        }
        captions = {
            "cs224d-notes-4-gradients": "the median over the seeds, with Adam. A norm is divided by that at k = 0. The "
            "dotted line is the longest distance of training.",
            "cs224d-notes-4-gradients-recall": "the mean over the seeds, with Adam only; the table has plain descent "
            "too. The dotted line is the longest distance of training, the dashed one is chance.",
        }
        return Report(tables, figures, captions)

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool]:
        """The notes: the bound (β_W β_h)^k; clipping against explosion, U = I and the rectifier against vanishing."""
        measured = [found for result in results for found in (result["before"], result["after"]) if found is not None]
        bounds = [found["kept"] for found in measured if found["kept"] is not None]
        clipped, claims = [each for each in results if each.trial.settings["clip"] is not None], dict[str, bool]()
        if bounds:
            bounded = "the norm of the Jacobian is at most (β_W β_h)^k in all plain cells, at every distance"
            claims[bounded] = all(bounds)
        if clipped:
            claims["no training with clipping diverges"] = all(each["diverged"] is None for each in clipped)
        for cell, remedy in (("tanh", "tanh, identity"), ("relu", "relu, identity")):
            norms = {
                name: median(each["before"]["jacobian"][-1] for each in chosen)
                for name in (cell, remedy)
                if (chosen := where(results, cell=name))
            }
            if len(norms) == 2:
                claims[f"{named(remedy)} has a larger norm before training than {cell}"] = norms[remedy] > norms[cell]
        if rectified := where(results, cell="relu"):
            kept = median(curve[-1] / curve[0] for curve in (each["before"]["jacobian"] for each in rectified))
            claims["relu attenuates the norm before training at most tenfold"] = kept >= _KEPT
        return claims


def _loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    words, answers = batch
    return F.cross_entropy(model(words)[-1], answers)


def _unseen(chosen: Mapping[str, Any]) -> random.Random:
    """Make a generator of texts that are not those of training."""
    return random.Random(f"unseen {chosen['seed']}")  # noqa: S311  # texts, not secrets


def _distances(chosen: Mapping[str, Any]) -> list[int]:
    first, last = greeting_corpus.NEAREST, chosen["reach"]
    return sorted({*range(first, last, max(1, (last - first) // 8)), chosen["longest"], last})


def _norms(model: WordScorer, chosen: Mapping[str, Any]) -> dict[str, Any] | None:
    words, answers = greeting_corpus.batch(_MEASURED, chosen["reach"], _unseen(chosen))
    flow = gradient_flow(model, words, answers, chosen["reach"])
    return None if flow is None else flow._asdict()
