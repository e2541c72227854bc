"""Which token of an argument each id is, through the operations that move ids: flips, shifts, padding, sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from unrolled.held_forward.operation_names import Operation

__all__ = ["TokenPositions"]

MOVES = frozenset(
    "getitem view reshape flatten unsqueeze squeeze transpose permute t contiguous clone to long int flip index_select "
    "gather narrow select expand expand_as repeat movedim detach cpu cuda cat stack roll take_along_dim chunk split "
    "unbind pad_sequence hstack vstack tile repeat_interleave masked_select fliplr flipud _pack_padded_sequence".split()
)
"""Operations that move token ids and change none of them."""
CHANGES = frozenset("add sub mul clamp clamp_min clamp_max remainder fmod".split())
"""Operations with a number that change every token id at its place."""


class TokenPositions:
    """For tensors of token ids, the flat index of each token in the argument it came from; -1 for no token."""

    def __init__(self) -> None:
        self._known: WeakTensorKeyDictionary = WeakTensorKeyDictionary()

    def __contains__(self, ids: object) -> bool:
        return isinstance(ids, Tensor) and ids in self._known

    def __setitem__(self, ids: Tensor, positions: Tensor) -> None:
        self._known[ids] = positions

    def __bool__(self) -> bool:
        return bool(self._known)

    def get(self, ids: object) -> Tensor | None:
        """Return the positions of ids, or None where none is known."""
        return self._known.get(ids) if isinstance(ids, Tensor) else None

    def follow(
        self,
        func: Callable[..., Any],
        operation: Operation,
        args: tuple[Any, ...],
        options: dict[str, Any],
        result: Any,
    ) -> bool:
        """Follow one operation to its result; tell whether it was one that tokens go through."""
        if not self._known:
            return False
        if operation.name == "setitem":
            return self._write(*args)
        first = args[0] if args else None
        if operation.in_place:
            if first in self:  # what its ids have become is not known
                del self._known[first]
            return False
        if operation.name == "where" and len(args) == 3 and any(each in self for each in args[1:]):
            one, other = (self._positions_of(each, args[0]) for each in args[1:])
            self._known[result] = torch.where(args[0], one, other).expand(result.shape)
        elif operation.name in ("masked_fill", "pad", "sort") and first in self:
            self._known[result[0] if operation.name == "sort" else result] = self._moved(
                operation, args, options, result
            )
        elif operation.name in CHANGES and self._one_of(args) is not None:
            found = self._one_of(args)
            if found is None or found.shape != result.shape:
                return False
            self._known[result] = found
        elif operation.name == "getitem" and self._table(args):
            self._known[result] = self._known[args[1]]
        elif operation.name in MOVES:
            return self._move(func, operation, args, options, result)
        else:
            return False
        return True

    def _table(self, args: tuple[Any, ...]) -> bool:
        """Whether ids are looked up in a table of other ids."""
        table, index = args
        return isinstance(table, Tensor) and table.dim() == 1 and not table.is_floating_point() and index in self

    def _one_of(self, args: tuple[Any, ...]) -> Tensor | None:
        """The positions of the only tensor of an operation with numbers."""
        tensors = [each for each in args if isinstance(each, Tensor) and each.dim()]
        return self.get(tensors[0]) if len(tensors) == 1 else None

    def _positions_of(self, value: Any, like: Tensor) -> Tensor:
        found = self.get(value)
        if found is not None:
            return found
        shape = value.shape if isinstance(value, Tensor) else ()
        return torch.full(shape, -1, dtype=torch.int64, device=like.device)

    def _moved(self, operation: Operation, args: tuple[Any, ...], options: dict[str, Any], result: Any) -> Tensor:
        """Compute the positions after an operation that also puts other ids in."""
        given = self._known[args[0]]
        if operation.name == "sort":
            indices: Tensor = result[1]
            axis = options.get("dim", next((each for each in args[1:] if type(each) is int), -1))
            return given.gather(axis, indices)
        if operation.name == "masked_fill":
            mask = args[1] if len(args) > 1 else options["mask"]
            return given.masked_fill(mask, -1)
        pad = args[1] if len(args) > 1 else options["pad"]
        mode = args[2] if len(args) > 2 else options.get("mode", "constant")
        return torch.nn.functional.pad(given, pad, mode, **({"value": -1} if mode == "constant" else {}))

    def _move(
        self,
        func: Callable[..., Any],
        operation: Operation,
        args: tuple[Any, ...],
        options: dict[str, Any],
        result: Any,
    ) -> bool:
        """Move positions as the tokens were moved."""
        if not args:
            return False
        first = args[0]
        if isinstance(first, tuple | list):
            if not any(each in self for each in first):
                return False
            numbers: Any = type(first)(self._positions_of(each, each) for each in first)
        elif first in self:
            numbers = self._known[first]
        else:
            return False
        rest, named = args[1:], {k: v for k, v in options.items() if k != "dtype"}
        if operation.name == "pad_sequence":  # torch.nn.utils.rnn passes all of its arguments by position
            rest = (rest[0], -1, *rest[2:])
        moved = func(numbers, *rest, **named)
        results = result if isinstance(result, tuple | list) else (result,)
        places = moved if isinstance(moved, tuple | list) else (moved,)
        if operation.name == "_pack_padded_sequence":
            results, places = results[:1], places[:1]  # the second are the sizes of the steps
        for each, place in zip(results, places, strict=True):
            if isinstance(each, Tensor) and isinstance(place, Tensor) and not each.is_floating_point():
                self._known[each] = place.long()
        return True

    def _write(self, target: Any, index: Any, value: Any) -> bool:
        """Follow ids that are written into another tensor."""
        if value not in self and target not in self:
            return False
        if not isinstance(target, Tensor) or target.is_floating_point():
            return False
        known = self.get(target)
        numbers = (
            torch.full(target.shape, -1, dtype=torch.int64, device=target.device) if known is None else known.clone()
        )
        written = self.get(value)
        numbers[index] = -1 if written is None else written
        self._known[target] = numbers
        return True
