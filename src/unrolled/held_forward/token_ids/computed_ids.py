"""Integers that a model computes of several tokens: numbers of bigrams, of distinct words, of a cumulative sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unrolled.held_forward.operations.operands import holds_integers
from unrolled.held_forward.operations.operands_read import operands_read
from unrolled.held_forward.operations.operation_names import Operation
from unrolled.held_forward.operations.python_values import FROM_PYTHON, LISTS_TO_PYTHON, TO_NUMPY
from unrolled.held_forward.tensor_facts.rows import MASKS, Rows
from unrolled.held_forward.tensor_facts.tensor_notes import TensorNotes
from unrolled.held_forward.token_ids.token_positions import TokenPositions

__all__ = ["ComputedIds", "Made", "numbers_of"]


@dataclass(frozen=True)
class Made:
    """How integers were made of token ids."""

    by: str
    """The operation whose results are no single token's."""
    of_masks: bool
    """Whether of answers about tokens only, such as which of them are padding."""


class ComputedIds:
    """Remembers which tensors are made of token ids, and belong to no single token.

    Args:
        rows: Collects the sources of value.
        positions: Knows the integers that belong to one token.
    """

    def __init__(self, rows: Rows, positions: TokenPositions) -> None:
        self.rows, self.positions = rows, positions
        self.read: dict[str, None] = {}
        """The operations whose results picked vectors of a table, or were used as numbers."""
        self.of_masks = False
        """Whether the model asked which tokens are of some kind."""
        self._made: TensorNotes[Made] = TensorNotes()
        self._in_python = ""
        """The operation that gave ids to Python last."""
        self._in_numpy = ""
        """The operation that gave ids to numpy last."""
        self._older: frozenset[int] = frozenset()
        """Where tensors lay that the model kept before: no ids made them."""

    def of(self, value: object) -> Made | None:
        """Return how integers were made of token ids; None if they were not, or belong to one token each."""
        return self._made.get(value) if isinstance(value, Tensor) else None

    def made_of_ids(self, numbers: Tensor) -> bool:
        """Tell whether numbers are ids, made of ids, or held choices; what masks alone made, as lengths, is not."""
        made = self.of(numbers)
        if made is None and holds_integers(numbers) and self.rows.origin(numbers).kind == "held":
            return True
        return numbers in self.positions and numbers.dtype != torch.bool if made is None else not made.of_masks

    def name_masks(self, ids: Any) -> None:
        """Let masks have a name where they are added to value."""
        if self.positions.are_masks(ids):
            self.of_masks = True
            self.rows.mark(ids, "mask", MASKS)

    def add(self, operation: Operation, result: Any) -> None:
        """Remember integers that an operation made of numbers, as rounding them does."""
        if isinstance(result, Tensor) and not result.is_floating_point() and result.dtype != torch.bool:
            self._mark(result, Made(operation.name, False))

    def take_back(self, given: Sequence[Tensor]) -> None:
        """Remember integers in the memory of numpy that an operation reads, after ids went there.

        No mode meets ``torch.from_numpy``. What numpy computes may be made of any ids, so no token has it.
        """
        if not self._in_numpy:
            return
        for each in given:
            known = each in self.positions or each in self._made or self.rows.origin(each).kind != "constant"
            if not known and _is_of_numpy(each) and each.untyped_storage().data_ptr() not in self._older:
                self._mark(each, Made(self._in_numpy, False))

    def how(self, operation: Operation, args: tuple[Any, ...], given: Sequence[Tensor]) -> Made | None:
        """Return how an operation uses token ids, if its results are of several; None if there are none in it."""
        sources = operands_read(operation, given)
        found = [made for made in map(self.of, sources) if made is not None]
        own = [each for each in sources if each in self.positions]
        if not found and not own:
            returns = operation.name in FROM_PYTHON and self._in_python and not sources and _has_integers(args)
            return Made(self._in_python, False) if returns else None
        of_masks = all(made.of_masks for made in found) and all(map(self.positions.are_masks, own))
        if operation.name == "add" and len(own) > 1 and not any(each.dtype == torch.bool for each in own):
            of_masks = False  # numbers of pairs, of which each id happens to be 0 or 1
        return Made(found[0].by if found else operation.name, of_masks)

    def follow(self, made: Made, operation: Operation, args: tuple[Any, ...], result: Any) -> bool:
        """Remember the results of an operation, of which no position is known; tell whether they have a name."""
        if operation.name in LISTS_TO_PYTHON and not made.of_masks:
            self._in_python = operation.name
            if operation.name in TO_NUMPY:
                self._older = self._older if self._in_numpy else self.rows.kept_memory()
                self._in_numpy = operation.name
        changed = args[0] if operation.writes else None
        results = [*(result if isinstance(result, tuple | list) else (result,)), changed]
        results.append(changed._base if isinstance(changed, Tensor) else None)
        for each in results:
            if isinstance(each, Tensor) and each not in self.positions:
                self._mark(each, made)
                if each.is_floating_point() and not made.of_masks:
                    self.read[made.by] = None
                    self.rows.mark(each, "computed", numbers_of(made))
        return not made.of_masks

    def _mark(self, result: Tensor, made: Made) -> None:
        self._made[result] = made
        if not made.of_masks:
            self.positions.several[result] = True


def _is_of_numpy(value: Tensor) -> bool:
    """Whether these are integers in memory that another library gave to torch, which torch cannot resize."""
    return holds_integers(value) and value.layout == torch.strided and not value.untyped_storage().resizable()


def _has_integers(value: Any) -> bool:
    """Whether integers are among what a tensor is made of: ids are no other numbers."""
    if isinstance(value, tuple | list):
        return any(map(_has_integers, value))
    if isinstance(value, np.ndarray | np.generic):
        return bool(np.issubdtype(value.dtype, np.integer))
    return isinstance(value, int) and not isinstance(value, bool)


def numbers_of(made: Made) -> str:
    """Name numbers that were made of token ids."""
    return f"numbers that {made.by} made of ids"
