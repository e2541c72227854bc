"""How closely what is computed again must agree with what the model gave.

One rule for recomputed states, for the output of a held run and for a twin's: the largest difference is at most
:data:`PARITY` of the largest number, and of 1 where all are smaller. Comparisons that are closer say why beside their
bounds: a computation that is repeated (``determinism.py``), one step that is run again (``own_step_rule.py``), a twin
that is recognised by its results (``written_networks.py``), and sums whose parts are known (``held_sum.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.cells.batch_layout import Layout

__all__ = ["PARITY", "Parity", "states_parity"]

PARITY = {torch.float64: 1e-9, torch.float32: 1e-3}
"""By type: the rounding of a few hundred steps, whose sums are taken in another order."""


@dataclass(frozen=True)
class Parity:
    """How far recomputed numbers are from the model's own."""

    gap: float
    """The largest difference."""
    size: float
    """The largest of the numbers."""
    precision: float
    """The largest difference of numbers of size 1; an entry of :data:`PARITY`, or that of a coarser type."""

    @property
    def allowed(self) -> float:
        """The largest difference that is rounding."""
        # states of relu and affine cells may grow beyond 1, and their rounding with them
        return self.precision * max(1.0, self.size)

    @property
    def holds(self) -> bool:
        """Whether the difference is rounding; NaN is not."""
        return self.gap <= self.allowed


def states_parity(
    found: Tensor, own: Tensor, layout: Layout, precision: float, states: Iterable[Tensor] | None = None
) -> Parity:
    """Compare recomputed outputs of a network, shape (time, batch, features), with its own; padding does not count.

    Args:
        found: The recomputed outputs.
        own: What the network gave.
        layout: Which positions are padding.
        precision: See :class:`Parity`.
        states: What their size is measured by; None for the outputs.
    """
    gap = float(layout.blank((found - own).abs()).max())
    largest = [float(layout.blank(each).abs().max()) for each in ((own,) if states is None else states)]
    return Parity(gap, max(largest), precision)
