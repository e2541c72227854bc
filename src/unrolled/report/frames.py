"""Records as a data frame of whichever library is installed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from unrolled.errors import UsageError

__all__ = ["to_frame"]


def to_frame(records: Sequence[dict[str, object]]) -> Any:
    """Return records as a data frame: of pandas, or of polars where pandas is not installed."""
    for name in ("pandas", "polars"):
        if find_spec(name) is not None:
            return import_module(name).DataFrame(records)
    raise UsageError("a data frame needs pandas or polars: pip install 'unrolled[tables]'")
