"""Which token each entry is where an operation writes ids into others, or puts zeros beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from unrolled.held_forward.operands import operands
from unrolled.held_forward.operation_names import Operation

__all__ = ["WRITES", "positions_written"]

WRITES = {
    "index_put": 2,
    "index_copy": 3,
    "masked_scatter": 2,
    "slice_scatter": 1,
    "select_scatter": 1,
    "diagonal_scatter": 1,
    "scatter": 3,
    "put": 2,
}
"""Operations that write one operand into the first, and which one it is."""
ZEROS = frozenset({"tril", "triu", "diag", "diag_embed", "_pad_packed_sequence"})
"""Operations that move the first operand and put zeros beside it."""


class WrittenIds(Protocol):
    """Knows which token each id is."""

    @property
    def several(self) -> Any:
        """Integers that are made of several tokens' ids."""

    def __contains__(self, ids: object) -> bool:
        """Whether a position of ids is known."""

    def get(self, ids: object) -> Tensor | None:
        """Return the positions of ids."""


def positions_written(
    known: WrittenIds, func: Callable[..., Any], operation: Operation, args: tuple[Any, ...], options: dict[str, Any]
) -> Tensor | None:
    """Return the positions of the result of an operation that writes ids; None for any other.

    The operation runs on the positions themselves, counted from one, so that what it puts beside them is none.
    """
    place = WRITES.get(operation.name, 0)
    if (place == 0 and operation.name not in ZEROS) or len(args) <= place or _adds(operation, args, options):
        return None
    places = {0, place}
    chooses = [each for each in operands([each for k, each in enumerate(args) if k not in places]) if each in known]
    if any(each.dtype != torch.bool for each in chooses) or all(known.get(args[k]) is None for k in places):
        return None
    if any(isinstance(args[k], Tensor) and args[k] in known.several for k in places):
        return None
    numbered = [_from_one(known, each) if k in places else each for k, each in enumerate(args)]
    if operation.name == "_pad_packed_sequence":  # torch passes the padding by position
        numbered[3] = 0
    result = func(*numbered, **options)
    return (result[0] if isinstance(result, tuple) else result) - 1


def _adds(operation: Operation, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Whether an operation adds to what it finds, or reduces both."""
    last = args[3] if operation.name in ("put", "index_put") and len(args) > 3 else False
    return bool(last) or any(options.get(name) for name in ("accumulate", "reduce"))


def _from_one(known: WrittenIds, value: Any) -> Any:
    """Number the tokens of an operand from one; zero is none."""
    found = known.get(value)
    if found is not None:
        return found + 1
    return torch.zeros_like(value, dtype=torch.int64) if isinstance(value, Tensor) else 0
