"""What a user gives by hand, held against what it can be: an order, a tolerance, a direction, a readout's weight."""

from __future__ import annotations

import operator
from numbers import Real

import torch
from torch import Tensor

from unrolled.errors import NonFiniteError, ShapeError, UsageError

__all__ = ["checked_direction", "checked_order", "checked_tolerance", "readout_rows"]


def checked_order(order: object) -> int | None:
    """Hold the order of the longest n-gram against what it can be.

    Args:
        order: what came.

    Returns:
        It, or None for all n-grams.

    Raises:
        UsageError: when it is no whole number of 1 or more.
    """
    if order is None:
        return None
    try:
        whole = operator.index(order)  # type: ignore[arg-type]  # it says of anything whether it is one
    except (TypeError, ValueError):
        whole = 0
    if whole < 1:
        raise UsageError(f"max_order is {order!r}; expected a whole number, 1 or more, or None for all")
    return whole


def checked_tolerance(tolerance: object) -> float:
    """Hold a relative error against what it can be.

    Args:
        tolerance: what came.

    Returns:
        It.

    Raises:
        UsageError: when it is no positive number.
    """
    if not isinstance(tolerance, Real) or not float(tolerance) > 0:
        raise UsageError(f"tolerance is {tolerance!r}; expected a positive number")
    return float(tolerance)


def checked_direction(direction: object, count: int) -> int:
    """Hold a direction against those that a network reads in.

    Args:
        direction: what came.
        count: how many there are.

    Returns:
        It.

    Raises:
        UsageError: when there is none of that number.
    """
    if not isinstance(direction, int) or not 0 <= direction < count:
        raise UsageError(f"direction is {direction!r}; expected 0 to {count - 1}: 0 is forward, 1 backward")
    return direction


def readout_rows(weight: object, hidden: int, like: Tensor) -> Tensor:
    """Bring the weight of a linear readout to one row a class.

    Args:
        weight: w of each class, shape (classes, hidden) or (hidden,) for one: a tensor, an array or a list.
        hidden: the length of the hidden output.
        like: a tensor of the type and on the device that are wanted.

    Returns:
        Shape (classes, hidden), without a gradient.

    Raises:
        ShapeError: when it does not fit the hidden output.
        UsageError: when it does not consist of real numbers.
        NonFiniteError: when it is NaN or infinite.
    """
    try:
        given = torch.as_tensor(weight).detach()
    except (TypeError, ValueError, RuntimeError):
        kind = type(weight).__name__
        raise UsageError(f"weight is a {kind}; expected numbers of shape (classes, {hidden}) or ({hidden},)") from None
    if given.is_complex() or given.dtype == torch.bool:
        raise UsageError(f"weight is {given.dtype}; expected real numbers")
    rows = given[None] if given.dim() == 1 else given
    if rows.dim() != 2 or rows.shape[1] != hidden:
        raise ShapeError(f"weight has shape {tuple(given.shape)}; expected (classes, {hidden}) or ({hidden},)")
    if not torch.isfinite(rows).all():
        raise NonFiniteError("weight holds NaN or infinity; expected finite numbers")
    return rows.to(like)
