"""Integers of a model's arguments that are used as numbers: added they are features, and factors are held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from unrolled.held_forward.operations.operands import carries
from unrolled.held_forward.operations.operation_names import Operation
from unrolled.held_forward.tensor_facts.moves import CONVERSIONS, JOINS, MOVES
from unrolled.held_forward.tensor_facts.rows import Rows
from unrolled.held_forward.tensor_facts.tensor_notes import TensorNotes

__all__ = ["IntegerNumbers"]

_KEEPS = (
    MOVES
    | JOINS
    | CONVERSIONS
    | frozenset(
        "detach setitem copy pad add sub mul div pow neg square sqrt exp log log1p clamp "
        "clamp_min clamp_max where masked_fill sum mean cumsum".split()
    )
)
"""Operations whose results are such numbers where their operands are."""


class IntegerNumbers:
    """Knows which tensors are made of such numbers and of constants alone.

    An integer that multiplies other value is a mask or a count, as a rule: it is held, as attention weights are.

    Args:
        rows: The sources of value.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._known: TensorNotes[bool] = TensorNotes()
        self._met = False

    def __bool__(self) -> bool:
        """Whether the run has met any."""
        return self._met

    def __contains__(self, value: object) -> bool:
        return isinstance(value, Tensor) and value in self._known

    def add(self, numbers: Tensor) -> Tensor:
        """Remember numbers, and give them back."""
        self._met = self._known[numbers] = True
        return numbers

    def follow(self, operation: Operation, given: Sequence[Tensor], valued: Sequence[Tensor], result: Any) -> None:
        """Follow one operation, of whose operands ``valued`` carry value.

        A product with a weight of the model carries value as any other.
        """
        of_numbers = operation.name in _KEEPS and all(each in self for each in valued)
        of_numbers = of_numbers and not any(self._is_weight(each) for each in given)
        changed = given[:1] if operation.writes else ()
        for each in (*(result if isinstance(result, tuple | list) else (result,)), *changed):
            if isinstance(each, Tensor) and each.requires_grad:
                if of_numbers:
                    self._known[each] = True
                else:
                    self._known.pop(each, None)

    def held_beside_value(self, factors: Sequence[Any]) -> list[Any]:
        """Return the factors of a product, where numbers that multiply other value are held."""
        if not self or all(each in self for each in factors if carries(each)):
            return list(factors)
        return [each.detach() if each in self else each for each in factors]

    def _is_weight(self, value: Tensor) -> bool:
        return not value.requires_grad and self._rows.origin(value).kind == "bias"
