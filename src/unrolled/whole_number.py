"""Whole numbers that users pass: of Python, numpy or torch."""

from __future__ import annotations

import operator
from typing import SupportsIndex, cast

__all__ = ["whole_number"]


def whole_number(value: object) -> int | None:
    """Return a whole number as an int; None for anything else.

    Example:
        >>> import torch
        >>> from unrolled.whole_number import whole_number
        >>> whole_number(torch.tensor(3)), whole_number(3.0), whole_number("3")
        (3, None, None)
    """
    try:
        return operator.index(cast("SupportsIndex", value))
    except (TypeError, ValueError):
        return None
