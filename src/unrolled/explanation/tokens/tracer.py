"""A run in which token ids are followed until they pick vectors of a table, which become leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from unrolled.explanation.tokens.open_rectifiers import WrittenRectifiers
from unrolled.held_forward.operations.operands import operands
from unrolled.held_forward.operations.operands_read import operands_read
from unrolled.held_forward.operations.operation_call import OperationCall
from unrolled.held_forward.operations.operation_names import name_of
from unrolled.held_forward.outside.numbers_from_outside import NumbersFromOutside
from unrolled.held_forward.outside.variables import ReadsVariables
from unrolled.held_forward.tensor_facts.moves import CONVERSIONS
from unrolled.held_forward.token_ids.table_reads import along_axis, axis_of_one_token, positions_read
from unrolled.held_forward.token_ids.token_positions import TokenPositions
from unrolled.held_forward.token_ids.token_vectors import INTEGERS
from unrolled.model_runs.nested_tensors import Copies, items_of, with_parts

__all__ = ["TokenSource", "Tracer"]

_LOOKUPS = frozenset({"embedding", "index_select", "getitem"})


@dataclass(frozen=True)
class TokenSource:
    """Vectors that were looked up, or an argument of vectors."""

    leaf: Tensor
    """Shape (*rows, features)."""
    ids: Tensor | None
    """The ids that were looked up, shape (*rows,); None for an argument of vectors."""
    places: Tensor
    """The flat index of each in the argument, the same shape; -1 for what is no argument's."""
    argument: Tensor
    """The ids of the argument; empty if they are of none, and of vectors whether each holds numbers other than zero."""
    padding: int = 0
    """The id of padding."""
    vectors: int = -1
    """Numbers the arguments of vectors; -1 for a lookup."""
    table: int = -1
    """Names the table of a lookup."""
    made: bool = False
    """Whether the model made the ids of those of several tokens."""
    joined: tuple[tuple[Tensor, Tensor], ...] = ()
    """Where the argument is several, joined: each of them, and the flat indices of its entries in ``argument``."""


class Tracer(NumbersFromOutside, ReadsVariables):
    """Makes leaves of the vectors of tokens, and follows their ids."""

    def __init__(self) -> None:
        super().__init__()
        self.positions, self._rectifiers = TokenPositions(), WrittenRectifiers()
        self.arguments: list[tuple[int, Tensor]] = []
        """The number of the first token of each argument of ids."""
        self.texts: list[tuple[int, tuple[Tensor, ...]]] = []
        """The number of the first token of each list of texts that is an argument, and the ids of each of them."""
        self.sources: list[TokenSource] = []
        self.looked_up = False
        """Whether ids were looked up, also such as could not be followed."""
        self._joined: dict[tuple[int, ...], tuple[Tensor, ...]] = {}
        """Several arguments whose ids are looked up at once, side by side, and the numbers of their tokens."""
        self._count = self._vectors = 0

    def open_call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of a call as the model receives them."""
        made: Copies = {}  # one for all arguments: a node of a tree may stand in several
        given = [self.open_part(each, made) for each in args]
        return given, {name: self.open_part(each, made) for name, each in kwargs.items()}

    def open_part(self, value: Any, made: Copies) -> Any:
        """Return an argument, or a part of one, as the model receives it; ``made`` is what is opened so far."""
        if type(value) is PackedSequence:
            return value._replace(data=self.open_part(value.data, made))
        if not isinstance(value, Tensor):
            first = self._count
            if items_of(value) is None:
                return value
            opened = with_parts(value, lambda _, each: self.open_part(each, made), made)
            if isinstance(value, list | tuple) and len(value) > 1 and all(map(_is_text, value)):
                self.texts.append((first, tuple(each.detach() for each in value)))
            return opened
        if value.layout != torch.strided:
            return value  # a sparse one, such as a graph, holds no ids
        copy = value.detach().clone()
        if copy.is_floating_point():
            if copy.dim() < 2:
                return copy
            leaf = copy.requires_grad_()
            used = (leaf.detach() != 0).any(dim=-1).long()
            places, number = torch.arange(used.numel(), device="cpu").view(used.shape), self._vectors
            self.sources.append(TokenSource(leaf, None, places, used, vectors=number))
            self._vectors += 1
            return leaf.clone()
        if copy.dtype != torch.bool and not copy.is_complex():
            self.positions[copy] = torch.arange(copy.numel(), device=copy.device).view(copy.shape) + self._count
            self.arguments.append((self._count, copy.clone()))
            self._count += copy.numel()
        return copy

    def met_nothing(self, steps: int) -> bool:
        """Tell whether the arguments hold enough ids for all steps, and the run made vectors of none of them."""
        return not self.sources and sum(each.numel() for _, each in self.arguments) >= steps

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Run an operation, and make leaves of vectors that it looks up."""
        call = OperationCall(func, name_of(func), args, options)
        result = super().run_operation(func, args, options)
        self._rectifiers.note(call, result)
        if not isinstance(result, Tensor):
            self.positions.follow(call, result)
            return result
        if result.is_floating_point():
            ids = self._looked_up(call.name, args)
            if ids is not None:
                third = args[2] if call.name == "embedding" and len(args) > 2 else None
                return self.leaf(result, ids, options.get("padding_idx", third), _table_of(args, ids))
            return self._picked(call, result)
        # an id that stands for another one because of a mask has the name of its own
        if args and (result.dtype != torch.bool or self.positions.makes_vectors(call)):
            self.positions.follow(call, result)
            read = operands_read(call.operation, operands((*args, *options.values())))
            if result.dtype in INTEGERS and result not in self.positions and any(map(self._are_ids, read)):
                self.positions.several[result] = True
        return result

    def _are_ids(self, value: Tensor) -> bool:
        """Whether these are ids of tokens, or numbers that were made of some."""
        return value.dtype in INTEGERS and (value in self.positions or value in self.positions.several)

    def _looked_up(self, name: str, args: tuple[Any, ...]) -> Tensor | None:
        """The ids of a lookup; None for any other operation."""
        if name not in _LOOKUPS or len(args) < 2:
            return None
        if name == "index_select":
            if args[1] != 0:
                return None
            args = (args[0], args[2])
        table = next((each for each in args[:2] if isinstance(each, nn.Parameter)), None)
        ids = next((each for each in args[:2] if isinstance(each, Tensor) and each is not table), None)
        if table is None and name != "embedding":
            return None
        return ids if ids is not None and not ids.is_floating_point() and ids.dtype != torch.bool else None

    def _picked(self, call: OperationCall, result: Tensor) -> Tensor:
        """Make leaves of one-hot vectors, and of what ids pick from any other table, along an axis of one token."""
        args = call.args
        if not args or not isinstance(args[0], Tensor) or args[0].requires_grad:  # which is no table
            return result
        if call.name in CONVERSIONS:
            places = self.positions.get(args[0]) if self.positions.are_vectors(args[0]) else None
        elif call.name == "scatter":
            places = self.positions.scattered(*args) if len(args) == 4 else None
        else:
            places = positions_read(self.positions, call, result)
        if places is None:
            return result
        axis = axis_of_one_token(places)
        vectors, rows = along_axis(result, axis), places if axis is None else places.select(axis, 0)
        given = torch.cat([each.reshape(-1) for _, each in self.arguments])
        found = self._leaf_at(vectors, given[rows.clamp_min(0)], rows, None, args[0].data_ptr())
        found = found[..., 0] if axis is None else found.movedim(-1, axis)
        with torch.enable_grad():
            return result.copy_(found) if call.operation.in_place else found

    def leaf(self, result: Tensor, ids: Tensor, padding: int | None, table: int) -> Tensor:
        """Make a leaf of vectors; ids that are those of no argument, or were not followed, are of none."""
        return self._leaf_at(result, ids, self.positions.get(ids), padding, table)

    def _leaf_at(self, result: Tensor, ids: Tensor, places: Tensor | None, padding: int | None, table: int) -> Tensor:
        """Make a leaf of the vectors at these places."""
        self.looked_up = bool(self.arguments)
        if places is None or not bool((places >= 0).any()):
            nowhere = torch.full_like(ids, -1, dtype=torch.int64)
            return self._opened(result, ids, nowhere, ids.new_zeros(0), 0, table)
        argument, places, joined = self._in_argument(places)
        number = 0 if padding is None or padding < 0 else padding
        return self._opened(result, ids, places, argument, number, table, joined)

    def _in_argument(self, places: Tensor) -> tuple[Tensor, Tensor, tuple[tuple[Tensor, Tensor], ...]]:
        """Return the argument that tokens are of, and where they stand in it: of several, all side by side."""
        highest, lowest = int(places.max()), int(places[places >= 0].min())
        first, argument = next((n, each) for n, each in reversed(self.arguments) if n <= highest)
        if lowest >= first:
            return argument, torch.where(places >= 0, places - first, -1), ()
        for n, texts in self.texts:
            if n <= lowest and highest < n + sum(each.numel() for each in texts):
                whole = torch.cat([each.to(places.device) for each in texts])
                return whole, torch.where(places >= 0, places - n, -1), ()
        read = tuple(
            k for k, (n, each) in enumerate(self.arguments) if bool(((places >= n) & (places < n + each.numel())).any())
        )
        given = [self.arguments[k] for k in read]
        if max(each.dim() for _, each in given) < 2:  # texts of their own, each of another example
            inside = (places >= first) & (places < first + argument.numel())
            return argument, torch.where(inside, places - first, -1), ()
        if read not in self._joined:
            self._joined[read] = _side_by_side([each for _, each in given], [n for n, _ in given])
        argument, numbers = self._joined[read]
        ordered, order = numbers.reshape(-1).sort()

        def place_of(number: Tensor) -> Tensor:
            return order[torch.searchsorted(ordered, number)]

        joined = tuple(
            (each, place_of(torch.arange(n, n + each.numel(), device=each.device).view(each.shape)))
            for n, each in given
        )
        return argument, torch.where(places >= 0, place_of(places.clamp_min(0)), -1), joined

    def _opened(
        self,
        result: Tensor,
        ids: Tensor,
        places: Tensor,
        argument: Tensor,
        padding: int,
        table: int,
        joined: tuple[tuple[Tensor, Tensor], ...] = (),
    ) -> Tensor:
        """Make vectors a source."""
        leaf, made = result.detach().requires_grad_(), ids in self.positions.several
        self.sources.append(TokenSource(leaf, ids.detach().clone(), places, argument, padding, -1, table, made, joined))
        with torch.enable_grad():
            return leaf.clone()


def _side_by_side(arguments: Sequence[Tensor], firsts: Sequence[int]) -> tuple[Tensor, ...]:
    """Join arguments along their last axis if their forms allow it, else flat, and number their tokens."""
    numbers = [
        torch.arange(n, n + each.numel(), device=each.device).view(each.shape)
        for each, n in zip(arguments, firsts, strict=True)
    ]
    axes = max(each.dim() for each in arguments)
    parts = [[each.unsqueeze(-1) if each.dim() < axes else each for each in part] for part in (arguments, numbers)]
    if len({each.shape[:-1] for each in parts[0]}) > 1:  # else a token for each text is a column
        parts = [[each.reshape(-1) for each in part] for part in (arguments, numbers)]
    return tuple(torch.cat([each.long() for each in part], dim=-1) for part in parts)


def _is_text(value: Any) -> bool:
    """Whether it is a vector of ids."""
    return isinstance(value, Tensor) and value.dim() == 1 and value.dtype in INTEGERS


def _table_of(args: Sequence[Any], ids: Tensor) -> int:
    """Return a number that names the table of a lookup."""
    return next((each.data_ptr() for each in args if isinstance(each, Tensor) and each is not ids), -1)
