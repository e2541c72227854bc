r"""The notes' figure 5: gradient descent before a steep wall of the error surface, with and without clipping.

.. math:: h_t = w σ(h_{t-1}) + b,\quad h_0 = 0.5,\quad E(w, b) = (σ(h_{50}) - 0.7)²

The notes draw the figure without naming the network; this one is that of Pascanu et al. Neither states the starting
point, the rate and the threshold, so they are our choices. One descent is drawn. To count how often clipping helps,
descents also start from a grid of points over the whole figure.

Source:
    CS 224D, lecture notes IV (2015), figure 5; Pascanu, Mikolov and Bengio (2013), section 2 and figure 6,
    arXiv:1211.5063.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unrolled.lab.papers.framework.experiment import Experiment, Report, Result, Scale, Trial, TrialSetup, average
from unrolled.lab.papers.framework.figure_style import COLOURS, grid, legend_below
from unrolled.lab.papers.framework.table import Number, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ClippingSurface", "error"]

_STEPS = 50
_TARGET = 0.7
_FIRST = 0.5
_LEFT, _RIGHT, _LOW, _HIGH = 4.0, 6.0, -3.0, -1.5  # the range of (w, b) that is drawn and of the starting points
_START = (5.0, -2.1)  # of the drawn descent: on the plateau before the wall
_DRAWN = 90  # updates of the drawn descent
_RATE, _CLIP = 0.1, 1.0
_REACHED = 1e-3  # a smaller error counts as the minimum; the plateau has 0.02 to 0.09
_SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"lattice": 5, "updates": 20},
    "cpu": {"lattice": 25, "updates": 2000},
    "paper": {"lattice": 101, "updates": 10_000},
}


def error(w: Tensor, b: Tensor) -> Tensor:
    """Compute E for weights and biases of one shape."""
    h = torch.full_like(w, _FIRST)
    for _ in range(_STEPS):
        h = w * torch.sigmoid(h) + b
    return (torch.sigmoid(h) - _TARGET) ** 2


_NEAR = ((4.4, 5.1), (-2.5, -2.0))
"""The ranges of w and b around the wall."""


class ClippingSurface(Experiment):
    """A trial is a set of descents from a grid of points, with or without clipping."""

    name = "cs224d-notes-4/clipping-surface"
    title = "Clipping before the wall of an error surface"
    source = "CS 224D, lecture notes IV, figure 5, after Pascanu et al. (2013), figure 6; it has no numbers"

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List descents with and without clipping."""
        return [
            Trial(label, {**_SIZES[scale], "rate": _RATE, "clip": clip})
            for clip, label in ((_CLIP, f"clipped at {_CLIP:g}"), (None, "not clipped"))
        ]

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Descend from the drawn starting point, and from every point of the grid at once."""
        chosen = trial.settings
        clip = math.inf if chosen["clip"] is None else chosen["clip"]
        drawn = _descend(torch.tensor([_START], dtype=torch.float64).T, min(_DRAWN, chosen["updates"]), clip)
        descents = _descend(torch.stack(_grid_points(chosen["lattice"])).flatten(1), chosen["updates"], clip)
        last = error(*descents.path[-1])
        w, b = descents.path[-1]
        outside = (w < _LEFT) | (w > _RIGHT) | (b < _LOW) | (b > _HIGH)
        setup.log(f"{_share(last < _REACHED):.1%} find an error below {_REACHED:g}")
        return {
            "w": [round(value, 4) for value in drawn.path[:, 0, 0].tolist()],
            "b": [round(value, 4) for value in drawn.path[:, 1, 0].tolist()],
            "drawn_error": error(*drawn.path[-1]).item(),
            "found": _share(last < _REACHED),
            "outside": _share(outside),
            "longest_step": descents.longest_step,
            "steepest": descents.steepest,
        }

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Count how the descents end, and draw one of each kind."""
        rows: list[Sequence[str | Number]] = [
            (
                result.trial.label,
                average([result], "found", digits=1, percent=True),
                average([result], "outside", digits=1, percent=True),
                f"{result['longest_step']:.3g}",
                f"{result['steepest']:.2g}",
            )
            for result in results
        ]
        count = _SIZES[scale]["lattice"] ** 2
        table = Table(
            f"{count:,} descents of {_SIZES[scale]['updates']:,} updates at rate {_RATE:g}",
            ("", f"reach E < {_REACHED:g}, %", "end outside the figure, %", "longest step", "largest gradient norm"),
            rows,
        )
        figures = {
            "cs224d-notes-4-clipping-surface": partial(_draw_surface, results),
            "cs224d-notes-4-clipping-map": partial(_draw_map, results),
        }
        return Report([table], figures)

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool]:
        """The notes: clipping keeps a descent from being thrown far away by the wall."""
        found = {result.trial.settings["clip"] is not None: result for result in results}
        if len(found) < 2:
            return {}
        clipped, free = found[True], found[False]
        return {
            "clipped descents find the minimum more often": clipped["found"] > free["found"],
            "clipped descents end outside the figure less often": clipped["outside"] < free["outside"],
        }


@dataclass(frozen=True)
class _Descents:
    path: Tensor
    """Shape (updates + 1, 2, descents)."""
    longest_step: float
    steepest: float
    """The largest norm of a gradient, before clipping."""


def _descend(begin: Tensor, updates: int, clip: float) -> _Descents:
    path, norms = [begin], []
    for _ in range(updates):
        point = path[-1].clone().requires_grad_()
        (gradient,) = torch.autograd.grad(error(*point).sum(), point)
        norm = gradient.norm(dim=0)
        norms.append(norm)
        shorter = torch.where(norm > clip, clip / norm, 1.0)
        path.append((point - _RATE * shorter * gradient).detach())
    whole = torch.stack(path)
    return _Descents(whole, (whole[1:] - whole[:-1]).norm(dim=1).max().item(), torch.stack(norms).max().item())


def _grid_points(
    count: int, ranges: tuple[tuple[float, float], tuple[float, float]] = ((_LEFT, _RIGHT), (_LOW, _HIGH))
) -> tuple[Tensor, Tensor]:
    """Give the coordinates of a grid of points, by default over the figure, shapes (count, count)."""
    w, b = (torch.linspace(*ends, count, dtype=torch.float64) for ends in ranges)
    across, up = torch.meshgrid(w, b, indexing="ij")
    return across, up


def _share(which: Tensor) -> float:
    return which.double().mean().item()


def _inside(result: Result) -> tuple[list[float], list[float]]:
    """Follow the path until it leaves the figure; cut its last step off at the edge."""
    points = list(zip(result["w"], result["b"], strict=True))
    for number, (w, b) in enumerate(points):
        if not (_LEFT <= w <= _RIGHT and _LOW <= b <= _HIGH):
            before = points[number - 1]
            ends = zip(before, (w, b), ((_LEFT, _RIGHT), (_LOW, _HIGH)), strict=True)
            share = min(
                ((high if to > high else low) - at) / (to - at) for at, to, (low, high) in ends if not low <= to <= high
            )
            points[number:] = [(before[0] + share * (w - before[0]), before[1] + share * (b - before[1]))]
            break
    return [w for w, _ in points], [b for _, b in points]


def _style(result: Result) -> dict[str, Any]:
    """Draw as the source does: a solid line without clipping, a dashed one with clipping."""
    clipped = result.trial.settings["clip"] is not None
    return {
        "color": COLOURS[1 if clipped else 6],
        "linestyle": "--" if clipped else "-",
        "linewidth": 1.4,
        "label": result.trial.label,
    }


def _draw_surface(results: Sequence[Result]) -> Figure:
    """Draw the surface at the wall from above, once for each descent, with a point for every update."""
    figure, panels = grid(1, len(results), width=3.9, height=3.5)
    ends = _NEAR
    w, b = _grid_points(401, ends)
    for panel, result in zip(panels, results, strict=True):
        colours = panel.contourf(w.numpy(), b.numpy(), error(w, b).numpy(), levels=18, cmap="Blues")
        look = _style(result)
        panel.plot(result["w"], result["b"], **{**look, "linewidth": 0.9}, marker="o", markersize=2.5)
        panel.plot(*_START, "o", color="black", markersize=6)
        panel.annotate("start", _START, (-4, 5), textcoords="offset points", ha="right", fontsize=8)
        gone = next((k for k, point in enumerate(zip(result["w"], result["b"], strict=True)) if not _near(point)), None)
        told = f"leaves at update {gone}" if gone is not None else f"stays for {len(result['w']) - 1} updates"
        panel.set_title(f"{result.trial.label}: {told}")
        panel.set(xlabel="recurrent weight w", ylabel="bias b", xlim=ends[0], ylim=ends[1])
    figure.colorbar(colours, ax=panels, label="error E")
    return figure


def _near(point: tuple[float, float]) -> bool:
    return all(low <= value <= high for value, (low, high) in zip(point, _NEAR, strict=True))


def _draw_map(results: Sequence[Result]) -> Figure:
    figure, (panel,) = grid(width=5.2, height=3.8)
    w, b = _grid_points(201)
    colours = panel.contourf(w.numpy(), b.numpy(), error(w, b).numpy(), levels=18, cmap="Blues")
    figure.colorbar(colours, label="error E")
    for result in results:
        along, across = _inside(result)
        panel.plot(along, across, **_style(result))
        if len(along) < len(result["w"]):
            to = (result["w"][len(along) - 1], result["b"][len(along) - 1])
            panel.annotate(
                f"to ({to[0]:.1f}, {to[1]:.1f})",
                (along[-1], across[-1]),
                (-10, -2),
                textcoords="offset points",
                va="top",
                ha="right",
            )
    panel.plot(*_START, marker="o", color="#000000", markersize=5)
    panel.set(xlabel="recurrent weight w", ylabel="bias b", xlim=(_LEFT, _RIGHT), ylim=(_LOW, _HIGH))
    panel.grid(visible=False)
    legend_below(figure, panel, 2)
    return figure
