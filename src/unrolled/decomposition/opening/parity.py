"""How closely what is computed again must agree with what the model gave.

One rule for recomputed states, for the output of a held run and for a twin's: the largest difference is at most
:data:`PARITY` of the largest number, and of 1 where all are smaller. Small states are measured by the size of what they
are sums of instead, where that is known. Comparisons that are closer say why beside their bounds: a computation that is
repeated (``determinism.py``), one step that is run again (``own_step_rule.py``), a twin that is recognised by its
results (``written_networks.py``), a scripted function (``scripted.py``), and sums whose parts are known
(``held_sum.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["FINER", "PARITY", "Parity"]

PARITY = {torch.float64: 1e-9, torch.float32: 1e-3}
"""By type: the rounding of a few hundred steps, whose sums are taken in another order."""


FINER = "convert the model: model.float(), and leave out .half() and .bfloat16() in its forward"
"""What to do about a type that is too coarse."""


@dataclass(frozen=True)
class Parity:
    """How far recomputed numbers are from the model's own."""

    gap: float
    """The largest difference; NaN where one of them is NaN and the other is not."""
    size: float
    """The largest of the model's own numbers that are finite."""
    precision: float
    """The largest difference of numbers of size 1; an entry of :data:`PARITY`, or that of a coarser type."""
    floor: float = 1.0
    """What smaller numbers are measured by: the size of what they are sums of, 1 where that is not known."""

    @classmethod
    def of(cls, found: Tensor, own: Tensor, precision: float, floor: float = 1.0) -> Parity:
        """Compare recomputed numbers with the model's own, in one shape; NaN and infinity agree with themselves."""
        equal = (found == own) | (found.isnan() & own.isnan())
        gap = (found - own).abs().masked_fill(equal, 0.0)
        size = own.abs().masked_fill(~own.isfinite(), 0.0)
        largest, of_own = (float(each.max()) if each.numel() else 0.0 for each in (gap, size))
        return cls(largest, of_own, precision, floor)

    @property
    def allowed(self) -> float:
        """The largest difference that is rounding."""
        # states of relu and affine cells may grow beyond 1, and their rounding with them
        return self.precision * max(self.floor, self.size)

    @property
    def holds(self) -> bool:
        """Whether the difference is rounding; NaN is not."""
        return self.gap <= self.allowed
