"""The sources of value in a held forward: one row each, a tensor that the output is linear in."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from unrolled.held_forward.operations.operands import holds_integers, holds_numbers, operands
from unrolled.held_forward.tensor_facts.memory_layout import without_repeats
from unrolled.held_forward.tensor_facts.tensor_notes import TensorNotes
from unrolled.user_models.all_modules import TABLES, all_buffers, all_modules, all_parameters, unregistered_tensors

__all__ = ["CONSTANTS", "MASKS", "Kind", "Origin", "Row", "Rows"]

Kind = Literal[
    "token",
    "category",
    "feature",
    "number",
    "computed",
    "mask",
    "bias",
    "initial",
    "constant",
    "held",
    "argument",
    "answer",
]
"""A number is an integer of an argument; a category is what a table has at an integer made of one of an argument's
numbers; what is computed of several tokens' ids belongs to none of them. An argument is what is made of numbers that
are no rows themselves, an answer what is made of such zeros and ones: a mask, until a layer reads them."""


class Origin(NamedTuple):
    """Where a tensor without value comes from."""

    kind: Kind
    name: str
    held: int = -1
    """Of a held result, its number among those of the run that may be followed instead."""


CONSTANTS = "constants"
"""The name of what no parameter, buffer or row of an argument has contributed."""
MASKS = "masks"
"""The name of what zeros and ones of arguments, and answers about tokens, have contributed."""
_OF_THE_CODE = Origin("constant", CONSTANTS)
_OF_ARGUMENTS = Origin("argument", CONSTANTS)
_OF_ANSWERS = Origin("answer", CONSTANTS)


@dataclass(frozen=True)
class Row:
    """One source of value."""

    kind: Kind
    name: str
    leaf: Tensor
    """What autograd differentiates by; for tokens the weights of their vectors, all one, in place of the vectors."""
    positions: Tensor | None = None
    """Of tokens and numbers, the flat index in the argument, or -1, by vector: the shape of ``leaf`` less its last."""
    first: int = -1
    """Of an argument of numbers, the number of its first entry among those of all arguments."""
    held: int = -1
    """As of its :class:`Origin`."""

    @property
    def is_of_arguments(self) -> bool:
        """Whether it is made of what an argument holds that is no row itself."""
        return self.kind in ("argument", "answer")

    def holds(self, positions: Tensor) -> Tensor:
        """Tell which positions are entries of this argument of numbers."""
        return (positions >= self.first) & (positions < self.first + self.leaf.numel()) & (self.first >= 0)


class Rows:
    """Collects the rows of one run.

    Args:
        model: The module whose parameters and buffers give added constants their names.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.first_node = torch._C._autograd._get_sequence_nr()
        """Autograd's number for the first node of the run in this thread."""
        self.rows: list[Row] = []
        self.arguments: list[Row] = []
        """Those of them that are arguments of numbers."""
        named = [*all_parameters(model).items(), *all_buffers(model).items()]
        strided = [(tensor, name) for name, tensor in named if tensor.layout == torch.strided]
        # a view, or a copy that shares memory, is found by where it lies
        self._places = sorted((tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes, name) for tensor, name in strided)
        tables = (part._parameters.get("weight") for part in all_modules(model).values() if isinstance(part, TABLES))
        self._tables = [table for table in tables if table is not None]
        self._origins: TensorNotes[Origin] = TensorNotes()
        self._token_weights: TensorNotes[tuple[Tensor, int]] = TensorNotes()
        for name, tensor in named:
            if tensor.layout != torch.strided:  # a sparse tensor lies at several places
                self.mark(tensor, "bias", name)

    def kept_memory(self) -> frozenset[int]:
        """Return where the tensors lie that the modules keep now and do not register."""
        kept = (each for each in unregistered_tensors(self.model) if each.layout == torch.strided)
        return frozenset(each.untyped_storage().data_ptr() for each in kept)

    def open(self, kind: Kind, name: str, value: Tensor, first: int = -1, held: int = -1) -> Tensor:
        """Make a row of a value and return a copy that carries it; the copy is no leaf, so it may change in place."""
        if value.is_complex():  # a leaf is real: of its two parts each has a contribution
            parts = torch.view_as_real(value.detach().resolve_conj().contiguous())
            return torch.view_as_complex(self.open(kind, name, parts, held=held))
        leaf = value.detach().clone().requires_grad_()
        self.rows.append(Row(kind, name, leaf, first=first, held=held))
        if first >= 0:
            self.arguments.append(self.rows[-1])
        return leaf.clone()

    def open_tokens(self, name: str, table: Tensor | None, vectors: Tensor, positions: Tensor, kind: Kind) -> Tensor:
        """Make rows of the vectors of tokens; those of position -1, which the model adds, are the table's."""
        own = positions >= 0
        if bool(own.all()):
            return self._open_weights(kind, name, vectors.detach(), positions)
        added = vectors.detach().masked_fill(own[..., None], 0.0)
        if table is not None:
            self.mark(added, *self.origin(table))
        return self._open_weights(kind, name, vectors.detach() - added, positions) + self.constant(added)

    def _open_weights(self, kind: Kind, name: str, vectors: Tensor, positions: Tensor) -> Tensor:
        leaf = torch.ones_like(vectors.real[..., :1]).requires_grad_()
        self.rows.append(Row(kind, name, leaf, positions))
        carried = vectors * leaf
        self._token_weights[carried] = leaf, carried._version
        return carried

    def token_weights(self, value: Tensor) -> Tensor | None:
        """Return the weights, shape (…, 1), that are a factor of tokens' vectors; None for any other tensor."""
        weights, version = self._token_weights.get(value, (None, 0))
        return weights if value._version == version else None

    def move(self, value: Tensor, how: Callable[[Tensor], Tensor]) -> Tensor:
        """Return a value with its entries moved; if it is one of tokens' vectors, what it returns is one too."""
        moved, weights = how(value), self.token_weights(value)
        if weights is not None:
            self._token_weights[moved] = how(weights), moved._version
        return moved

    def summand(self, origin: Origin, value: Tensor, shape: Sequence[int]) -> Tensor:
        """Make a row of a value that is repeated along leading axes, without repeating it in memory.

        What is returned may be added to value, and must not be changed in place.
        """
        if value.is_complex():
            return self._open_origin(origin, value.expand(shape))
        leaf = without_repeats(value.detach()).clone().expand(shape).requires_grad_()
        self.rows.append(Row(origin.kind, origin.name, leaf, held=origin.held))
        return leaf

    def constant(self, value: Tensor) -> Tensor:
        """Make a row of a constant that is added to value; zeros need none."""
        if not holds_numbers(value) or not bool(value.count_nonzero()):
            return value
        return self._open_origin(self.origin(value), value)

    def _open_origin(self, origin: Origin, value: Tensor) -> Tensor:
        return self.open(origin.kind, origin.name, value, held=origin.held)

    def call_constants(self, places: Iterable[int]) -> None:
        """Call some rows constants."""
        for place in places:
            self.rows[place] = replace(self.rows[place], kind="constant", name=CONSTANTS, held=-1)

    @cached_property
    def tables(self) -> frozenset[str]:
        """The names of the model's tables of vectors."""
        return frozenset(name for kind, name, _ in map(self.origin, self._tables) if kind == "bias")

    def mark(self, results: object, kind: Kind, name: str, held: int = -1) -> None:
        """Remember where tensors that carry no value come from."""
        for tensor in operands([results]):
            self._origins[tensor] = Origin(kind, name, held)

    def mark_numbers(self, numbers: Tensor) -> None:
        """Remember the numbers of an argument that is no row: what a parameter makes of them is no bias."""
        self.mark(numbers, *_OF_ARGUMENTS)

    def mark_answers(self, answers: Tensor) -> None:
        """Remember an argument of zeros and ones that is no row: what it keeps of a parameter is a bias."""
        self.mark(answers, *_OF_ANSWERS)

    def origin(self, value: Tensor) -> Origin:
        """Say what a tensor without value is: a parameter, a held result, or a constant of the code."""
        if value in self._origins:
            found: Origin = self._origins[value]
            return found
        if value.layout != torch.strided:
            return _OF_THE_CODE
        place = bisect_right(self._places, (value.data_ptr(), math.inf)) - 1
        if place >= 0 and self._places[place][0] <= value.data_ptr() < self._places[place][1]:
            return Origin("bias", self._places[place][2])
        return _OF_THE_CODE

    def inherit(self, results: object, sources: Iterable[Tensor]) -> None:
        """Give results the origin of the first of their sources that has one; computed ids come before all others.

        Held integers come next: they pick rows, as the likeliest class does, also of a table that stands before them.
        So does any held result beside a table: it may be one-hot, or weigh the rows.
        Numbers of an argument come before parameters. Tables come before other parameters, which may scale their
        vectors, and before integers of an argument, which may be ids.
        """
        found = [(source, self.origin(source)) for source in sources]
        origins = [origin for _, origin in found if origin.kind not in ("constant", "argument", "answer")]
        arguments = [source for source, origin in found if origin.kind == "argument"]
        computed = next((origin for origin in origins if origin.kind == "computed"), None)
        table = next((origin for origin in origins if origin.name in self.tables), None)
        computed = computed or next(
            (origin for source, origin in found if origin.kind == "held" and (table or holds_integers(source))), None
        )
        if computed is not None or (origins and origins[0].kind != "bias"):
            self.mark(results, *(computed or origins[0]))
        elif arguments and (table is None or any(each.is_floating_point() for each in arguments)):
            for each in operands([results]):
                self.mark(each, *(_OF_ANSWERS if each.dtype == torch.bool else _OF_ARGUMENTS))
        elif origins:
            self.mark(results, *(table or origins[0]))
        elif any(origin.kind == "answer" for _, origin in found):
            self.mark(results, *_OF_ANSWERS)

    def inherit_product(self, results: object, sources: Sequence[Tensor]) -> None:
        """As ``inherit``, of a product of matrices: it reads zeros and ones as numbers, not as a mask."""
        kinds = {self.origin(each).kind for each in sources}
        if "answer" in kinds and kinds <= {"answer", "argument", "bias", "constant"}:
            self.mark(results, *_OF_ARGUMENTS)
        else:
            self.inherit(results, sources)
