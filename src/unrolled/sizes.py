"""A size that a user gives: any whole number, numpy's among them, but not True."""

from __future__ import annotations

import operator
from typing import SupportsIndex, cast

from unrolled.errors import UsageError

__all__ = ["checked_size"]


def checked_size(label: str, value: object, least: int = 1) -> int:
    """Read a size as an int.

    True is an index in Python, but nobody means a layer of True units: it is a flag in the wrong place.

    Args:
        label: what the size is called.
        value: what was given.
        least: the smallest that will do, 1 or 0.

    Returns:
        The size.

    Raises:
        UsageError: when it is no whole number, or too small.
    """
    try:
        size = -1 if isinstance(value, bool) else operator.index(cast("SupportsIndex", value))
    except TypeError:
        size = -1
    if size < least:
        raise UsageError(f"{label} is {value!r}; expected {'0 or ' if least == 0 else ''}a positive integer")
    return size
