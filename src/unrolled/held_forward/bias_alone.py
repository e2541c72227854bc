"""Results that are the bias of a layer alone, as where a loop begins with a state of zero.

Such a bias is a row, as in every later step: what multiplies it shares the product with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from unrolled.held_forward.operation_names import Operation

__all__ = ["bias_alone"]

AFFINE = frozenset({"linear", "conv1d", "conv2d", "conv3d"})
"""Operations that add a bias to a product with a weight."""


def bias_alone(
    operation: Operation, args: tuple[Any, ...], options: Mapping[str, Any], given: Sequence[Tensor]
) -> Tensor | None:
    """Return the bias that a result consists of, that of an affine function of zero; None for any other result."""
    bias = args[2] if len(args) > 2 else options.get("bias")
    alone = operation.name in AFFINE and isinstance(bias, Tensor) and not bool(given[0].count_nonzero())
    return bias if alone else None
