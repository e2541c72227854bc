"""Which token each entry is where an operation writes ids into others, or puts zeros beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unrolled.held_forward.operations.operands import operands
from unrolled.held_forward.operations.operation_call import OperationCall

if TYPE_CHECKING:
    from unrolled.held_forward.token_ids.token_positions import TokenPositions

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
_ZEROS = frozenset({"tril", "triu", "diag", "diag_embed", "_pad_packed_sequence"})
"""Operations that move the first operand and put zeros beside it."""


def positions_written(known: TokenPositions, call: OperationCall) -> Tensor | None:
    """Return the positions of the result of an operation that writes ids; None for any other.

    The operation runs on the positions themselves, counted from one, so that what it puts beside them is none.
    """
    place, args = WRITES.get(call.name, 0), call.args
    if (place == 0 and call.name not in _ZEROS) or len(args) <= place or _adds(call):
        return None
    places = {0, place}
    chooses = [each for each in operands([each for k, each in enumerate(args) if k not in places]) if each in known]
    if any(each.dtype != torch.bool for each in chooses) or all(known.get(args[k]) is None for k in places):
        return None
    if any(isinstance(args[k], Tensor) and args[k] in known.several for k in places):
        return None
    numbered = [_from_one(known, each) if k in places else each for k, each in enumerate(args)]
    if call.name == "_pad_packed_sequence":  # torch passes the padding by position
        numbered[3] = 0
    result = call.run(*numbered)
    return (result[0] if isinstance(result, tuple) else result) - 1


def _adds(call: OperationCall) -> bool:
    """Whether an operation adds to what it finds, or reduces both."""
    last = call.args[3] if call.name in ("put", "index_put") and len(call.args) > 3 else False
    return bool(last) or any(call.kwargs.get(name) for name in ("accumulate", "reduce"))


def _from_one(known: TokenPositions, value: Any) -> Any:
    """Number the tokens of an operand from one; zero is none."""
    found = known.get(value)
    if found is not None:
        return found + 1
    return torch.zeros_like(value, dtype=torch.int64) if isinstance(value, Tensor) else 0
