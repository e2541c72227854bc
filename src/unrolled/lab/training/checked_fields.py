"""Reading a task's fields back: they come from a file that may have been touched since."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from unrolled.errors import DataError

__all__ = ["count", "names", "number", "truth"]


def names(fields: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Read a list of names."""
    found = fields.get(key)
    if not isinstance(found, list) or not found or not all(isinstance(each, str) for each in found):
        raise DataError(f"{key} is {str(found)[:40]}; expected a list of names")
    if len(set(found)) < len(found):
        raise DataError(f"{key} names something twice; expected different names")
    return tuple(found)


def number(fields: Mapping[str, Any], key: str) -> float:
    """Read a number."""
    found = fields.get(key)
    if not isinstance(found, int | float) or isinstance(found, bool) or not math.isfinite(found):
        raise DataError(f"{key} is {str(found)[:40]}; expected a finite number")
    return float(found)


def count(fields: Mapping[str, Any], key: str) -> int:
    """Read a number of things."""
    found = fields.get(key)
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise DataError(f"{key} is {str(found)[:40]}; expected a positive whole number")
    return found


def truth(fields: Mapping[str, Any], key: str) -> bool:
    """Read whether something is so."""
    found = fields.get(key)
    if not isinstance(found, bool):
        raise DataError(f"{key} is {str(found)[:40]}; expected true or false")
    return found
