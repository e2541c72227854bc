"""Which operands of an operation its result is made of: of others the form is read, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from unrolled.held_forward.operations.operation_names import Operation

__all__ = ["CONVOLUTIONS", "OF_FIRST", "OF_NONE", "PRODUCTS_OF_MATRICES", "copied_data", "operands_read"]

OF_FIRST = frozenset("expand_as view_as reshape_as type_as to".split())
"""Operations that read of their second operand what form it has."""
OF_NONE = frozenset(
    "zeros_like ones_like empty_like full_like rand_like randn_like randint_like new new_zeros new_ones new_empty "
    "new_full".split()
)
"""Operations that read no number of their operands."""
CONVOLUTIONS = frozenset("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d".split())
PRODUCTS_OF_MATRICES = CONVOLUTIONS | frozenset(
    "linear bilinear matmul mm bmm mv einsum addmm addmv baddbmm addbmm tensordot dot vdot inner linalg_vecdot "
    "linalg_matmul linalg_multi_dot".split()
)
"""Operations that sum the products of their operands' entries."""


def copied_data(operation: Operation, args: Sequence[Any]) -> Any:
    """Return of what an operation such as ``torch.tensor`` makes a tensor: of ``x.new_tensor`` x has but its type."""
    return args[1 if operation.name == "new_tensor" else 0]


def operands_read(operation: Operation, given: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return the operands that a result is made of, not those whose form it has."""
    if operation.name in OF_NONE:
        return []
    if operation.name == "new_tensor":
        return given[1:]
    return given[:1] if operation.name in OF_FIRST else given
