"""The head of a model of ratings: a linear layer whose weights are as large for prices as for stars."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["RatingHead"]


class RatingHead(nn.Linear):
    r"""Compute numbers in the unit of the ratings.

    .. math:: y = u \, (W p + b)

    Weights of the usual size give numbers of about 1, so u is chosen near the spread of the ratings.

    Args:
        features: Size of p.
        outputs: Size of y.
        unit: u.
    """

    def __init__(self, features: int, outputs: int, unit: float) -> None:
        super().__init__(features, outputs)
        self.unit = unit

    def forward(self, pooled: Tensor) -> Tensor:
        """Compute y, shape (batch, outputs), from p, shape (batch, features)."""
        if torch.is_autocast_enabled(pooled.device.type):  # the bias is near the mean: bfloat16 rounds 2000 to tens
            return (functional.linear(pooled, self.weight) + self.bias) * self.unit
        return super().forward(pooled) * self.unit

    def extra_repr(self) -> str:
        """Show the unit as well."""
        return f"{super().extra_repr()}, unit={self.unit:g}"
