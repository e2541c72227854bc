"""Brackets: the Dyck-RNN, the same with learned embeddings, and the paper's language models on its task.

Every model reads a string of brackets of two kinds, nested at most m deep, and predicts the kind of every closing
bracket. The paper mentions no longer strings than those of its training, so its WCPA is compared with that of our dev
split, on which the epoch is chosen by the loss. Our test strings are all longer. Our choices where the paper is silent:

- Data: it does not state how many of its 24,000 strings are for training, nor their exact lengths ("of the order of
  100's"). At scale paper we use 19,200 strings of 101 to 200 brackets. At scale cpu 200,000 brackets in strings of 1
  to 8m(m - 2) + 60, as Hewitt et al. draw them; a stack of 8 slots needs the short ones to leave its plateau. Scale
  day has the strings of scale paper.
- A shift moves a whole slot when embeddings are vectors, so that m slots have the paper's 2 m units.
- Language models have learned embeddings, one layer, and one size for all.

We learn all closing brackets of a string at once, the paper one per string. At scale day, 8 strings have as many
closing brackets as the paper's batch of 512, and the rate is the paper's 0.01. At scale cpu the Dyck-RNN's rate is 0.3,
and an epoch has fewer steps. The paper stops at a dev loss of 1e-5; we train for a fixed
number of epochs, and "converged" is the first epoch with a WCPA of 100% on dev.

Source:
    Second-order RNNs, sections 4.2, 5.1 to 5.4 and 6.2, the Dyck rows of tables 1 and 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from statistics import fmean
from typing import Any, cast

import torch
from torch import nn

from unrolled.cells.recurrent import Recurrent
from unrolled.cells.second_order import Dyck as Stack
from unrolled.lab.data.corpus import Brackets
from unrolled.lab.data.datasets.dyck import DyckStrings
from unrolled.lab.models.brackets import NextBracketModel
from unrolled.lab.papers.analyses.bracket_figures import CAPTION, SHAPES, draw_distances, draw_embeddings
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
from unrolled.lab.papers.framework.trial_training import run_metrics, train_model
from unrolled.lab.tasks.brackets import CloseBrackets

__all__ = ["DEPTHS", "KINDS", "DyckBrackets", "draw_strings"]

KINDS, DEPTHS = 2, (4, 6, 8)
"""The number of kinds of brackets, and the largest numbers of open ones."""


@dataclass(frozen=True)
class _Published:
    """The published numbers of a model, by m."""

    parameters: int | None = None
    wcpa: float | None = None
    epochs: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Model:
    title: str
    architecture: Mapping[str, Any]
    stack: bool = True
    published: _Published = field(default_factory=_Published)


_MODELS = (
    _Model("Dyck-RNN", {}, published=_Published(5, 1.0, epochs=(4, 2, 1), minutes=(3, 6, 10))),
    _Model("embeddings learned, e = 2", {"embedding": 2}, published=_Published(wcpa=1.0)),
    _Model("embeddings learned, e = 1", {"embedding": 1}),  # "unable to achieve good performance": no figure
    _Model("LSTM", {"encoder": "lstm"}, stack=False),
    _Model("RNN", {"encoder": "rnn"}, stack=False),
    _Model("mmLSTM", {"encoder": "mmlstm"}, stack=False),
    _Model("mmRNN", {"encoder": "mmrnn"}, stack=False),
)

_LONG = {"short": [101, 200], "long": [201, 400], "symbols": [2_900_000, 360_000, 360_000]}
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {
        "seeds": 1,
        "data": {"short": [1, 20], "long": [21, 40], "symbols": [600, 200, 300]},
        "language": {"embedding": 4, "hidden": 8},
        "stack_training": {"batch": 16, "lr": 0.3, "warmup": 5, "epochs": 2},
        "language_training": {"batch": 16, "lr": 0.01, "epochs": 1},
    },
    "cpu": {
        "seeds": 3,
        "data": {"symbols": [200_000, 20_000, 100_000]},
        "language": {"embedding": 16, "hidden": 64},
        "stack_training": {"batch": 64, "lr": 0.3, "warmup": 20, "epochs": 5},
        "language_training": {"batch": 64, "lr": 0.005, "warmup": 0, "epochs": 5},
    },
    "day": {
        "seeds": 1,
        "data": _LONG,
        "language": {"embedding": 128, "hidden": 256},
        "stack_training": {"batch": 8, "lr": 0.01, "warmup": 0, "epochs": 6},
        "language_training": {"batch": 64, "lr": 0.001, "warmup": 0, "clip": 3.5, "epochs": 6},
    },
    "paper": {
        "seeds": 3,
        "data": _LONG,
        "language": {"embedding": 128, "hidden": 256},
        "stack_training": {"batch": 512, "lr": 0.01, "warmup": 0, "epochs": 200, "patience": 5},
        "language_training": {"batch": 128, "lr": 0.001, "warmup": 0, "clip": 3.5, "epochs": 200, "patience": 5},
    },
}

_STACK_HOURS = 0.08
_HOURS = {"RNN": 0.04, "LSTM": 0.13, "mmRNN": 0.11, "mmLSTM": 0.45}
"""Estimated hours of a training at scale day, on one core."""


class DyckBrackets(Experiment):
    """A trial is one model at one depth."""

    name = "second-order-rnns/dyck"
    title = "Closing brackets: the Dyck-RNN, learned embeddings, and language models"
    source = "Second-order RNNs, the Dyck rows of tables 1 and 2, section 5.4 (language models) and section 6.2"
    headline = ("Dyck-RNN, 4", "WCPA, %")
    scales = tuple(SCALES)

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List every model at m = 4, then deeper; a seed draws strings and weights."""
        sizes = _SIZES[scale]
        return [
            Trial(
                f"{model.title}, m = {depth}, seed {seed}",
                {
                    "model": model.title,
                    "depth": depth,
                    "data": sizes["data"],
                    "architecture": {**model.architecture, **({} if model.stack else sizes["language"])},
                    "training": {**sizes["stack_training" if model.stack else "language_training"], "seed": seed},
                },
            )
            for seed in range(sizes["seeds"])
            for depth in DEPTHS
            for model in _MODELS
        ]

    def day_hours(self, trial: Trial) -> float:
        """Estimate by the model."""
        return _HOURS.get(trial.settings["model"], _STACK_HOURS)

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, measure at every distance, and read the gate."""
        chosen = trial.settings
        corpus = draw_strings(chosen)
        run = train_model(setup, "brackets", corpus, chosen["architecture"], chosen["training"])
        task, model = cast("CloseBrackets", run.task), cast("NextBracketModel", run.model)
        split = task.encode(corpus.test)
        with torch.no_grad():
            found = task.distances(model, (split.select(which) for which in split.plan(task.evaluation_batch)))
        converged = next((epoch.number for epoch in run.history if epoch.dev["wcpa"] == 1), None)
        return {
            **run_metrics(run),
            "trained": sum(each.numel() for each in model.parameters() if each.requires_grad),
            "converged": converged,
            "distances": list(found),
            "right": [round(share, 4) for share in found.values()],
            "embedding": [[round(number, 4) for number in row] for row in model.embedding.weight.tolist()],
            "gates": gates(model),
        }

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate WCPA and convergence, and the learned embeddings."""
        tables = [_accuracies(results)]
        name = "second-order-rnns-dyck-distances"
        if stacks := [result for result in results if result["gates"] is not None]:
            tables.append(_embeddings(stacks))
        return Report(
            tables,
            {
                name: partial(draw_distances, results, DEPTHS, [model.title for model in _MODELS]),
                "second-order-rnns-dyck-embeddings": partial(draw_embeddings, results, DEPTHS),
            },
            {name: CAPTION},
        )

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool]:
        """The paper: stacks close every bracket but with e = 1, and no language model has a WCPA above 50%."""
        claims = {}
        for model, depth in product(_MODELS, DEPTHS):
            if chosen := where(results, model=model.title, depth=depth):
                mean = fmean(each["dev_wcpa"] for each in chosen)
                if model.published.wcpa:
                    told, holds = f"closes every bracket ({mean:.1%} WCPA)", mean >= model.published.wcpa
                elif model.stack:
                    told, holds = f"does not close every bracket ({mean:.1%} WCPA)", mean < 1
                else:
                    told, holds = f"has a WCPA of at most 50% ({mean:.1%})", mean <= 0.5
                claims[f"{model.title}, m = {depth}: {told}"] = holds
        return claims


def draw_strings(chosen: Mapping[str, Any]) -> Brackets:
    """Draw the strings of a trial by the seed of its training."""
    drawn = {name: tuple(value) for name, value in chosen["data"].items()}
    return DyckStrings(KINDS, chosen["depth"], seed=chosen["training"]["seed"], **drawn).read()


def gates(model: NextBracketModel) -> list[float] | None:
    """Give the gate g of the 2k brackets, opening ones first; None where the encoder is not a stack."""
    network = model.encoder
    if not isinstance(network, Recurrent) or not isinstance(network.cell(0, 0), Stack):
        return None
    weight = cast("nn.Parameter", network.cell(0, 0).weight)
    return [round(gate, 6) for gate in torch.sigmoid(model.embedding.weight @ weight.T).flatten().tolist()]


def _accuracies(results: Sequence[Result]) -> Table:
    rows: list[Sequence[str | Number]] = []
    for model in _MODELS:
        for place, depth in enumerate(DEPTHS):
            if not (chosen := where(results, model=model.title, depth=depth)):
                continue
            known = model.published
            epochs = [result["converged"] for result in chosen if result["converged"] is not None]
            of_them = f" in {len(epochs)} of {len(chosen)}" if len(epochs) < len(chosen) else ""
            theirs = f" ({known.epochs[place]})" if known.epochs else ""
            number = Number(epochs, digits=1 if len(epochs) > 1 else 0)
            share = partial(average, chosen, digits=1, percent=True)
            minutes = [result["seconds"] / 60 for result in chosen]
            rows.append((
                model.title,
                f"{depth}",
                str(Number([chosen[0]["trained"]], known.parameters, digits=0)),
                share("dev_wcpa", known.wcpa),
                share("test_wcpa"),
                share("test_by_distance"),
                f"{number}{of_them}{theirs}",
                str(Number(minutes, known.minutes[place] if known.minutes else None, digits=1)),
            ))  # fmt: skip
    columns = (
        "model", "m", "trained parameters", "WCPA, %", "WCPA of longer strings, %", "their mean over distances, %",
        "epochs to converge", "minutes",
    )  # fmt: skip
    title = (
        "Closing brackets of two kinds; correct: at least 0.8 of the probability of all closing brackets; converged: "
        "the first epoch with a WCPA of 100% on dev (published: that in which a dev loss below 1e-5 ends the training)"
    )
    return Table(title, columns, rows)


def _embeddings(stacks: Sequence[Result]) -> Table:
    rows: list[Sequence[str | Number]] = []
    for result in stacks:
        vectors = (f"({', '.join(f'{number:.2f}' for number in row)})" for row in result["embedding"])
        brackets = zip(vectors, result["gates"], strict=True)
        rows.append((result.trial.label, *(f"{vector}: {gate:.4f}" for vector, gate in brackets)))
    return Table("Embedding and gate (1 pushes, 0 pops) of each bracket after training", ("", *SHAPES), rows)
