r"""Adaptive quadrature of a slope G' on [0, 1] whose integral G(1) - G(0) is known.

The integral G(b) - G(a) of any piece is known, so the error of a quadrature is known and not estimated. Pieces with a
large error are cut, each example in its own places: where the tangents at its ends cross, if they cross inside (this
hits a kink of a piecewise linear function exactly), else in the middle. Cutting does not reduce the rounding of G: an
example is done when its error is near the bound and several cuts have not reduced it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest

import torch
from torch import Tensor

from unrolled.linalg.quadrature import legendre_nodes

__all__ = ["Jump", "partition"]

NODES = 5
"""Nodes of a piece."""
NARROW, LARGE = 1e-9, 1e-3
"""A piece this narrow, whose error is this large relative to the whole rise, holds a jump."""
MARGIN = 1e-9
"""A piece is cut no nearer to its ends than this share of it."""
NEAR, PATIENCE = 256, 8
"""An example whose error is at most NEAR times the bound is done after PATIENCE cuts that have not reduced it."""

Look = Callable[[Tensor], tuple[Tensor, Tensor]]
"""α of each example, shape (batch,) -> G(α) and G'(α), each shape (batch,)."""


class Jump(ArithmeticError):  # noqa: N818  # it says where, and its catcher says what to do
    """G jumps, so that no quadrature of its slope gives its rise.

    Args:
        place: Where, from 0 to 1.
    """

    def __init__(self, place: float) -> None:
        super().__init__(f"a jump at {place:.6g}")
        self.place = place


@dataclass(frozen=True)
class _Point:
    """The value and slope of G at one place."""

    place: float
    value: float
    slope: float


@dataclass(frozen=True)
class _Piece:
    start: _Point
    stop: _Point
    nodes: list[tuple[float, float]]
    error: float

    def cut(self) -> float:
        """Return the place where the tangents at the two ends cross, if it is inside; else the middle."""
        a, b = self.start, self.stop
        width, bend = b.place - a.place, a.slope - b.slope
        if bend * width != 0:  # a narrow piece of small slopes may underflow
            share = (b.value - a.value - b.slope * width) / (bend * width)
            if MARGIN < share < 1 - MARGIN:
                return a.place + share * width
        return a.place + 0.5 * width


def partition(look: Look, batch: int, scale: Tensor, rounding: float, pieces: int) -> list[tuple[Tensor, Tensor]]:
    """Choose nodes and weights for each example so that Σ w G'(α) = G(1) - G(0).

    Args:
        look: Evaluates G and G' at one α for each example.
        batch: Number of examples.
        scale: Size of G of each example, shape (batch,); errors are relative to it.
        rounding: Relative error that is accepted.
        pieces: Largest number of pieces for each example.

    Returns:
        Rounds of (α, weight), each shape (batch,); an example that is done early has weight 0 in later rounds.

    Raises:
        Jump: If G jumps.
    """

    def at(alphas: list[float]) -> list[_Point]:
        values, slopes = look(torch.tensor(alphas, device=scale.device, dtype=scale.dtype))
        return [_Point(*known) for known in zip(alphas, values.tolist(), slopes.tolist(), strict=True)]

    integrate = partial(_integrate, at)
    allowed = (rounding * scale).tolist()
    whole = list(zip(at([0.0] * batch), at([1.0] * batch), strict=True))
    # A linear readout needs a single node, and most readouts are linear.
    done = [[piece] for piece in integrate(whole, 1)]
    wrong = [b for b in range(batch) if done[b][0].error > allowed[b]]
    if wrong:
        finer = integrate(whole, NODES)
        for b in wrong:
            done[b] = [finer[b]]
    least, since = [math.inf] * batch, [0] * batch
    for _ in range(pieces - 1):
        for b in wrong:
            error = sum(piece.error for piece in done[b])
            since[b] = 0 if error < least[b] or error > NEAR * allowed[b] else since[b] + 1
            least[b] = min(least[b], error)
        wrong = [b for b in wrong if least[b] > allowed[b] and since[b] < PATIENCE]
        if not wrong:
            break
        worst = {b: max(done[b], key=lambda piece: piece.error) for b in wrong}
        for b, piece in worst.items():
            rise = abs(whole[b][1].value - whole[b][0].value)
            if piece.stop.place - piece.start.place < NARROW and piece.error > LARGE * rise + 1e3 * allowed[b]:
                raise Jump(piece.start.place)
        middles = at([worst[b].cut() if b in worst else 0.5 for b in range(batch)])
        # examples that are done are evaluated as well; their result is not used
        left = integrate([(worst[b].start if b in worst else whole[b][0], middles[b]) for b in range(batch)], NODES)
        right = integrate([(middles[b], worst[b].stop if b in worst else whole[b][1]) for b in range(batch)], NODES)
        for b in wrong:
            done[b] = [piece for piece in done[b] if piece is not worst[b]] + [left[b], right[b]]
    return _rounds([[node for piece in of_example for node in piece.nodes] for of_example in done], scale)


def _integrate(
    at: Callable[[list[float]], list[_Point]], ends: list[tuple[_Point, _Point]], count: int
) -> list[_Piece]:
    """Integrate one piece of every example by ``count`` nodes of Gauss-Legendre, and measure the error."""
    rule = legendre_nodes(count)
    looks = [at([a.place + node * (b.place - a.place) for a, b in ends]) for node, _ in rule]
    made = []
    for i, (a, b) in enumerate(ends):
        nodes = [(points[i].place, w * (b.place - a.place)) for (_, w), points in zip(rule, looks, strict=True)]
        total = sum(w * points[i].slope for (_, w), points in zip(nodes, looks, strict=True))
        made.append(_Piece(a, b, nodes, abs(b.value - a.value - total)))
    return made


def _rounds(nodes: list[list[tuple[float, float]]], like: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Put the first nodes of all examples into one round, then the second ones; those without one have weight 0."""
    rounds = torch.tensor([*zip_longest(*nodes, fillvalue=(0.5, 0.0))], device=like.device, dtype=like.dtype)
    return [(each[:, 0], each[:, 1]) for each in rounds]
