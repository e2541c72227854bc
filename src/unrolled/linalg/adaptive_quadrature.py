r"""Adaptive quadrature of a slope G' on [0, 1] whose integral G(1) - G(0) is known.

The integral G(b) - G(a) of any piece is known, so the error of a quadrature is known and not estimated. Pieces with a
large error are cut, each example in its own places: where the tangents at its ends cross, if they cross inside (this
hits a kink of a piecewise linear function exactly), else in the middle. Cutting does not reduce the rounding of G: an
example is done when its error is near the bound and several cuts have not reduced it. Nor does it help where G' is the
slope of another function than G, as the gradient of a model is that makes a constant of a part of G: the error of a
piece is then what a cut changes, as if the integral were not known. G still tells of a jump, or of a rise between two
nodes: there one half of a piece lacks much more of the rise of G than the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest

import torch
from torch import Tensor

from unrolled.linalg.quadrature import legendre_nodes

__all__ = ["Jump", "partition"]

_NODES_OF_A_PIECE = 5
"""Nodes of a piece."""
_NARROW, _LARGE = 1e-9, 1e-3
"""A piece this narrow, whose error is this large relative to the whole rise, holds a jump."""
_MARGIN = 1e-9
"""A piece is cut no nearer to its ends than this share of it."""
_NEAR, _PATIENCE = 256, 8
"""An example whose error is at most _NEAR times the bound is done after _PATIENCE cuts that have not reduced it."""
_ALIKE, _PROBED, _PROBE, _PROBE_AT = 4.0, 3, 1 / 32, 0.382
"""G' is that of another function if each of _PROBED pieces, and a _PROBE of each, misses alike for its width.

A probe begins at _PROBE_AT of its piece, off its middle.
"""
_TRUSTED = 0.25
"""What a cut changes says nothing of a wider piece: a kink may stand between two nodes of it and of its half."""
_UNEVEN = 1e-2
"""Halves lack different rises if they differ by this share of all that is lacking: smooth ones do not, once narrow."""

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
    total: float
    """The integral of the slope."""
    change: float = math.inf
    """By how much the cut that made this piece changed the integral, or the halves lack different rises; half of it."""
    lacking: float = 0.0
    """What the slope lacks of the rise of G from 0 to 1 if it is that of another function; else zero."""

    @property
    def width(self) -> float:
        return self.stop.place - self.start.place

    @property
    def missed(self) -> float:
        """What the integral lacks of the rise of G."""
        return self.stop.value - self.start.value - self.total

    @property
    def error(self) -> float:
        return self.change if self.of_another else abs(self.missed)

    @property
    def of_another(self) -> bool:
        """Whether the slope is that of another function, so that what is missed is no error."""
        return self.lacking > 0

    def misses_as(self, other: _Piece) -> bool:
        """Tell whether it lacks about as much for its width as another piece does."""
        here, there = self.missed * other.width, other.missed * self.width
        return here * there > 0 and abs(there) / _ALIKE <= abs(here) <= _ALIKE * abs(there)

    def halved(self, left: _Piece, right: _Piece) -> tuple[_Piece, _Piece]:
        """Return the halves with what the cut changed, and with how unevenly they miss."""
        change = 0.5 * abs(left.total + right.total - self.total) if self.width <= _TRUSTED else math.inf
        uneven = 0.5 * abs(left.missed - right.missed)
        if self.of_another and uneven > _UNEVEN * self.lacking:
            change = max(change, uneven)
        known = partial(replace, change=change, lacking=self.lacking)
        return known(left), known(right)

    def cut(self) -> float:
        """Return the place where the tangents at the two ends cross, if it is inside; else the middle."""
        a, b = self.start, self.stop
        width, bend = self.width, a.slope - b.slope
        if self.of_another:
            return a.place + 0.5 * width
        if bend * width != 0:  # a narrow piece of small slopes may underflow
            share = (b.value - a.value - b.slope * width) / (bend * width)
            if _MARGIN < share < 1 - _MARGIN:
                return a.place + share * width
        return a.place + 0.5 * width


@dataclass
class _Example:
    """The quadrature of one example so far."""

    ends: tuple[_Point, _Point]
    allowed: float
    """The error that is accepted."""
    pieces: list[_Piece]
    least: float = math.inf
    """The smallest error of any round."""
    idle: int = 0
    """Number of cuts since the error was reduced, while it is near the bound."""
    even: int = 0
    """Number of cuts in a row whose halves miss as much for their width as the piece did."""

    def is_done(self) -> bool:
        """Look at the error of this round, and tell whether cutting is of no more use."""
        error = sum(piece.error for piece in self.pieces)
        self.idle = 0 if error < self.least or error > _NEAR * self.allowed else self.idle + 1
        self.least = min(self.least, error)
        return self.least <= self.allowed or self.idle >= _PATIENCE

    def worst(self) -> _Piece:
        """Return the piece of the largest error, which is the one to cut.

        Raises:
            Jump: If it is too narrow for such an error.
        """
        piece = max(self.pieces, key=lambda piece: piece.error)
        rise = abs(self.ends[1].value - self.ends[0].value)
        if piece.width < _NARROW and piece.error > _LARGE * rise + 1e3 * self.allowed:
            raise Jump(piece.start.place)
        return piece

    def cut(self, piece: _Piece, left: _Piece, right: _Piece) -> bool:
        """Put halves in the place of a piece; tell whether so many cuts have missed evenly that G' may be another's."""
        halves = piece.halved(left, right)
        self.pieces = [each for each in self.pieces if each is not piece] + [*halves]
        missed_evenly = all(half.misses_as(piece) for half in halves)
        self.even = self.even + 1 if missed_evenly and not piece.of_another else 0
        suspected = self.even == _PATIENCE
        self.even = 0 if suspected else self.even
        return suspected

    def begin_again(self, whole: _Piece) -> None:
        """Begin again with one piece whose slope is that of another function: tangents of two crossed at the cuts."""
        lacking = sum(abs(each.missed) for each in self.pieces)
        self.pieces, self.least = [replace(whole, lacking=lacking)], math.inf


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

    def slope_of_another(b: int) -> bool:
        """Tell whether narrow pieces within the worst ones miss as much for their width: no jump or kink does."""
        for piece in sorted(examples[b].pieces, key=lambda piece: piece.error)[-_PROBED:]:
            start = piece.start.place + _PROBE_AT * piece.width
            ends = at([start] * batch), at([start + _PROBE * piece.width] * batch)
            if not integrate(list(zip(*ends, strict=True)), _NODES_OF_A_PIECE)[b].misses_as(piece):
                return False
        return True

    whole = list(zip(at([0.0] * batch), at([1.0] * batch), strict=True))
    # A linear readout needs a single node, and most readouts are linear.
    by_one_node = zip(whole, (rounding * scale).tolist(), integrate(whole, 1), strict=True)
    examples = [_Example(ends, allowed, [piece]) for ends, allowed, piece in by_one_node]
    wrong = [b for b, each in enumerate(examples) if each.pieces[0].error > each.allowed]
    finer = integrate(whole, _NODES_OF_A_PIECE) if wrong else []
    for b in wrong:
        examples[b].pieces = [finer[b]]
    for _ in range(pieces - 1):
        wrong = [b for b in wrong if not examples[b].is_done()]
        if not wrong:
            break
        worst = {b: examples[b].worst() for b in wrong}
        middles = at([worst[b].cut() if b in worst else 0.5 for b in range(batch)])
        # examples that are done are evaluated as well; their result is not used
        left = integrate(
            [(worst[b].start if b in worst else whole[b][0], middles[b]) for b in range(batch)], _NODES_OF_A_PIECE
        )
        right = integrate(
            [(middles[b], worst[b].stop if b in worst else whole[b][1]) for b in range(batch)], _NODES_OF_A_PIECE
        )
        for b, piece in worst.items():
            if examples[b].cut(piece, left[b], right[b]) and slope_of_another(b):
                examples[b].begin_again(finer[b])
    return _rounds([[node for piece in each.pieces for node in piece.nodes] for each in examples], scale)


def _integrate(
    at: Callable[[list[float]], list[_Point]], ends: list[tuple[_Point, _Point]], count: int
) -> list[_Piece]:
    """Integrate one piece of every example by ``count`` nodes of Gauss-Legendre."""
    rule = legendre_nodes(count)
    looks = [at([a.place + node * (b.place - a.place) for a, b in ends]) for node, _ in rule]
    made = []
    for i, (a, b) in enumerate(ends):
        nodes = [(points[i].place, w * (b.place - a.place)) for (_, w), points in zip(rule, looks, strict=True)]
        total = sum(w * points[i].slope for (_, w), points in zip(nodes, looks, strict=True))
        made.append(_Piece(a, b, nodes, total))
    return made


def _rounds(nodes: list[list[tuple[float, float]]], like: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Put the first nodes of all examples into one round, then the second ones; those without one have weight 0."""
    rounds = torch.tensor([*zip_longest(*nodes, fillvalue=(0.5, 0.0))], device=like.device, dtype=like.dtype)
    return [(each[:, 0], each[:, 1]) for each in rounds]
