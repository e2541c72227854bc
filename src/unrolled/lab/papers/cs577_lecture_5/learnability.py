"""Does training find what a network can express? The memorising RNN is learned from random weights.

The lecture sets a linear network by hand so that its state holds the whole text, and says that such a network is
difficult to learn. Here every network reads N words, each a code of ±1, and then has to name all of them: one linear
layer reads the last state. All states have the size of the construction. "Set by hand" starts at the construction and
learns only the layer on top; "linear" has the same equations and random weights. The rate is chosen on dev texts.

Source:
    CS 577, lecture 5, expressiveness and learnability.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unrolled.cells.base import Cell
from unrolled.cells.elman import Elman
from unrolled.cells.gru import GRU
from unrolled.cells.lstm import LSTM
from unrolled.cells.memorising import Memorising
from unrolled.lab.papers.framework.experiment import SPLITS, Experiment, Report, Result, Scale, Trial, TrialSetup, where
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.training_loop import train_steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Learnability"]


def _random_linear(inputs: int, hidden: int) -> Cell:
    cell = Memorising(inputs, hidden)
    for weight in cell.parameters():
        nn.init.uniform_(weight, -(hidden**-0.5), hidden**-0.5)  # as torch.nn.RNN starts
    return cell


_CELLS: dict[str, Callable[[int, int], Cell]] = {
    "set by hand": Memorising,
    "linear": _random_linear,
    "RNN": Elman,
    "GRU": GRU,
    "LSTM": LSTM,
}
_SIZES: dict[Scale, tuple[tuple[int, ...], int, int]] = {
    "smoke": ((2, 3), 30, 1),
    "cpu": ((8, 24, 48), 2000, 3),
    "paper": ((8, 24, 48, 96), 20_000, 5),
}
"""Words of a text, training steps, seeds; the lecture has no sizes."""
_RATES = (0.001, 0.01)
"""Learning rates of Adam, of which dev chooses one for each network, length and seed."""
_BITS = 3
"""Numbers in the code of a word, so there are eight words."""
_BATCH, _TESTED, _CLIP = 64, 1000, 1.0
"""Texts in a batch, texts of dev and of test, and the norm to which gradients are clipped: our choices."""
_ALL = 0.999
"""A larger share of words counts as all of them."""


class Learnability(Experiment):
    """A trial is one network at one rate."""

    name = "cs577-lecture-5/learnability"
    title = "Expressive but hard to learn: is the memorising RNN found by training?"
    source = "CS 577, lecture 5, expressiveness and learnability: a statement without numbers"

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List networks, lengths and rates, seed by seed."""
        lengths, steps, seeds = _SIZES[scale]
        return [
            Trial(
                f"{model}, {length} words, rate {rate:g}, seed {seed}",
                {"model": model, "length": length, "rate": rate, "steps": steps, "seed": seed},
            )
            for seed in range(seeds)
            for length in lengths
            for model in _CELLS
            for rate in _RATES
        ]

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train on random texts, and test on others."""
        chosen = trial.settings
        length = chosen["length"]
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(chosen["seed"])
            model = _Recaller(_CELLS[chosen["model"]](_BITS, length * _BITS), length)
            if chosen["model"] == "set by hand":
                model.cell.requires_grad_(False)
            optimiser = torch.optim.Adam([each for each in model.parameters() if each.requires_grad], chosen["rate"])
            log = train_steps(model, _texts(length, chosen["steps"]), _cost, optimiser, _CLIP)
            found = {"diverged": log.diverged}
            for split in SPLITS:
                texts = torch.randint(2**_BITS, (length, _TESTED))
                with torch.no_grad():
                    right = model(texts).argmax(dim=-1) == texts
                found[f"{split}_words"] = right.double().mean().item()
                found[f"{split}_texts"] = right.all(dim=0).double().mean().item()
                found[f"{split}_by_age"] = right.flip(0).double().mean(dim=1).tolist()
        return found

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate and draw the shares of words recalled."""
        lengths, steps, _ = _SIZES[scale]
        rows: list[Sequence[str | Number]] = []
        for model in _CELLS:
            if where(results, model=model):
                cells = (
                    Number([each[what] for each in _best(results, model, length)], digits=1, percent=True)
                    for length in lengths
                    for what in ("test_words", "test_texts")
                )
                rows.append((model, *cells))
        columns = ("model", *(each for length in lengths for each in (f"{length} words: recalled", "whole texts")))
        chance = 100 / 2**_BITS
        title = f"Words of a new text named from the last state, % (chance {chance:g}), after {steps:,} steps"
        return Report(
            [Table(title, columns, rows)],
            {"cs577-lecture-5-learnability": partial(_draw, results, max(lengths))},
        )

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool]:
        """The lecture: the network can be expressed, and is difficult to learn."""
        claims = {}
        for length in sorted({each.trial.settings["length"] for each in results}):
            by_hand, linear = _best(results, "set by hand", length), _best(results, "linear", length)
            if by_hand and linear:
                recalls = min(each["test_words"] for each in by_hand) > _ALL
                learns = max(each["test_words"] for each in linear) > _ALL
                claims[f"set by hand, the network recalls all of {length} words"] = recalls
                claims[f"from random weights it does not learn to recall {length} words"] = not learns
        return claims


class _Recaller(nn.Module):
    """One cell over codes, and one linear layer from its last state to every word."""

    codes: Tensor

    def __init__(self, cell: Cell, length: int) -> None:
        super().__init__()
        self.cell = cell
        self.length = length
        words = torch.arange(2**_BITS)
        self.register_buffer("codes", 2.0 * (words[:, None] >> torch.arange(_BITS) & 1) - 1)
        self.output = nn.Linear(cell.output_size, length * 2**_BITS)

    def forward(self, texts: Tensor) -> Tensor:
        """Return scores of every word at every place, shape (time, batch, words), from texts, shape (time, batch)."""
        last = self.cell.hidden(self.cell.unroll(self.codes[texts])[-1])
        return self.output(last).unflatten(-1, (self.length, -1)).transpose(0, 1)


def _texts(length: int, steps: int) -> Iterator[Tensor]:
    return (torch.randint(2**_BITS, (length, _BATCH)) for _ in range(steps))


def _cost(model: nn.Module, texts: Tensor) -> Tensor:
    return F.cross_entropy(model(texts).flatten(0, 1), texts.flatten())


def _best(results: Sequence[Result], model: str, length: int) -> list[Result]:
    """For each seed the result of the rate with most words right on dev."""
    found = where(results, model=model, length=length)
    seeds = sorted({each.trial.settings["seed"] for each in found})
    return [max(where(found, seed=seed), key=lambda each: each["dev_words"]) for seed in seeds]


def _draw(results: Sequence[Result], length: int) -> Figure:
    figure, (panel,) = grid(width=5.0)
    for number, model in enumerate(_CELLS):
        if best := _best(results, model, length):
            shares = torch.tensor([each["test_by_age"] for each in best], dtype=torch.float64).mean(dim=0)
            panel.plot(
                range(1, length + 1),
                (100 * shares).tolist(),
                color=COLOURS[number % len(COLOURS)],
                marker=MARKERS[number % len(MARKERS)],
                label=model,
            )
    panel.axhline(100 / 2**_BITS, color="0.6", linestyle=":", label="chance")
    panel.set(title=f"texts of {length} words", xlabel="words back from the end", ylabel="recalled, %", ylim=(-4, 104))
    panel.legend()
    return figure
