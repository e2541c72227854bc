"""From the rows of a held forward to the contributions of tokens, features, biases and initial states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from unrolled.explanation.further_runs.behind_held import (
    INPUTS,
    arguments_at,
    opened_arguments,
    read_arguments,
    unread_numbers,
)
from unrolled.explanation.sources import Sources
from unrolled.held_forward.held_only import HeldOnlyError
from unrolled.held_forward.linear_output import LinearOutput
from unrolled.held_forward.tensor_facts.rows import Row

__all__ = ["Contributions", "collect"]


@dataclass
class Contributions:
    """The contributions of one run, by source."""

    texts: dict[str, Tensor] = field(default_factory=dict)
    """Of tokens, by argument."""
    features: dict[str, Tensor] = field(default_factory=dict)
    """Of numbers, by argument."""
    axes: dict[str, int | None] = field(default_factory=dict)
    """Which axis of each of these counts examples; None for a batch of one."""
    orders: dict[str, Tensor] = field(default_factory=dict)
    """For each example of the output, the index of its text in an argument, where the model changed the order."""
    shared: bool = False
    """Whether several examples of the output read one entry of an argument."""
    initial: Tensor | float = 0.0
    biases: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, Tensor] = field(default_factory=dict)
    passed: Tensor | float = 0.0
    """Σ|c| over every number that contributed, those of one bias or argument apart, shape (batch,)."""
    coarsest: torch.dtype = torch.float64
    """The type of least precision in which value was computed."""
    recurrent: bool = True
    """Whether a recurrent network ran."""
    by_quadrature: bool = False
    """Whether a quadrature expanded one."""
    held: frozenset[int] = frozenset()
    """Numbers of the held results that the output reads by themselves."""
    of_run: tuple[str, ...] = ()
    """What the target is, and what the run's recurrent networks leave out."""
    python_tables: tuple[str, ...] = ()
    """The tables that are read at Python's numbers, after ids became such."""
    turning: tuple[str, ...] = ()
    """The arguments of zeros and ones that are added to the ids of other tokens."""
    unread: frozenset[str] = frozenset()
    """The arguments that are no masks, and of whose rows the output reads none."""
    unread_numbers: Mapping[str, Tensor] = field(default_factory=dict)
    """Of the other arguments of numbers, which numbers the output does not read."""
    computed: tuple[str, ...] = ()
    """Of the constants, those that the model makes of ids which cannot be followed to single tokens."""

    @staticmethod
    def mean(found: Sequence[Contributions]) -> Contributions:
        """Average the contributions of several runs, one for each member of an expansion."""
        if len(found) == 1:
            return found[0]

        def each_mean(parts: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
            names = dict.fromkeys(name for each in parts for name in each)
            known = {name: [each[name] for each in parts if name in each] for name in names}
            return {name: torch.stack(each).sum(dim=0) / len(found) for name, each in known.items()}

        return replace(
            found[0],
            texts=each_mean([each.texts for each in found]),
            features=each_mean([each.features for each in found]),
            initial=sum(each.initial for each in found) / len(found),
            biases=each_mean([each.biases for each in found]),
            constants=each_mean([each.constants for each in found]),
            passed=sum(each.passed for each in found) / len(found),
            unread=frozenset.intersection(*(each.unread for each in found)),
            unread_numbers=_unread_by_all([each.unread_numbers for each in found]),
            by_quadrature=any(each.by_quadrature for each in found),
        )


def collect(output: Tensor, rows: Sequence[Row], sources: Sources) -> Contributions:
    """Differentiate the output by all rows, and add up the contributions.

    Raises:
        HeldOnlyError: If the output depends on no argument by any operation that carries value.
    """
    linear = LinearOutput(output, [row.leaf for row in rows])
    _refuse_held_only(linear, rows, sources)
    found = Contributions()
    _add_arguments(found, linear, rows, sources)
    _add_constants(found, linear, rows)
    found.passed = linear.sizes
    found.held = linear.held_by_themselves(rows)
    opened, read = opened_arguments(rows, sources), read_arguments(rows, linear.gradients, sources)
    contributing = {name for name, part in (*found.texts.items(), *found.features.items()) if bool(part.any())}
    found.unread = frozenset(sources.entries).intersection(opened) - sources.masks - read - contributing
    found.unread_numbers = {
        name: numbers & (part == 0).all(dim=0) if (part := found.features[name]).dim() > numbers.dim() else numbers
        for name, numbers in unread_numbers(rows, linear.gradients, sources).items()
    }  # what several examples read may have parts that cancel
    found.python_tables = tuple(sources.mode.vectors.python_ids.tables)
    if turning := sources.mode.positions.turning:
        found.turning = arguments_at(torch.cat(turning), sources)
    return found


def _unread_by_all(found: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Tell which numbers none of several runs reads."""
    known = [name for name in found[0] if all(name in each for each in found)]
    return {name: torch.stack([each[name] for each in found]).all(dim=0) for name in known}


def _refuse_held_only(linear: LinearOutput, rows: Sequence[Row], sources: Sources) -> None:
    """Refuse an output to which no argument has a way by operations that carry value."""
    inputs = any(row.kind in INPUTS for row in rows)
    if not inputs and sources.unread:
        raise HeldOnlyError(sources.unread[0])
    carrying = INPUTS if inputs else ("number",)
    if linear.reads_held_only((place for place, row in enumerate(rows) if row.kind in carrying), rows):
        raise HeldOnlyError(_nothing_reaches(sources))


def _add_arguments(found: Contributions, linear: LinearOutput, rows: Sequence[Row], sources: Sources) -> None:
    """Add up the contributions of each argument's entries, and those of a submodule's output."""
    reaching = [place for place, gradient in enumerate(linear.gradients) if gradient is not None]
    numbers = {rows[place].name: place for place in reaching if rows[place].kind == "feature"}
    for name, place in numbers.items():
        if name not in sources.entries:  # the output of a submodule
            part = _Argument(linear, rows[place].leaf.shape, [_Slot(place)])
            found.features[name], found.axes[name], _ = part.by_example()
    for name, (first, shape) in sources.entries.items():
        slots = [_Slot(numbers[name])] if name in numbers else []
        for place in reaching:
            positions = rows[place].positions
            if positions is not None:
                slot = _Slot.of_tokens(place, positions, first, shape.numel())
                slots += [slot] if slot.targets is not None and len(slot.targets) else []
        if slots:
            part = _Argument(linear, shape, slots)
            values, found.axes[name], order = part.by_example()
            found.shared |= values.dim() > len(shape)
            tokens = name not in numbers and any(rows[slot.place].kind in ("token", "category") for slot in slots)
            (found.texts if tokens else found.features)[name] = values
            if order is not None and name not in numbers:
                found.orders[name] = order


def _add_constants(found: Contributions, linear: LinearOutput, rows: Sequence[Row]) -> None:
    """Add up the contributions of biases, initial states, constants and held results."""
    for row, parts in zip(rows, linear.split(), strict=True):
        inputs = row.positions is not None or row.kind == "feature"
        if parts is None or inputs or (row.kind != "bias" and not parts.any()):
            continue
        if row.kind == "initial":
            found.initial = found.initial + parts
        else:
            named = found.biases if row.kind == "bias" else found.constants
            named[row.name] = named.get(row.name, 0.0) + parts
        if row.kind == "computed":
            found.computed = tuple(dict.fromkeys((*found.computed, row.name)))


def _nothing_reaches(sources: Sources) -> str:
    """Say why there is nothing to account for."""
    computed = sources.mode.vectors.computed
    if computed.read:
        return (
            f"the output depends on the model's arguments at most by ids or numbers that {', '.join(computed.read)} "
            "made of tokens' ids, which cannot be followed to single tokens; pass what the model computes as its "
            "argument, or name a submodule with of="
        )
    if tables := sources.mode.vectors.python_ids.tables:
        return (
            f"the output depends on the model's arguments at most by {', '.join(tables)} at ids that the model made "
            "numbers of Python, which cannot be followed to tokens; index the table with a tensor"
        )
    if computed.of_masks:
        return (
            "the output does not depend on the model's arguments by more than masks, which are held; check the target, "
            "pass booleans, and integers that are all 0 or 1, as floating-point numbers if they are features, or name "
            "a submodule with of="
        )
    if sources.opens and not sources.entries:
        return (
            "no argument of the model holds a tensor, and ids or numbers that it makes tensors of cannot be followed; "
            "pass a model that takes these tensors, or name a submodule with of="
        )
    return (
        "the output does not depend on the model's arguments by any operation that carries value, so there is "
        "nothing to account for; check the target, or name a submodule with of="
    )


@dataclass(frozen=True)
class _Slot:
    """A row, and where its values belong in the argument; by default the row is the argument."""

    place: int
    inside: Tensor | None = None
    """Which vectors of the row are those of this argument."""
    targets: Tensor | None = None
    """The flat index in the argument of each of them."""

    @classmethod
    def of_tokens(cls, place: int, positions: Tensor, first: int, count: int) -> _Slot:
        """Find the vectors whose tokens are numbered ``first`` to ``first + count``."""
        inside = (positions >= first) & (positions < first + count)
        return cls(place, inside, positions[inside] - first)

    def add(self, values: Tensor, to: Tensor) -> None:
        """Add a row's values, shape (…, *row), to a tensor in the argument's shape."""
        if self.inside is None or self.targets is None:
            to += values
        else:
            lead = values.shape[: values.dim() - self.inside.dim() - 1]
            of_vectors = values.sum(dim=-1)[..., self.inside].to(to.dtype)
            to.view(*lead, -1).index_add_(len(lead), self.targets, of_vectors)

    def in_order(self, axis: int, argument: Tensor) -> bool:
        """Whether the row has its vectors in the order in which the examples stand along an axis of the argument."""
        if self.inside is None or self.targets is None:
            return True
        batch = argument.shape[axis]
        along = [place for place, size in enumerate(self.inside.shape) if size == batch]
        if len(along) != 1:
            return False
        numbers = torch.arange(batch, device=argument.device)
        of_row = numbers.view(-1, *[1] * (self.inside.dim() - along[0] - 1)).expand(self.inside.shape)[self.inside]
        of_argument = numbers.view(-1, *[1] * (argument.dim() - axis - 1)).expand(argument.shape)
        return torch.equal(of_row, of_argument.reshape(-1)[self.targets])

    def number(self, examples: Tensor, into: Tensor) -> None:
        """Note the example that each entry serves, where it serves one."""
        if self.inside is None or self.targets is None:
            into.copy_(torch.maximum(into, examples))
        else:
            of_vectors = examples.amax(dim=-1)[self.inside]
            into.view(-1).scatter_reduce_(0, self.targets, of_vectors, "amax")


@dataclass(frozen=True)
class _Argument:
    """One argument, and the rows that were made of it."""

    linear: LinearOutput
    shape: torch.Size
    slots: Sequence[_Slot]

    def by_example(self) -> tuple[Tensor, int | None, Tensor | None]:
        """Return the contributions, the axis that counts examples, and their order where the model changed it.

        An argument that several examples share gets an axis of examples in front.
        """
        linear, batch = self.linear, self.linear.batch
        total = linear.output.detach().new_zeros(self.shape)
        for slot in self.slots:
            slot.add(linear.contributions(slot.place), total)
        axes = [axis for axis, size in enumerate(self.shape) if size == batch]
        if batch == 1:
            return total, None, None
        if len(axes) == 1 and linear.axis_counts_examples and all(slot.in_order(axes[0], total) for slot in self.slots):
            return total, axes[0], None
        examples = self._examples()
        if examples is None:
            each = total.new_zeros(batch, *self.shape)
            for slot in self.slots:
                slot.add(linear.by_each_example(slot.place), each)
            return each, 0, None
        for axis in axes:
            order = _order(examples.movedim(axis, 0).reshape(batch, -1))
            if order is not None:
                straight = torch.equal(order, torch.arange(batch, device=order.device))
                return (total, axis, None) if straight else (total.index_select(axis, order), axis, order)
        apart = torch.zeros(batch, *self.shape, dtype=total.dtype, device=total.device)
        return apart.scatter_(0, examples.clamp_min(0)[None], total[None]), 0, None

    def _examples(self) -> Tensor | None:
        """Return the example that each entry of the argument serves, or None if one serves several."""
        numbers = torch.full(self.shape, -1, dtype=torch.int64, device=self.linear.output.device)
        lowest = torch.full_like(numbers, -self.linear.batch)
        for slot in self.slots:
            found = self.linear.examples(slot.place)
            if found is None:
                return None
            slot.number(found, numbers)
            slot.number(torch.where(found < 0, -self.linear.batch, -found), lowest)
        mixed = (numbers >= 0) & (lowest > -self.linear.batch) & (lowest != -numbers)
        return None if bool(mixed.any()) else numbers


def _order(examples: Tensor) -> Tensor | None:
    """Return for each example the index of its row; None if a row serves several examples.

    Args:
        examples: The examples that the entries of each row serve, shape (batch, entries); -1 for none.
    """
    rows = torch.arange(len(examples), device=examples.device)
    if not examples.numel():
        return rows
    highest = examples.amax(dim=1)
    same = (examples == highest[:, None]) | (examples < 0)
    known = highest >= 0
    if not bool(same.all()) or len(highest[known].unique()) < int(known.sum()):
        return None
    if torch.equal(highest[known], rows[known]):
        return rows
    order = torch.full_like(rows, -1)
    order[highest[known]] = rows[known]
    order[order < 0] = rows[~known]
    return order
