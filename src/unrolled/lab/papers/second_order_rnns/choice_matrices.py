"""How many choice matrices do mmRNN and mmLSTM need? Character models of equal size with 1 to 8 of them.

The paper says that it "ran our experiments with different number of choice matrices" and chose 4 "through empirical
analysis"; it prints no numbers of that. Here every network has the same number of parameters, so more matrices mean
fewer units. With one matrix an mmRNN is an Elman network, and an mmLSTM an LSTM. Data and training are those of
second-order-rnns/language at the same scale.

Source:
    Second-order RNNs, section 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from unrolled.cells import recurrent
from unrolled.lab.data.corpus import Characters
from unrolled.lab.data.stream_encoding import build_vocabulary
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
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_corpora import read_or_make_up
from unrolled.lab.papers.framework.trial_training import run_metrics, train_once

__all__ = ["ChoiceMatrices", "units_of_budget"]

_CELLS = {"mmlstm": "mmLSTM", "mmrnn": "mmRNN"}
_COUNTS = (4, 2, 1, 8)
_WHOLE: dict[str, Any] = {"lines": [None] * 3, "budget": 4_500_000, "embedding": 128}
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"lines": [24, 8, 8], "budget": 3000, "embedding": 8, "bptt": 20},
    "cpu": {"lines": [3000, 500, 1500], "budget": 300_000, "embedding": 128, "bptt": 50},
    "day": {**_WHOLE, "bptt": 50},
    "paper": {**_WHOLE, "bptt": 100},
}
"""``budget``: the number of parameters, vectors of characters and the output layer included."""
_TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"epochs": 1},
    "cpu": {"epochs": 2, "batch": 32, "lr": 0.003, "schedule": "cosine", "clip": 3.5},
    "day": {"epochs": 3, "batch": 64, "lr": 0.002, "schedule": "cosine", "clip": 3.5},
    "paper": {"epochs": 200, "patience": 5, "batch": 128, "lr": 0.001, "schedule": "constant", "clip": 3.5},
}
_SEEDS: dict[Scale, int] = {"smoke": 1, "cpu": 1, "day": 1, "paper": 3}


class ChoiceMatrices(Experiment):
    """A trial is one network."""

    name = "second-order-rnns/choice-matrices"
    title = "The number of choice matrices, at equal size"
    source = "Second-order RNNs, section 4.3; the paper prints no numbers for other numbers of matrices"
    scales = tuple(SCALES)
    usual_hours = 1.2

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the networks seed by seed, those of the paper's number first."""
        data = "made up" if scale == "smoke" else "ptb-chars"
        return [
            Trial(
                f"{_CELLS[cell]}, {count} {'matrices' if count > 1 else 'matrix'}, seed {seed}",
                {
                    "data": data,
                    "encoder": cell,
                    "choices": count,
                    **_SIZES[scale],
                    "training": {**_TRAINING[scale], "seed": seed},
                },
            )
            for seed, count, cell in product(range(_SEEDS[scale]), _COUNTS, _CELLS)
        ]

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Find the number of units that the budget allows, train, and measure on the test text."""
        chosen = trial.settings
        whole = read_or_make_up(chosen["data"], Characters, setup.data)
        corpus = first_lines(whole, *chosen["lines"])
        types = len(build_vocabulary(corpus.train))
        hidden = units_of_budget(
            chosen["encoder"], chosen["choices"], chosen["embedding"], types, budget=chosen["budget"]
        )
        setup.log(f"{hidden} units")
        model = {
            **{name: chosen[name] for name in ("encoder", "embedding", "bptt")},
            "hidden": hidden,
            "tied": False,
            "dropout": 0.25,
            "options": {"choices": chosen["choices"]},
        }
        return {**run_metrics(train_once(setup, "chars", corpus, model, chosen["training"])), "hidden": hidden}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate bits per character by the number of matrices."""
        rows: list[Sequence[str | Number]] = []
        for cell, count in product(_CELLS, sorted(_COUNTS)):
            if chosen := where(results, encoder=cell, choices=count):
                rows.append((
                    f"{_CELLS[cell]}, {count}",
                    Number([chosen[0]["hidden"]], digits=0),
                    Number([chosen[0]["parameters"] / 1e6], digits=3),
                    average(chosen, "dev_bpc", digits=3),
                    average(chosen, "test_bpc", digits=3),
                ))  # fmt: skip
        columns = ("choice matrices", "units", "parameters, millions", "dev, bits per character", "test")
        return Report([Table("Penn Treebank, characters", columns, rows)])


def units_of_budget(cell: str, choices: int, embedding: int, types: int, *, budget: int) -> int:
    """Find the number of units whose network, vectors and output layer come nearest to a number of parameters."""

    def parameters(units: int) -> int:
        network = recurrent(cell, embedding, units, choices=choices)
        return sum(each.numel() for each in network.parameters()) + types * (embedding + units + 1)

    low, high = 1, 2
    while parameters(high) < budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if parameters(middle) >= budget else (middle, high)
    return min((low, high), key=lambda units: abs(parameters(units) - budget))
