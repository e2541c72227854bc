"""Held forward: a run of any PyTorch computation that is linear in what carries value.

Every operation keeps the factors that it took (they are *held*). One backward pass through such a run gives what
each source contributed to an output, and the contributions sum to the output.
"""

from unrolled.held_forward import (
    activation_rules,
    additive_rules,
    followed_rules,
    held_rules,
    increment_layers,
    increment_rules,
    linear_rules,
    logarithm_moves,
    logarithm_rules,
    normalisation_rules,
    product_rules,
    scripted_rules,
    source_rules,
)
from unrolled.held_forward.mode import HeldForward, rule
from unrolled.held_forward.rows import Row, Rows

__all__ = ["HeldForward", "Row", "Rows", "rule"]

RULE_FILES = (
    activation_rules,
    additive_rules,
    followed_rules,
    held_rules,
    increment_layers,
    increment_rules,
    linear_rules,
    logarithm_moves,
    logarithm_rules,
    normalisation_rules,
    product_rules,
    scripted_rules,
    source_rules,
)
"""The files whose rules register themselves when they are loaded."""
