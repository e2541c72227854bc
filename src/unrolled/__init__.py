"""Open any recurrent network, exactly.

Each hidden state is rewritten as a sum of n-gram terms, and every logit is accounted for:
n-grams + initial state + bias + remainder.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unrolled.decomposition.decomposition import decompose
    from unrolled.explanation.api import explain

__all__ = ["__version__", "decompose", "explain"]

__version__ = "0.1.0"

_HOMES = {"decompose": "unrolled.decomposition.decomposition", "explain": "unrolled.explanation.api"}


def __getattr__(name: str) -> object:
    """Load the two functions on first use: ``unrolled --help`` need not wait for torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'unrolled' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
