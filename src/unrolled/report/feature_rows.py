"""The rows of a numeric view: features by name, those that are too many to draw, and the rest of each step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.decomposition.attribution.outputs import Features
from unrolled.errors import NonFiniteError
from unrolled.report.colour import limit_of

__all__ = ["FeatureRow", "feature_rows", "rows_limit", "steps_are_named"]

DRAWN = 24
"""Features that are drawn by themselves; what the others contribute is one row."""


@dataclass(frozen=True)
class FeatureRow:
    """One row of a numeric view."""

    name: str
    scores: Tensor
    """Contribution at each step, shape (time,)."""
    values: Tensor | None = None
    """The numbers that were read, NaN where one is no number; None for a row that is no single feature."""

    @property
    def ends(self) -> tuple[float, float] | None:
        """The lowest and the highest number that was read; None if there is none."""
        if self.values is None:
            return None
        read = self.values[self.values.isfinite()].double()
        return (float(read.min()), float(read.max())) if read.numel() else None


def feature_rows(features: Features, by: Features | None = None) -> list[FeatureRow]:
    """Return the rows of features, in their own order; the last is the rest of each step.

    Args:
        features: Of one output.
        by: Those whose sizes decide which are drawn by themselves; None for the same.

    The numbers that were read may be NaN: a model that fills in missing values, or masks them, reads such.

    Raises:
        NonFiniteError: If a contribution is NaN or infinite.
    """
    if not all(bool(torch.isfinite(each).all()) for each in (features.scores, features.rest)):
        raise NonFiniteError("the contributions of the features hold NaN or infinity; expected numbers")
    read = features.values.where(features.values.isfinite(), math.nan)
    sizes = (features if by is None else by).scores.abs().sum(dim=0)
    drawn = sorted(sizes.argsort(descending=True)[:DRAWN].tolist())
    rows = [FeatureRow(features.names[k], features.scores[:, k], read[:, k]) for k in drawn]
    others = len(features.names) - len(drawn)
    if others:
        kept = torch.zeros(len(features.names), dtype=torch.bool, device="cpu")
        kept[drawn] = True
        rows.append(FeatureRow(f"{others} other features", features.scores[:, ~kept].sum(dim=1)))
    return [*rows, FeatureRow(f"rest ({features.rest_of})", features.rest)]


def rows_limit(rows: list[FeatureRow]) -> float:
    """Return the end of the colour scale of the rows and of their sum."""
    scores = torch.stack([row.scores for row in rows])
    return max(limit_of(scores), limit_of(scores.sum(dim=0)))


def steps_are_named(attribution: Attribution) -> bool:
    """Tell whether the steps have names of their own, as dates or words, rather than numbers."""
    return any(token != f"x{k}" for k, token in enumerate(attribution.tokens))
