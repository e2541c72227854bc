"""Vectors and numbers made of token ids: rows of a table that ids picked, one-hot vectors, integers as floats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from unrolled.held_forward.operations.operands import holds_integers, of_kind
from unrolled.held_forward.operations.operation_call import OperationCall
from unrolled.held_forward.operations.operation_names import Operation
from unrolled.held_forward.tensor_facts.integer_numbers import IntegerNumbers
from unrolled.held_forward.tensor_facts.moves import CONVERSIONS, JOINS
from unrolled.held_forward.tensor_facts.rows import Kind, Rows
from unrolled.held_forward.tensor_facts.tensor_notes import TensorNotes
from unrolled.held_forward.token_ids.computed_ids import ComputedIds, Made, numbers_of
from unrolled.held_forward.token_ids.numbers_as_ids import TO_INTEGERS, entries_of
from unrolled.held_forward.token_ids.python_ids import PythonIds
from unrolled.held_forward.token_ids.table_reads import along_axis, axis_of_one_token, index_of_read, positions_read
from unrolled.held_forward.token_ids.token_positions import TokenPositions
from unrolled.held_forward.token_ids.written_positions import WRITES

__all__ = ["INTEGERS", "TokenVectors"]

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8)
"""The types of token ids."""
_TO_FLOATS = CONVERSIONS | {"tensor", "as_tensor"}
"""Operations that may give integers as floating-point numbers."""
_MIXES = JOINS | frozenset("add sub mul div where pow".split())
"""Operations that use an integer as a number where another operand is a floating-point number."""
_WRITTEN = {**WRITES, "setitem": 2, "copy": 1}
"""Operations that write an operand into the first one, and which one it is."""
_FLOATS = frozenset("sqrt rsqrt reciprocal exp log log2 log10 log1p sin cos tanh sigmoid".split())
"""Operations that use every integer as a number."""


class TokenVectors:
    """Opens such vectors and numbers as rows.

    Args:
        rows: Collects the sources of value.
        positions: Knows which token each id is.
    """

    def __init__(self, rows: Rows, positions: TokenPositions) -> None:
        self.rows, self.positions = rows, positions
        self.computed = ComputedIds(rows, positions)
        self.numbers = IntegerNumbers(rows)
        self.python_ids = PythonIds(rows, self.computed)
        self.rounded: TensorNotes[Tensor] = TensorNotes()
        """The numbers of which whole ones were made."""
        self.padding: list[tuple[Tensor, int]] = []
        """The positions that a table with an id of padding was read at, and that id."""
        self._of_ids: TensorNotes[tuple[Any, int]] = TensorNotes()
        """For ids as floating-point numbers, their positions, and the version of the tensor that has them."""

    def opened(self, call: OperationCall, result: Any) -> Tensor | None:
        """Return the result of an operation with its rows opened; None for any other operation."""
        args, floats = call.args, isinstance(result, Tensor) and result.is_floating_point()
        if not floats or not args or not isinstance(args[0], Tensor) or torch.is_inference_mode_enabled():
            return None
        if call.name in _TO_FLOATS:
            return self._remembered(args[0], self._numbers(args[0], result))
        if call.name == "scatter":
            return self._scattered(call, result)
        if self._is_held(args[0]):
            return None
        positions = positions_read(self.positions, call, result)
        if positions is not None:
            kind = self._kind(positions)
            return self._by_axis(kind, self.rows.origin(args[0]).name, args[0], result, positions)
        index = index_of_read(call)
        ids = [each for each in (index if isinstance(index, tuple) else (index,)) if self._is_integer(each)]
        if not ids:
            return None
        made = next((each for each in map(self.computed.of, ids) if each is not None), Made(call.name, False))
        return self._of_several(args[0], made, result)

    def looked_up(self, table: Tensor, ids: Tensor, vectors: Tensor, padding: int | None = None) -> Tensor | None:
        """Open the vectors of a table that ids picked; None if the ids are not made of the arguments'.

        ``padding`` is the id of padding that the table has, None or below zero without one.
        """
        if self._is_held(table):
            return None
        positions = self.positions.get(ids)
        if positions is not None:
            if padding is not None and padding >= 0:
                self.padding.append((positions, padding))
            return self.rows.open_tokens(self.rows.origin(table).name, table, vectors, positions, self._kind(positions))
        made = self.computed.of(ids)
        if made is None:
            self.python_ids.look_up(table, ids)
        return None if made is None else self._of_several(table, made, vectors)

    def _is_held(self, table: Tensor) -> bool:
        """Whether a table is a held result: what ids pick of it, as the probability of a class, is held too."""
        return self.rows.origin(table).kind == "held"

    def ids_again(self, operation: Operation, numbers: Sequence[Tensor], result: Any) -> bool:
        """Follow ids that became floating-point numbers and are ids again; tell whether a result is that."""
        if operation.name not in TO_INTEGERS or len(numbers) != 1 or numbers[0] not in self._of_ids:
            return False
        positions, version = self._of_ids[numbers[0]]
        if not isinstance(result, Tensor) or result.dtype not in INTEGERS or numbers[0]._version != version:
            return False
        self.positions[result] = positions
        return True

    def _remembered(self, ids: Tensor, numbers: Tensor | None) -> Tensor | None:
        """Remember of which ids these are the numbers, one of each."""
        one_each = ids in self.positions and not self.positions.are_vectors(ids)
        if numbers is not None and one_each and numbers.shape == ids.shape:
            self._of_ids[numbers] = (self.positions.get(ids), numbers._version)
        return numbers

    def made_of_numbers(self, value: Any, ids: Any) -> None:
        """Number integers that a model makes of the numbers of an argument, one of each."""
        if not isinstance(ids, Tensor) or not holds_integers(ids):
            return
        value = self.rounded.get(value, value) if isinstance(value, Tensor) else None
        if value is not None and value.requires_grad:
            entries = entries_of(value, self.rows.rows)
            if entries is not None:
                self.positions.open(ids, entries)
                self.computed.name_masks(ids)

    def _kind(self, positions: Tensor) -> Kind:
        """Tell what a table has at a token from what it has at a number of an argument."""
        return "category" if any(bool(row.holds(positions).any()) for row in self.rows.arguments) else "token"

    def with_numbers(
        self, operation: Operation, args: tuple[Any, ...], options: dict[str, Any], kind: torch.dtype
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the same arguments, where integers made of token ids are numbers; an index stays what it is."""
        place = _WRITTEN.get(operation.name)
        if place is None:
            return self._as_numbers(args, kind), {name: self._as_numbers(each, kind) for name, each in options.items()}
        return (*args[:place], self._as_numbers(args[place], kind), *args[place + 1 :]), options

    def _as_numbers(self, value: Any, kind: torch.dtype) -> Any:
        if isinstance(value, tuple | list):
            return of_kind(value, (self._as_numbers(each, kind) for each in value))
        if not self._is_integer(value):
            return value
        numbers = self._numbers(value, value.to(kind))
        return value if numbers is None else numbers

    def uses_numbers(
        self, operation: Operation, args: tuple[Any, ...], options: dict[str, Any], given: Sequence[Tensor]
    ) -> torch.dtype | None:
        """Return the type to which an operation converts integers made of token ids; None if it converts none."""
        place = _WRITTEN.get(operation.name)
        if place is not None:
            writes = len(args) > place and args[0].is_floating_point() and self._is_integer(args[place])
            return args[0].dtype if writes else None
        if (operation.name not in _MIXES and operation.name not in _FLOATS) or not any(map(self._is_integer, given)):
            return None
        floats = [each.dtype for each in given if each.is_floating_point()]
        if floats:
            return floats[0]
        divides = operation.name == "div" and not options.get("rounding_mode")
        divides = divides or any(isinstance(each, float) for each in args)
        return torch.get_default_dtype() if operation.name in _FLOATS or divides else None

    def _is_integer(self, value: object) -> bool:
        if not isinstance(value, Tensor) or value.is_floating_point() or value.dtype == torch.bool:
            return False
        return value in self.positions or self.computed.of(value) is not None

    def _numbers(self, ids: Tensor, values: Tensor) -> Tensor | None:
        """Open integers that are used as numbers."""
        positions, made = self.positions.get(ids), self.computed.of(ids)
        if self.positions.are_masks(ids) or (made is not None and made.of_masks):
            return None
        if positions is not None and bool((positions >= 0).any()):
            if self.positions.are_vectors(ids):
                opened = self._by_axis(self._kind(positions), "one-hot vectors", None, values, positions)
            else:
                opened = self._by_axis("number", "numbers", None, values, positions)
            return self.numbers.add(opened)
        if made is None:
            return None
        self.computed.read[made.by] = None
        return self.numbers.add(self.rows.open("computed", numbers_of(made), values))

    def _of_several(self, table: Tensor, made: Made, vectors: Tensor) -> Tensor | None:
        """Open the vectors of ids that are made of several tokens; those of the places in a text are the table's."""
        if made.of_masks:
            return None
        self.computed.read[made.by] = None
        return self.rows.open("computed", f"{self.rows.origin(table).name} at ids that {made.by} made", vectors)

    def _scattered(self, call: OperationCall, result: Tensor) -> Tensor | None:
        """Open one-hot vectors that were written into floating-point numbers."""
        positions = self.positions.scattered(*call.args) if len(call.args) == 4 else None
        if positions is None:
            return None
        opened = self._by_axis(self._kind(positions), "one-hot vectors", None, result.clone(), positions)
        return self.numbers.add(result.copy_(opened) if call.operation.in_place else opened)

    def _by_axis(self, kind: Kind, name: str, table: Tensor | None, values: Tensor, positions: Tensor) -> Tensor:
        """Open values as vectors along an axis whose entries belong to one token; else one by one."""
        axis = axis_of_one_token(positions)
        places = positions if axis is None else positions.select(axis, 0)
        opened = self.rows.open_tokens(name, table, along_axis(values, axis), places, kind)
        return opened[..., 0] if axis is None else opened.movedim(-1, axis)
