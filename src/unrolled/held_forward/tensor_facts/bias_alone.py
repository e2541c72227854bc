"""Results that are the bias of a layer alone, as where a loop begins with a state of zero.

Such a bias is a row, as in every later step: what multiplies it shares the product with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from unrolled.held_forward.operations.operands import operands
from unrolled.held_forward.operations.operands_read import CONVOLUTIONS
from unrolled.held_forward.operations.operation_names import Operation
from unrolled.held_forward.tensor_facts.moves import MOVES
from unrolled.held_forward.tensor_facts.rows import Rows
from unrolled.held_forward.tensor_facts.tensor_notes import TensorNotes

__all__ = ["BiasAlone"]

_PLACES = dict.fromkeys(("linear", *CONVOLUTIONS), 2) | dict.fromkeys("bilinear layer_norm group_norm".split(), 3)
"""Operations that add a bias to what is zero where their first operand is, with the place of the bias."""
_PRODUCTS = _PLACES.keys() | frozenset("matmul mm bmm mv einsum".split())
_PRODUCTS_AND_SUMS = frozenset("addmm addmv baddbmm addbmm".split())
"""Operations that add their first operand to a product."""


class BiasAlone:
    """Finds results that are a bias alone, whether one operation makes the product and the sum or two do.

    Args:
        rows: They know which tensors are parameters.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._products: TensorNotes[bool] = TensorNotes()
        """Products that are zero."""

    def of(
        self,
        operation: Operation,
        args: tuple[Any, ...],
        options: Mapping[str, Any],
        given: Sequence[Tensor],
        result: object,
    ) -> Tensor | None:
        """Return the bias that a result without value consists of; None for any other result."""
        name = operation.name
        place = _PLACES.get(name)
        if place is not None:
            bias = args[place] if len(args) > place else options.get("bias")
            if isinstance(bias, Tensor):
                return None if bool(given[0].count_nonzero()) else bias
        if name in _PRODUCTS_AND_SUMS:
            return self._parameter(given[0]) if not all(bool(each.count_nonzero()) for each in given[1:]) else None
        if name in ("add", "sub") and len(given) == 2:
            summands = [each for each in given if each not in self._products]
            if len(summands) == 1:
                return self._parameter(summands[0])
        if name in _PRODUCTS or (name in (MOVES | {"add", "sub"}) and all(each in self._products for each in given)):
            for each in operands([result]):
                if not bool(each.count_nonzero()):
                    self._products[each] = True
        return None

    def _parameter(self, value: Tensor) -> Tensor | None:
        return value if self._rows.origin(value).kind == "bias" else None
