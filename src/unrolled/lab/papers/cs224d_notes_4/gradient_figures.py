"""Figures of ``gradients``: norms and accuracies by distance, a line a cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from unrolled.lab.papers.analyses.sentences import greeting_corpus
from unrolled.lab.papers.cs224d_notes_4.gradient_tables import STAGES, curve, named, of_cell
from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid, legend_below, write_seeds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_norms", "draw_recall"]


def _line(panel: Axes, number: int, cell: str, xs: Sequence[float], ys: Sequence[float]) -> None:
    every = max(1, len(xs) // 8)
    panel.plot(xs, ys, color=COLOURS[number], marker=MARKERS[number], markevery=every, label=named(cell))


def draw_norms(results: Sequence[Result], cells: Sequence[str], far: int, texts: str) -> Figure:
    """Draw the norms by distance, before and after training; ``texts`` says over how many they are averaged."""
    figure, panels = grid(2, 3, width=3.4, height=2.9)
    titles = ("untrained", "trained, clipped at 1", "trained, not clipped")
    quantities = (("jacobian", "‖∂h_T / ∂s_(T-k)‖"), ("loss", "‖∂E / ∂s_(T-k)‖ relative to k = 0"))
    for row, (what, label) in enumerate(quantities):
        for column, (stage, title) in enumerate(zip(STAGES, titles, strict=True)):
            panel = panels[3 * row + column]
            for number, cell in enumerate(cells):
                norms = curve(results, cell, stage, what)
                if norms and norms[0] > 0:
                    # a rectifier may pass nothing at all; a logarithmic axis has no place for 0
                    ys = [value / norms[0] if value > 0 else math.nan for value in norms]
                    _line(panel, number, cell, range(len(norms)), ys)
            panel.axvline(far, color="#888888", linestyle=":", linewidth=1)
            panel.set(yscale="log", ylim=(1e-12, 1e6), title=title, xlabel="distance k, steps")
            if column == 0:
                panel.set_ylabel(label)
    write_seeds(panels, results, texts)
    legend_below(figure, panels[0], len(cells))
    return figure


def draw_recall(results: Sequence[Result], cells: Sequence[str], clips: Sequence[float | None], far: int) -> Figure:
    """Draw the accuracies by distance, with clipping and without."""
    figure, panels = grid(1, 2, width=4.0)
    for panel, clip, title in zip(panels, clips, ("clipped at 1", "not clipped"), strict=True):
        for number, cell in enumerate(cells):
            found = [result["accuracy"] for result in of_cell(results, cell, clip)]
            ended = [accuracy for accuracy in found if accuracy is not None]
            if ended:
                xs = [int(distance) for distance in ended[0]]
                _line(panel, number, cell, xs, [100 * sum(each[str(x)] for each in ended) / len(ended) for x in xs])
        panel.axvline(far, color="#888888", linestyle=":", linewidth=1)
        panel.axhline(100 / (len(greeting_corpus.NAMES) - 1), color="#888888", linestyle="--", linewidth=1)
        panel.set(title=title, xlabel="words since the name", ylabel="accuracy, %", ylim=(0, 104))
    write_seeds(panels, results)
    legend_below(figure, panels[0], 4)
    return figure
