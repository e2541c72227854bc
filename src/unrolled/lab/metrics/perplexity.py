"""Perplexity."""

from __future__ import annotations

import math

__all__ = ["perplexity"]


def perplexity(nats: float) -> float:
    """Compute exp of a mean cross-entropy in nats; infinity where that is no float.

    Example:
        >>> round(perplexity(2.302585), 3), perplexity(1000.0)
        (10.0, inf)
    """
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf
