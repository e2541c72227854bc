"""Random networks: an explanation and an account sum to the model's own output, or are refused in one line."""

from __future__ import annotations

import random
from pathlib import Path

from cases import Part
from test_random_models import check

_AT_ONCE = 30
"""Networks of one case."""


def run(_: int, draw: random.Random, _place: Path, _shared) -> list[str]:
    """Explain and account for some networks, each made from a seed as in the tests."""
    found = []
    for _ in range(_AT_ONCE):
        seed = draw.randrange(2**31)
        try:
            check(seed)
        except AssertionError as error:
            found.append(f"seed {seed}: {str(error)[:300]}")
    return found


PARTS = (Part(f"random networks, {_AT_ONCE} a case", "explain and account sum to the output, or one line", 100, run),)
