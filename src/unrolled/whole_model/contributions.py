"""From the rows of a held forward to the contributions of tokens, features, biases and initial states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from unrolled.explanation.arguments_read import (
    INPUTS,
    arguments_at,
    opened_arguments,
    read_arguments,
    unread_by_all,
    unread_numbers,
)
from unrolled.explanation.examples import refuse_no_tokens
from unrolled.explanation.sources import Sources
from unrolled.held_forward.held_only import HeldOnlyError
from unrolled.held_forward.linear_output import LinearOutput
from unrolled.held_forward.tensor_facts.rows import Row
from unrolled.whole_model.argument_rows import ArgumentRows, RowPart

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
    padding: dict[str, frozenset[int]] = field(default_factory=dict)
    """Of a text that is read by tables with an id of padding, these ids."""
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
            unread_numbers=unread_by_all([each.unread_numbers for each in found]),
            by_quadrature=any(each.by_quadrature for each in found),
        )


def collect(output: Tensor, rows: Sequence[Row], sources: Sources) -> Contributions:
    """Differentiate the output by all rows, and add up the contributions.

    Raises:
        HeldOnlyError: If the output depends on no argument by any operation that carries value.
        ShapeError: If that is so since an argument holds no tokens.
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
    for positions, padding in sources.mode.vectors.padding:
        for name in arguments_at(positions, sources):
            found.padding[name] = found.padding.get(name, frozenset()) | {padding}
    if turning := sources.mode.positions.turning:
        found.turning = arguments_at(torch.cat(turning), sources)
    return found


def _refuse_held_only(linear: LinearOutput, rows: Sequence[Row], sources: Sources) -> None:
    """Refuse an output to which no argument has a way by operations that carry value."""
    inputs = any(row.kind in INPUTS for row in rows)
    if not inputs and sources.unread:
        raise HeldOnlyError(sources.unread[0])
    carrying = INPUTS if inputs else ("number",)
    if linear.reads_held_only((place for place, row in enumerate(rows) if row.kind in carrying), rows):
        refuse_no_tokens(shape for _, shape in sources.entries.values())
        raise HeldOnlyError(_nothing_reaches(sources))


def _add_arguments(found: Contributions, linear: LinearOutput, rows: Sequence[Row], sources: Sources) -> None:
    """Add up the contributions of each argument's entries, and those of a submodule's output."""
    reaching = [place for place, gradient in enumerate(linear.gradients) if gradient is not None]
    numbers = {rows[place].name: place for place in reaching if rows[place].kind == "feature"}
    for name, place in numbers.items():
        if name not in sources.entries:  # the output of a submodule
            whole = ArgumentRows(linear, rows[place].leaf.shape, [RowPart(place)]).by_example()
            found.features[name], found.axes[name] = whole.values, whole.axis
    for name, (first, shape) in sources.entries.items():
        parts = [RowPart(numbers[name])] if name in numbers else []
        for place in reaching:
            positions = rows[place].positions
            if positions is not None:
                part = RowPart.of_tokens(place, positions, first, shape.numel())
                parts += [part] if part.targets is not None and len(part.targets) else []
        if parts:
            own = ArgumentRows(linear, shape, parts).by_example()
            found.axes[name] = own.axis
            found.shared |= own.values.dim() > len(shape)
            tokens = name not in numbers and any(rows[part.place].kind in ("token", "category") for part in parts)
            (found.texts if tokens else found.features)[name] = own.values
            if own.order is not None and name not in numbers:
                found.orders[name] = own.order


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
    if not sources.copied and not sources.entries:
        return (
            "no argument of the model holds a tensor, and ids or numbers that it makes tensors of cannot be followed; "
            "pass a model that takes these tensors, or name a submodule with of="
        )
    return (
        "the output does not depend on the model's arguments by any operation that carries value, so there is "
        "nothing to account for; check the target, or name a submodule with of="
    )
