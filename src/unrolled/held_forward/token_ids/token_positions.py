"""Which token of an argument each id is, through the operations that move ids or compute with one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from unrolled.held_forward.operations.operands import of_kind, operands
from unrolled.held_forward.operations.operation_call import OperationCall
from unrolled.held_forward.tensor_facts.memory_layout import entries_of_view, laid_out_as
from unrolled.held_forward.tensor_facts.moves import EACH_BY_ITSELF, JOINS, MOVES
from unrolled.held_forward.tensor_facts.tensor_notes import TensorNotes
from unrolled.held_forward.token_ids.table_reads import positions_read
from unrolled.held_forward.token_ids.written_positions import positions_written

__all__ = ["TokenPositions"]

_MOVES_OF_IDS = MOVES | JOINS | frozenset("detach tensor as_tensor pad_sequence _pack_padded_sequence".split())
"""Operations that move token ids, of one tensor or of several, and change none of them."""
_CASTS = frozenset("to long int short type type_as tensor as_tensor asarray".split())
"""Operations that may change the type of token ids; their positions need not fit into that type."""
_ELEMENTWISE = frozenset(
    "add sub mul floordiv floor_divide rfloordiv div remainder fmod mod rmod pow square neg abs sign clamp "
    "clamp_min clamp_max minimum maximum fmin fmax max min bitwise_and bitwise_or bitwise_xor bitwise_not "
    "bitwise_left_shift bitwise_right_shift lshift rshift and or xor invert eq ne lt le gt ge logical_and logical_or "
    "logical_xor logical_not bool byte char".split()
)
"""Operations that compute every entry of their result of one entry of each operand."""
_ADDS = frozenset({"add", "sub"})
"""Those of them by which a mask may turn ids into others."""
_CHOOSES = frozenset("mul bitwise_and and".split())
"""Those of them by which a mask keeps numbers or makes them zero."""
_LOOKS_UP = {"isin": 0, "bucketize": 0, "searchsorted": 1}
"""Operations that compare every entry of one operand, by its place, with all entries of the other."""
_FILLS = frozenset({"masked_fill", "pad", "sort"})
"""Operations that move token ids and may put others beside them or in their place."""


class TokenPositions:
    """For tensors of integers made of token ids, the flat index of each entry's token; -1 for no token.

    An entry has a position if it is computed of that token and of no other one, as an id to which an offset was added.
    """

    def __init__(self) -> None:
        self._known: TensorNotes[Tensor] = TensorNotes()
        self._met = False
        self._vectors: TensorNotes[bool] = TensorNotes()
        self._masks: TensorNotes[bool] = TensorNotes()
        self.several: TensorNotes[bool] = TensorNotes()
        """Integers that are made of several tokens' ids."""
        self.turning: list[Tensor] = []
        """The positions of zeros and ones that were added to the ids of other tokens."""

    def __contains__(self, ids: object) -> bool:
        return self.get(ids) is not None

    def __setitem__(self, ids: Tensor, positions: Tensor) -> None:
        self._known[ids], self._met = positions, True

    def __bool__(self) -> bool:
        """Whether the run has met any ids."""
        return self._met

    def open(self, ids: Tensor, positions: Tensor) -> None:
        """Number the ids of an argument; zeros and ones are a mask, unless a table is read at them."""
        self[ids] = positions
        if ids.numel() and int(ids.min()) >= 0 and int(ids.max()) <= 1:
            self._masks[ids] = True

    def get(self, ids: object) -> Tensor | None:
        """Return the positions of ids, or None where none is known."""
        return self._known.get(ids) if isinstance(ids, Tensor) else None

    def are_vectors(self, ids: object) -> bool:
        """Tell whether these are one-hot vectors of tokens, or parts of such vectors."""
        return isinstance(ids, Tensor) and ids in self._vectors

    def are_masks(self, ids: object) -> bool:
        """Tell whether these are answers about tokens, such as which are padding, or arguments of zeros and ones."""
        return isinstance(ids, Tensor) and not self.are_vectors(ids) and (ids.dtype == torch.bool or ids in self._masks)

    def follow(self, call: OperationCall, result: Any) -> bool:
        """Follow one operation to its result; tell whether each of its entries is of one token."""
        if not self or not call.args:
            return False
        if call.name == "setitem":
            return self._write(*call.args)
        first = call.args[0]
        if isinstance(result, Tensor) and result.is_floating_point():
            found = None
        else:
            found = self._followed(call, result)
        if found is None:
            if call.operation.in_place:  # what its ids have become is not known, nor those of which it is a part
                self._known.pop(first, None)
                if first._base is not None:
                    self._known.pop(first._base, None)
            return False
        results = result if isinstance(result, tuple | list) else (result,)
        vectors = self.makes_vectors(call)
        masks = all(self.are_masks(each) for each in operands((*call.args, *call.kwargs.values())) if each in self)
        for each, places in zip(results, found, strict=False):
            if isinstance(each, Tensor) and isinstance(places, Tensor) and not each.is_floating_point():
                self._known[each] = places.long()
                if vectors:
                    self._vectors[each] = True
                if masks:
                    self._masks[each] = True
        if call.operation.in_place and isinstance(first, Tensor):
            self._write_through(first)
        return True

    def _write_through(self, changed: Tensor) -> None:
        """Let all ids that share memory with some that were changed in place have the positions of these."""
        whole = changed if changed._base is None else changed._base
        views = [each for each in self._known if each._base is whole and each.dtype == whole.dtype]
        if not views or changed.dtype != whole.dtype:
            return
        numbers = laid_out_as(whole, self._positions_of(whole, whole))
        entries_of_view(numbers, whole, changed).copy_(self._positions_of(changed, changed))
        self._known[whole] = numbers
        for each in views:
            self._known[each] = entries_of_view(numbers, whole, each).clone()

    def _followed(self, call: OperationCall, result: Any) -> tuple[Any, ...] | None:
        """Return the positions of the results of an operation; None if they have none."""
        name, args, first = call.name, call.args, call.args[0]
        if name == "where" and len(args) == 3:
            found = self._chosen(call, result.shape)
        elif name in _FILLS and first in self:
            found = self._filled(call, result)
        elif name == "copy" and args[1] in self:
            found = self._positions_of(args[1], args[1]).expand(first.shape)
        elif name == "one_hot" and first in self:
            found = self._positions_of(first, first)[..., None].expand(result.shape)
        elif name == "scatter" and len(args) == 4 and (vectors := self.scattered(*args)) is not None:
            found = vectors
        elif name in _ELEMENTWISE and isinstance(result, Tensor):
            given = (*args, *call.kwargs.values())
            if name in _ADDS:
                self._find_turning(call, given)
            kept = name in _CHOOSES and self._choose_numbers(given)
            found = None if kept else self.of_entries(given, result.shape)
        elif name in _LOOKS_UP and len(args) > 1:
            found = self._compared(args[_LOOKS_UP[name]], args[1 - _LOOKS_UP[name]], result.shape)
        elif name in _CASTS and first in self and isinstance(result, Tensor):
            found = self._positions_of(first, first).to(result.device)
        elif name == "view" and isinstance(call.bind("input", "dtype")[1], torch.dtype):  # the bytes in another type
            found = self.get(first) if isinstance(result, Tensor) and result.shape == first.shape else None
        elif name in _MOVES_OF_IDS and (first in self or isinstance(first, tuple | list)):
            return self._moved(call)
        elif name in EACH_BY_ITSELF:
            return self._each_moved(call)
        elif (written := positions_written(self, call)) is not None:
            found = written
        elif first not in self.several:
            found = positions_read(self, call, result)
        else:
            found = None
        return None if found is None else (found,)

    def of_entries(self, values: Iterable[Any], shape: torch.Size) -> Tensor | None:
        """Return the positions of the entries that operands make together; None where they are of several tokens.

        What a mask does to ids is a choice, which is held.
        """
        known = [each for each in values if each in self or each in self.several]
        ids = [each for each in known if not self.are_masks(each)] or known
        if any(each in self.several for each in ids):
            return None
        found: Tensor | None = None
        for each in ids:
            try:
                wide = self._positions_of(each, each).expand(shape)
            except RuntimeError:
                return None
            if found is not None and bool(((found >= 0) & (wide >= 0) & (found != wide)).any()):
                return None
            found = wide if found is None else torch.maximum(found, wide)
        return found

    def _choose_numbers(self, values: Iterable[Any]) -> bool:
        """Whether masks keep some of the model's own numbers, as those of positions; the choice is held."""
        given = [each for each in values if isinstance(each, Tensor)]
        own = [each for each in given if each not in self and each.numel()]
        masks = all(self.are_masks(each) for each in given if each in self)
        return masks and any(bool((each != each.reshape(-1)[0]).any()) for each in own)

    def _find_turning(self, call: OperationCall, values: Sequence[Any]) -> None:
        """Remember a mask that adds to ids of other tokens: it neither keeps them nor puts others in their place."""
        known = [each for each in values if each in self]
        masks = [each for each in known if self.are_masks(each)]
        for mask, ids in product(masks, (each for each in known if not self.are_masks(each))):
            own, of_ids = self._positions_of(mask, mask), self._positions_of(ids, ids)
            before = ids
            if call.operation.in_place and ids is call.args[0]:  # it holds the sum already
                before = ids - mask if call.name == "add" else ids + mask
            turned = (mask != 0) & (before != 0) & (own >= 0) & (of_ids >= 0) & (own != of_ids)
            if bool(turned.any()):
                self.turning.append(own.expand(turned.shape)[turned])

    def _compared(self, values: Any, others: Any, shape: torch.Size) -> Tensor | None:
        """Return the positions of entries that were compared with others, if these are of no token."""
        return None if others in self or others in self.several else self.of_entries((values,), shape)

    def scattered(self, target: Any, dim: Any, index: Any, value: Any) -> Tensor | None:
        """Return the positions of one-hot vectors that are written at ids, one id a vector."""
        places = self.get(index)
        if places is None or target in self or not isinstance(dim, int) or isinstance(value, Tensor):
            return None
        one_each = list(target.shape)
        one_each[dim] = 1
        return places.expand(target.shape) if list(index.shape) == one_each else None

    def makes_vectors(self, call: OperationCall) -> bool:
        """Tell whether an operation makes one-hot vectors of ids, or moves such vectors."""
        if call.name == "eq":  # with a list of all ids
            return any(isinstance(each, Tensor) and each.dim() and each not in self for each in call.args)
        given = call.args[0] if isinstance(call.args[0], tuple | list) else call.args[:1]
        return call.name in ("one_hot", "scatter") or any(map(self.are_vectors, given))

    def _positions_of(self, value: Any, like: Tensor) -> Tensor:
        found = self.get(value)
        if found is not None:
            return found
        shape = value.shape if isinstance(value, Tensor) else ()
        return torch.full(shape, -1, dtype=torch.int64, device=like.device)

    def _chosen(self, call: OperationCall, shape: torch.Size) -> Tensor | None:
        """Compute the positions of a choice; what stands for a token because of its id has that token's position."""
        one, mask, other = call.args if call.function is Tensor.where else (call.args[1], call.args[0], call.args[2])
        if one not in self and other not in self:
            return None if self._choose_numbers(call.args) else self.of_entries((mask,), shape)
        if one in self.several or other in self.several:
            return None
        first, second = (self._positions_of(each, mask).expand(shape) for each in (one, other))
        return self._or_own(torch.where(mask, first, second), mask, torch.maximum(first, second))

    def _or_own(self, places: Tensor, mask: Any, before: Tensor) -> Tensor:
        """Give an entry that stands for a token because of that token's own id the token's position."""
        own = self.of_entries((mask,), places.shape)
        return places if own is None else torch.where((places < 0) & (own == before), own, places)

    def _filled(self, call: OperationCall, result: Any) -> Tensor:
        """Compute the positions after an operation that also puts other ids in."""
        args, options = call.args, call.kwargs
        given = self._positions_of(args[0], args[0])
        if call.name == "sort":
            indices: Tensor = result[1]
            axis = options.get("dim", next((each for each in args[1:] if type(each) is int), -1))
            return given.gather(axis, indices)
        if call.name == "masked_fill":
            mask = args[1] if len(args) > 1 else options["mask"]
            given = given.expand(result.shape)
            return self._or_own(given.masked_fill(mask, -1), mask, given)
        pad = args[1] if len(args) > 1 else options["pad"]
        mode = args[2] if len(args) > 2 else options.get("mode", "constant")
        return torch.nn.functional.pad(given, pad, mode, **({"value": -1} if mode == "constant" else {}))

    def _moved(self, call: OperationCall) -> tuple[Any, ...] | None:
        """Move positions as the tokens were moved."""
        first, *rest = call.args
        if isinstance(first, tuple | list):
            if not any(each in self for each in first) or any(each in self.several for each in first):
                return None
            like = next(each for each in first if each in self)
            numbers: Any = of_kind(first, (self._positions_of(each, like) for each in first))
        else:
            numbers = self._positions_of(first, first)
        if call.name in ("tensor", "as_tensor"):
            return (torch.stack([*numbers]),)
        numbers = numbers.clone() if call.operation.in_place else numbers
        if call.name == "pad_sequence":  # torch.nn.utils.rnn passes all of its arguments by position
            rest[1:2] = [-1]
        moved = call.function(numbers, *rest, **call.options_beyond("dtype"))
        if call.name == "_pack_padded_sequence":
            return (moved[0],)  # the second are the sizes of the steps
        return tuple(moved) if isinstance(moved, tuple | list) else (moved,)

    def _each_moved(self, call: OperationCall) -> tuple[Any, ...] | None:
        """Move positions where an operation re-arranges several tensors; None in place of those that are no ids."""
        given = operands(call.args)
        if any(each in self.several for each in given):
            return None
        numbers = [self._positions_of(each, each) if each in self else each for each in given]
        moved = call.run(*numbers) if isinstance(call.args[0], Tensor) else call.run(numbers)
        several = [moved] if isinstance(moved, Tensor) else moved
        return tuple(places if each in self else None for each, places in zip(given, several, strict=True))

    def _write(self, target: Any, index: Any, value: Any) -> bool:
        """Follow ids that are written into another tensor."""
        if value not in self and target not in self:
            return False
        if not isinstance(target, Tensor) or target.is_floating_point():
            return False
        if value in self.several or target in self.several:
            self._known.pop(target, None)
            return False
        numbers = self._positions_of(target, target).clone()
        before, written = numbers.clone(), self.get(value)
        numbers[index] = -1 if written is None else written
        if written is None and isinstance(index, Tensor) and index.shape == target.shape:
            numbers = self._or_own(numbers, index, before)
        self._known[target] = numbers
        self._write_through(target)
        return True
