"""The operands that a result without value is made of: it has the name of the first that has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from unrolled.held_forward.computed_ids import operands_read
from unrolled.held_forward.operation_names import Operation

__all__ = ["summands"]

AFFINE = frozenset({"linear", "conv1d", "conv2d", "conv3d"})
"""Operations that add a bias to a product with a weight."""


def summands(
    operation: Operation, args: tuple[Any, ...], options: Mapping[str, Any], given: Sequence[Tensor]
) -> Sequence[Tensor]:
    """Return the operands that a result is made of.

    An affine function of zero is made of its bias.
    """
    bias = args[2] if len(args) > 2 else options.get("bias")
    if operation.name in AFFINE and isinstance(bias, Tensor) and not bool(given[0].count_nonzero()):
        return [bias]
    return operands_read(operation, given)
