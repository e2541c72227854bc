"""The area under the receiver operating characteristic: how well a score tells positive examples from negative ones."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["area_under_curve"]


def area_under_curve(scores: Sequence[float], is_positive: Sequence[bool]) -> float | None:
    r"""Compute how often a positive example scores higher than a negative one; None without examples of both.

    .. math:: \mathrm{AUC} = P(s^+ > s^-) + \tfrac12 P(s^+ = s^-)

    Example:
        >>> area_under_curve([0.1, 0.7, 0.7], [False, True, False])
        0.75
    """
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(is_positive, scores)) if len(set(is_positive)) == 2 else None
