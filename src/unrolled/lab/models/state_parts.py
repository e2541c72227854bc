"""The state of a recurrent network in parts: torch's networks take and return h_n alone, or (h_n, c_n)."""

from __future__ import annotations

from typing import Any

from torch import Tensor

__all__ = ["StateParts", "from_parts", "to_parts"]

StateParts = tuple[Tensor, ...]
"""(h_n,) or (h_n, c_n)."""


def to_parts(state: Any) -> StateParts:
    """Return the parts of a state that a network has returned."""
    return state if isinstance(state, tuple) else (state,)


def from_parts(parts: StateParts) -> Any:
    """Return a state of these parts as a network takes it; None, an empty state, for none."""
    return parts[0] if len(parts) == 1 else parts or None
