"""Vectors of tokens that no embedding looked up: rows of a table that ids picked, and one-hot vectors."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from unrolled.held_forward.operation_names import Operation
from unrolled.held_forward.rows import Rows
from unrolled.held_forward.token_positions import TokenPositions

__all__ = ["TokenVectors"]

CONVERSIONS = frozenset({"to", "float", "double", "type", "type_as"})


class TokenVectors:
    """Opens such vectors as rows.

    Args:
        rows: Collects the sources of value.
        positions: Knows which token each id is.
    """

    def __init__(self, rows: Rows, positions: TokenPositions) -> None:
        self.rows, self.positions = rows, positions
        self._one_hot: WeakTensorKeyDictionary = WeakTensorKeyDictionary()

    def opened(self, operation: Operation, args: tuple[Any, ...], result: Any) -> Tensor | None:
        """Return the result of an operation with its rows opened; None for any other operation."""
        if not args or not isinstance(args[0], Tensor) or not isinstance(result, Tensor):
            return None
        table, index = args[0], args[1 if operation.name == "getitem" else -1]
        if operation.name == "one_hot" and table in self.positions:
            self._one_hot[result] = self.positions.get(table)
        if not result.is_floating_point():
            return None
        if operation.name in CONVERSIONS and table in self._one_hot:
            return self.rows.open_tokens("one-hot vectors", None, result, self._one_hot[table])
        if operation.name not in ("getitem", "index_select") or table.dim() != 2:
            return None
        positions = self.positions.get(index)
        if positions is None or positions.shape != result.shape[:-1]:
            return None
        return self.rows.open_tokens(self.rows.origin(table)[1], table, result, positions)
