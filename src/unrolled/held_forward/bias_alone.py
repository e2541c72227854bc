"""Results that are the bias of a layer alone, as where a loop begins with a state of zero.

Such a bias is a row, as in every later step: what multiplies it shares the product with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from unrolled.held_forward.operation_names import Operation

__all__ = ["bias_alone"]

_PLACES = dict.fromkeys("linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d".split(), 2)
_PLACES |= dict.fromkeys("bilinear layer_norm group_norm".split(), 3)
"""Operations that add a bias to what is zero where their first operand is, with the place of the bias."""


def bias_alone(
    operation: Operation, args: tuple[Any, ...], options: Mapping[str, Any], given: Sequence[Tensor]
) -> Tensor | None:
    """Return the bias that a result consists of; None for any other result."""
    place = _PLACES.get(operation.name)
    if place is None:
        return None
    bias = args[place] if len(args) > place else options.get("bias")
    return bias if isinstance(bias, Tensor) and not bool(given[0].count_nonzero()) else None
