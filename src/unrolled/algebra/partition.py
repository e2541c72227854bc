r"""Where to look at a function along a line so that its slope integrates to its rise.

For G on [0, 1] the rise G(b) - G(a) of any piece is known exactly, so the error of a quadrature of G' is known, not
estimated. Pieces that are off are cut, and each example is cut in its own places: at the crossing of the tangents
at its ends if they cross inside (a kink of a piecewise linear head is then hit exactly), else in the middle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.algebra.average import legendre_nodes

__all__ = ["partition"]

NODES = 5

Look = Callable[[Tensor], tuple[Tensor, Tensor]]
"""α of each example, shape (batch,) -> G(α) and G'(α), shape (batch,)."""


@dataclass
class _Piece:
    start: float
    stop: float
    low: float
    high: float
    nodes: list[tuple[float, float]]
    error: float
    first: float
    last: float

    def cut(self) -> float:
        """Where the tangents at the two ends cross, if well inside; else the middle."""
        width = self.stop - self.start
        bend = self.first - self.last
        if bend != 0:
            crossing = self.start + (self.high - self.low - self.last * width) / bend
            if self.start + 0.01 * width < crossing < self.stop - 0.01 * width:
                return crossing
        return self.start + 0.5 * width


def partition(look: Look, batch: int, scale: Tensor, rounding: float, pieces: int) -> list[tuple[Tensor, Tensor]]:
    """Choose nodes and weights for each example so that Σ w G'(α) = G(1) - G(0).

    Args:
        look: evaluates G and G' at one α an example.
        batch: how many examples.
        scale: the size of G of each example, shape (batch,): errors are judged relative to it.
        rounding: relative error that counts as none.
        pieces: how many pieces an example is cut into at the most.

    Returns:
        Rounds of (α, weight), each shape (batch,); examples that are done early have weight 0 in later rounds.
    """
    device, dtype = scale.device, scale.dtype

    def at(alphas: list[float]) -> tuple[list[float], list[float]]:
        value, slope = look(torch.tensor(alphas, device=device, dtype=dtype))
        return value.tolist(), slope.tolist()

    allowed = (rounding * scale).tolist()
    low, _ = at([0.0] * batch)
    high, _ = at([1.0] * batch)
    _, middle = at([0.5] * batch)
    # A linear read-out needs one look; that is most of them.
    done: list[list[_Piece]] = [[] for _ in range(batch)]
    wrong = []
    for b in range(batch):
        error = abs(high[b] - low[b] - middle[b])
        done[b] = [_Piece(0.0, 1.0, low[b], high[b], [(0.5, 1.0)], error, middle[b], middle[b])]
        if error > allowed[b]:
            wrong.append(b)

    def measure(bounds: list[tuple[float, float, float, float]]) -> list[_Piece]:
        """Integrate one piece of every example by Gauss-Legendre."""
        slopes: list[list[float]] = []
        for node, _ in legendre_nodes(NODES):
            slopes.append(at([a + node * (b - a) for a, b, _, _ in bounds])[1])
        made = []
        for i, (a, b, ga, gb) in enumerate(bounds):
            nodes = [(a + node * (b - a), weight * (b - a)) for node, weight in legendre_nodes(NODES)]
            total = sum(w * s[i] for (_, w), s in zip(nodes, slopes, strict=True))
            made.append(_Piece(a, b, ga, gb, nodes, abs(gb - ga - total), slopes[0][i], slopes[-1][i]))
        return made

    if wrong:
        fresh = measure([(0.0, 1.0, low[b], high[b]) for b in range(batch)])
        for b in wrong:
            done[b] = [fresh[b]]
    for _ in range(pieces - 1):
        wrong = [b for b in wrong if sum(p.error for p in done[b]) > allowed[b]]
        if not wrong:
            break
        worst = {b: max(done[b], key=lambda p: p.error) for b in wrong}
        cuts = {b: worst[b].cut() for b in wrong}
        values, _ = at([cuts.get(b, 0.5) for b in range(batch)])
        idle = (0.0, 1.0, 0.0, 0.0)
        left = measure([(worst[b].start, cuts[b], worst[b].low, values[b]) if b in worst else idle for b in range(batch)])
        right = measure([(cuts[b], worst[b].stop, values[b], worst[b].high) if b in worst else idle for b in range(batch)])
        for b in wrong:
            done[b] = [p for p in done[b] if p is not worst[b]] + [left[b], right[b]]
    nodes = [[node for piece in done[b] for node in piece.nodes] for b in range(batch)]
    rounds = max(len(n) for n in nodes)
    padded = [n + [(0.5, 0.0)] * (rounds - len(n)) for n in nodes]
    return [
        (
            torch.tensor([n[k][0] for n in padded], device=device, dtype=dtype),
            torch.tensor([n[k][1] for n in padded], device=device, dtype=dtype),
        )
        for k in range(rounds)
    ]
