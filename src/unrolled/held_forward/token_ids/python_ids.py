"""Token ids that a model turns into Python's numbers, and the tables that it reads at such numbers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unrolled.held_forward.operations.operands_read import PRODUCTS_OF_MATRICES
from unrolled.held_forward.operations.operation_names import Operation
from unrolled.held_forward.operations.python_values import FROM_PYTHON, TO_NUMPY, TO_PYTHON
from unrolled.held_forward.tensor_facts.rows import Rows
from unrolled.held_forward.tensor_facts.tensor_notes import TensorNotes
from unrolled.held_forward.token_ids.computed_ids import ComputedIds

__all__ = ["PythonIds"]


class PythonIds:
    """Remembers the ids that Python got, and the tables that were read at one of them.

    Args:
        rows: Names the tables.
        computed: Knows the integers that are made of ids, of one token or of several.
    """

    def __init__(self, rows: Rows, computed: ComputedIds) -> None:
        self._rows, self._computed = rows, computed
        self._numbers: set[int] = set()
        self._to_numpy = False  # no mode meets what torch.LongTensor makes of a list
        self._returned: TensorNotes[bool] = TensorNotes()
        self.tables: dict[str, None] = {}
        """The names of these tables."""

    def follow(self, operation: Operation, args: tuple[Any, ...], result: Any) -> None:
        """Follow an operation on what carries no value."""
        if operation.name in TO_PYTHON:
            if not self._computed.made_of_ids(args[0]):
                return
            self._numbers.update(torch.as_tensor(result, device="cpu").reshape(-1).tolist())
            self._to_numpy = self._to_numpy or operation.name in TO_NUMPY
        elif not self._numbers:
            return
        elif operation.name in FROM_PYTHON:
            if self._holds(result):
                self._returned[result] = True
        elif operation.name in PRODUCTS_OF_MATRICES:
            self._weigh(args)
        elif operation.name == "getitem":
            index = args[1][0] if isinstance(args[1], tuple) and args[1] else args[1]
            listed = index if isinstance(index, list) else [index]
            if listed and all(type(each) is int and each in self._numbers for each in listed):
                self._read(args[0])
            else:
                self.look_up(args[0], index)

    def look_up(self, table: Tensor, ids: Any) -> None:
        """Remember a table that is read at numbers that came back."""
        if isinstance(ids, Tensor) and (ids in self._returned or (self._to_numpy and self._holds(ids))):
            self._read(table)

    def _weigh(self, factors: tuple[Any, ...]) -> None:
        """Remember a table of vectors that is multiplied: what weighs its rows may be made of such numbers."""
        given = [each for each in factors if isinstance(each, Tensor)]
        origins = [self._rows.origin(each) for each in given]
        if all(kind == "bias" for kind, _, _ in origins):
            return  # a parameter is not made of ids
        for each, origin in zip(given, origins, strict=True):
            if origin.name in self._rows.tables:
                self._read(each)

    def _holds(self, ids: Any) -> bool:
        """Whether a tensor holds integers that Python got, and no others."""
        if not isinstance(ids, Tensor) or ids.is_floating_point() or ids.dtype == torch.bool or not ids.numel():
            return False
        return self._numbers.issuperset(ids.reshape(-1).tolist())

    def _read(self, table: Tensor) -> None:
        kind, name, _ = self._rows.origin(table)
        if kind == "bias" and table.dim() == 2:
            self.tables[name] = None
