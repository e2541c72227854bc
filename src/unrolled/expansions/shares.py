r"""Shares: every non-linearity's line begins at zero.

.. math:: φ(z) = φ(0) + z \, \frac{φ(z) - φ(0)}{z}, \qquad γ ⊙ c = γ_0 c + (γ - γ_0) ⊙ c

The quotients are held. Of a gate γ times a content c, with γ₀ the gate's value at zero, the content is credited with
γ₀ c and with the share p of the rest, the gate with 1 - p. Exact, and it needs no notion of "the input alone", so the
same rule goes through any architecture (:mod:`unrolled.held_forward`). In a classical cell its terms can grow with the
length of the text: look at the cancellation.

Source:
    Ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, SupportsFloat

from torch import Tensor

from unrolled.cells.ray import Ray
from unrolled.errors import UnsupportedOperationError, UsageError
from unrolled.expansions.base import Linearisation
from unrolled.held_forward.tensor_facts.gates import CONTENT_SHARE
from unrolled.linalg.operators import Operator

__all__ = ["Shares"]


class Shares(Linearisation):
    """Split every step by lines from zero.

    Args:
        share: p, from 0 to 1; ¾ unless given.

    Raises:
        UsageError: If p is no number, or outside that range.
    """

    name = "shares"
    exact = True
    local = False

    def __init__(self, share: float = CONTENT_SHARE) -> None:
        if not isinstance(share, SupportsFloat) or not 0 <= float(share) <= 1:
            raise UsageError(f"shares({share}): expected a number from 0 to 1, the share of the content")
        self.share = float(share)

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self:
        """Build the expansion from ``shares`` or ``shares(p)``.

        Raises:
            UsageError: If the argument is not one number.
        """
        if not words:
            return cls()
        try:
            (share,) = map(float, words)
        except ValueError:
            raise UsageError(f"shares({', '.join(words)}): write one number between 0 and 1") from None
        return cls(share)

    def expand(self, ray: Ray[Any], tolerance: float) -> tuple[Tensor, Operator]:
        """Take the operator of lines from zero, and what it leaves of the state."""
        try:
            operator = ray.shares(self.share)
        except UnsupportedOperationError as error:
            raise UnsupportedOperationError(f"{error}; choose the expansion path, or unrolled.account") from error
        return ray.end - ray.increment(operator), operator

    def __str__(self) -> str:
        return self.name if self.share == CONTENT_SHARE else f"{self.name}({self.share:g})"
