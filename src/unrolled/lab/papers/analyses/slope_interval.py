r"""The slope of a line through points, with an interval that does not assume that all points scatter alike.

.. math::
    b = \frac{\sum_i (x_i - \bar x)(y_i - \bar y)}{\sum_i (x_i - \bar x)^2}, \qquad
    \mathrm{se}(b)^2 = \frac{\sum_i (x_i - \bar x)^2\, e_i^2 / (1 - l_i)^2}{\left(\sum_i (x_i - \bar x)^2\right)^2}

with e the residuals and l_i the leverage of a point.

Source:
    MacKinnon and White (1985), Some heteroskedasticity-consistent covariance matrix estimators with improved finite
    sample properties: the estimator called HC3.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

__all__ = ["Slope", "fit_slope"]

_NORMAL = 1.96


class Slope(NamedTuple):
    """A slope and how sure it is."""

    value: float
    half: float
    """Half the width of its 95% interval."""


def fit_slope(x: Tensor, y: Tensor) -> Slope | None:
    """Fit y = a + b x by least squares.

    Args:
        x: shape (points,).
        y: shape (points,).

    Returns:
        b with its interval; None where there are fewer than three points, or x does not vary.

    Example:
        >>> import torch
        >>> fit_slope(torch.tensor([0.0, 1.0, 2.0, 3.0]), torch.tensor([1.0, -1.0, -3.0, -5.0]))
        Slope(value=-2.0, half=0.0)
    """
    x, y = x.double() - x.double().mean(), y.double() - y.double().mean()
    spread = x.square().sum()
    if len(x) < 3 or not spread:
        return None
    value = (x * y).sum() / spread
    # A point that alone decides the slope has leverage 1: of its residual, which is then 0, nothing is known.
    left = (1 - 1 / len(x) - x.square() / spread).clamp(min=1e-6)
    variance = (x * (y - value * x) / left).square().sum() / spread.square()
    return Slope(float(value), _NORMAL * float(variance.sqrt()))
