"""Held forward: a run of any PyTorch computation that is linear in what carries value.

Every operation keeps the factors that it took (they are *held*). One backward pass through such a run gives what
each source contributed to an output, and the contributions sum to the output.
"""

import unrolled.held_forward.rules  # noqa: F401  # the rules register themselves
from unrolled.held_forward.mode import HeldForward, rule
from unrolled.held_forward.tensor_facts.rows import Row, Rows

__all__ = ["HeldForward", "Row", "Rows", "rule"]
