"""The memorising RNN, with weights set by hand, recalls its input exactly; with one weight changed it does not.

The lecture gives the construction without numbers. Here a word is a code of ±1, as short as the vocabulary allows. The
network reads texts twice as long as its memory and recalls the words of the last N places. A slot is exact if all its
numbers are bit-identical; a word is recalled if its code is the nearest. The control multiplies one of the ones of U,
in the middle of the memory, so that every number that passes this weight changes.

Source:
    CS 577, lecture 5, long-term dependencies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unrolled.cells.memorising import Memorising
from unrolled.lab.papers.framework.experiment import Experiment, Report, Result, Scale, Trial, TrialSetup, where
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid
from unrolled.lab.papers.framework.table import Number, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MemorisingRecall"]

_SIZES: dict[Scale, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    "smoke": ((2, 5), (2, 7), 8),
    "cpu": ((2, 8, 32, 128), (2, 26, 1000, 10_000), 200),
    "paper": ((2, 8, 32, 128, 512), (2, 26, 1000, 10_000, 100_000), 1000),
}
"""Memory lengths, vocabulary sizes, and number of texts. The lecture has no sizes: 2 is the smallest vocabulary,
26 that of the letters, and 10,000 that of the Penn Treebank."""
_FACTORS = (1.0, 0.99, -1.0)  # intact; slightly changed; with the other sign


class MemorisingRecall(Experiment):
    """A trial is one length with one vocabulary, intact or with one weight changed."""

    name = "cs577-lecture-5/memorising"
    title = "The memorising RNN recalls exactly"
    source = "CS 577, lecture 5, long-term dependencies: a construction without numbers"

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List lengths, vocabularies and factors of the one weight."""
        lengths, vocabularies, texts = _SIZES[scale]
        return [
            Trial(
                f"{length} words out of {words}, one weight times {factor:g}",
                {"length": length, "words": words, "factor": factor, "texts": texts, "seed": 0},
            )
            for factor in _FACTORS
            for length in lengths
            for words in vocabularies
        ]

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Write texts into the memory and recall them."""
        chosen = trial.settings
        length, words = chosen["length"], chosen["words"]
        generator = torch.Generator().manual_seed(chosen["seed"])
        codes = _codes(words)
        cell = Memorising(codes.shape[1], length * codes.shape[1])
        slot = length // 2 * codes.shape[1]  # the first number of the slot that the changed weight fills
        with torch.no_grad():
            cell.weight_hh[slot, slot - codes.shape[1]] *= chosen["factor"]
        texts = torch.randint(words, (2 * length, chosen["texts"]), generator=generator)
        with torch.no_grad():
            slots = cell.recall(cell.unroll(codes[texts])[-1])
        asked = texts.flip(0)[:length].T
        exact = (slots == codes[asked]).all(dim=-1)
        recalled = _nearest(slots) == asked
        return {
            "exact": exact.double().mean().item(),
            "recalled": recalled.double().mean().item(),
            "whole": recalled.all(dim=1).double().mean().item(),
            "by_age": recalled.double().mean(dim=0).tolist(),
            "state": cell.state_size,
        }

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate the shares recalled, intact and with one weight changed."""
        keys = dict.fromkeys((result.trial.settings["length"], result.trial.settings["words"]) for result in results)
        rows = []
        for length, words in keys:
            cells: list[str | Number] = [f"{length}", f"{words:,}"]
            found = {factor: _of(results, length, words, factor) for factor in _FACTORS}
            state = next(result["state"] for result in found.values() if result is not None)
            cells.append(Number([state], digits=0))
            for factor in _FACTORS:
                result = found[factor]
                for what in ("exact", "recalled"):
                    cells.append(Number([] if result is None else [result[what]], digits=2, percent=True))
            rows.append(cells)
        columns = ["N", "vocabulary", "state size"]
        for title in ("by hand", "one weight × 0.99", "one weight × -1"):
            columns += [f"{title}: exact", "words recalled"]
        table = Table("The last N words of texts of 2 N words, %: bit-identical, and recalled", columns, rows)
        longest = max((length for length, _ in keys), default=0)
        return Report(
            [table],
            {"cs577-lecture-5-memorising": partial(_draw, results, longest)},
        )

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool]:
        """The lecture: the network recalls its input exactly."""
        intact = where(results, factor=1.0)
        return (
            {"every network recalls every number to the last bit": min(each["exact"] for each in intact) == 1}
            if intact
            else {}
        )


def _codes(words: int) -> Tensor:
    """Give every word its index in binary as a code of ±1, shape (words, bits)."""
    bits = max(1, (words - 1).bit_length())
    return 2.0 * (torch.arange(words)[:, None] >> torch.arange(bits) & 1) - 1


def _nearest(slots: Tensor) -> Tensor:
    """Find the nearest codes by the signs; a code may belong to no word."""
    return ((slots > 0).long() << torch.arange(slots.shape[-1])).sum(dim=-1)


def _of(results: Sequence[Result], length: int, words: int, factor: float) -> Result | None:
    return next(iter(where(results, length=length, words=words, factor=factor)), None)


def _draw(results: Sequence[Result], length: int) -> Figure:
    figure, (panel,) = grid(width=5.0)
    words = max(result.trial.settings["words"] for result in results)
    labels = ("set by hand", "one weight × 0.99", "one weight × -1")
    for number, (factor, label) in enumerate(zip(_FACTORS, labels, strict=True)):
        result = _of(results, length, words, factor)
        if result is not None:
            panel.plot(
                range(length),
                [100 * share for share in result["by_age"]],
                color=COLOURS[number],
                marker=MARKERS[number],
                markevery=(number * length // 24, max(1, length // 8)),
                linestyle=("-", "--", "-")[number],
                label=label,
            )
    panel.set(
        title=f"{length} words out of {words:,}",
        xlabel="steps since the word was read",
        ylabel="recalled, %",
        ylim=(-4, 104),
    )
    panel.legend(loc="center left")
    return figure
