"""Read the fields of a JSON object, and check them: somebody may have edited the file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from unrolled.errors import DataError

__all__ = ["read_boolean", "read_count", "read_names", "read_number"]


def read_names(record: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Read a list of at least one name, all different."""
    found = record.get(key)
    if not isinstance(found, list) or not found or not all(isinstance(each, str) for each in found):
        raise DataError(f"{key} is {str(found)[:40]}; expected a list of names")
    if len(set(found)) < len(found):
        raise DataError(f"{key} contains a name twice; expected different names")
    return tuple(found)


def read_number(record: Mapping[str, Any], key: str) -> float:
    """Read a finite number."""
    found = record.get(key)
    if not isinstance(found, int | float) or isinstance(found, bool) or not math.isfinite(found):
        raise DataError(f"{key} is {str(found)[:40]}; expected a finite number")
    return float(found)


def read_count(record: Mapping[str, Any], key: str) -> int:
    """Read a positive whole number."""
    found = record.get(key)
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise DataError(f"{key} is {str(found)[:40]}; expected a positive whole number")
    return found


def read_boolean(record: Mapping[str, Any], key: str) -> bool:
    """Read true or false."""
    found = record.get(key)
    if not isinstance(found, bool):
        raise DataError(f"{key} is {str(found)[:40]}; expected true or false")
    return found
