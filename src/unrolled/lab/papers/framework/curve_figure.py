"""Curves of trainings: the loss on training text between batches, and on dev after each epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LOSSES", "curves_of", "plot_curves"]

LOSSES = "nats per word: training (solid)\nand dev (dashed)"
"""What the vertical axis of curves of language models shows."""


def curves_of(results: Sequence[Result]) -> Mapping[str, Any] | None:
    """Return the curves that the first of some results kept, of :func:`loss_curves`; one seed shows the shape."""
    return next((result["curves"] for result in results if "curves" in result.values), None)


def plot_curves(panel: Axes, curves: Mapping[str, Mapping[str, Any] | None]) -> None:
    """Plot curves in a panel, each by its name. A training without curves leaves its colour and marker out."""
    values: list[float] = []
    for number, (name, found) in enumerate(curves.items()):
        if found is None:
            continue
        colour, marker = COLOURS[number], MARKERS[number]
        values += [*found["losses"][1:], *found["dev"]]
        panel.plot(found["steps"], found["losses"], color=colour, linewidth=1, alpha=0.6)
        panel.plot(found["epochs"], found["dev"], color=colour, marker=marker, linestyle="--", label=name)
    panel.set_xlabel("batches")
    if values:
        # the first loss of unbounded cells may be hundreds of times higher; it stays outside the panel
        panel.set_ylim(0.98 * min(values), 1.02 * max(values))
