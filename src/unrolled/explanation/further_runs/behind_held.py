"""Arguments, and single numbers, that reach an output only through held results: they have no part of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.explanation.sources import Sources
from unrolled.held_forward.differentiated import Differentiated
from unrolled.held_forward.tensor_facts.rows import Row, Rows

__all__ = [
    "INPUTS",
    "BehindHeld",
    "arguments_at",
    "arguments_named",
    "behind_held",
    "opened_arguments",
    "read_arguments",
    "unread_numbers",
    "weighed_gradients",
]

INPUTS = ("token", "category", "feature")
"""The kinds of rows by which an output reads an argument. Integers that are used as numbers are not among them: beside
other value they are masks or counts."""


@dataclass(frozen=True)
class BehindHeld:
    """What an output depends on only through results that are held."""

    arguments: tuple[str, ...] = ()
    numbers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Of arguments whose other numbers are read: how many numbers are not, and how many they have, without zeros."""

    def notes(self) -> tuple[str, ...]:
        """Say that these have no part of an output that depends on them."""
        notes = []
        if self.arguments:
            notes.append(_note(arguments_named(self.arguments), one=len(self.arguments) == 1))
        if self.numbers:
            count, size = map(sum, zip(*self.numbers.values(), strict=True))
            what = f"{count:,} of the {size:,} numbers other than zero in {arguments_named(list(self.numbers))}"
            notes.append(_note(what, one=count == 1))
        return tuple(notes)


def _note(what: str, one: bool) -> str:
    return (
        f"{what} {'enters' if one else 'enter'} only through factors that are held, so the output is credited to what "
        f"these factors multiply; change {'it' if one else 'them'} and run the model to see the effect"
    )


def arguments_named(names: Sequence[str]) -> str:
    """Name arguments in a sentence."""
    return f"argument{'s' if len(names) > 1 else ''} {', '.join(names)}"


def opened_arguments(rows: Sequence[Row], sources: Sources) -> frozenset[str]:
    """Return the arguments that rows were made of."""
    return _arguments(((row, row.positions) for row in rows), sources)


def read_arguments(rows: Sequence[Row], gradients: Sequence[Tensor | None], sources: Sources) -> frozenset[str]:
    """Return the arguments that some rows were made of whose gradients are not zero."""
    read: list[tuple[Row, Tensor | None]] = []
    for row, gradient in zip(rows, gradients, strict=True):
        if gradient is not None and bool(gradient.any()):
            read.append((row, None if row.positions is None else row.positions[gradient[..., 0] != 0]))
    return _arguments(read, sources)


def unread_numbers(rows: Sequence[Row], gradients: Sequence[Tensor | None], sources: Sources) -> dict[str, Tensor]:
    """Tell which numbers of an argument the output does not read, where it reads others of it.

    Zeros are left out: they contribute nothing, read or not, and most of them are padding.
    """
    found = {}
    for row, gradient in zip(rows, gradients, strict=True):
        of_numbers = row.kind == "feature" and row.name in sources.entries and row.name not in sources.masks
        if of_numbers and gradient is not None and bool(gradient.any()):
            unread = (gradient == 0) & (row.leaf.detach() != 0)
            if bool(unread.any()):
                found[row.name] = unread
    return found


def _arguments(rows: Iterable[tuple[Row, Tensor | None]], sources: Sources) -> frozenset[str]:
    """Return the arguments of rows, by their names, or by the numbers of their entries."""
    found: set[str] = set()
    for row, numbers in rows:
        if row.kind not in INPUTS:
            continue
        if numbers is None:
            found.add(row.name)
        else:
            found.update(arguments_at(numbers, sources))
    return frozenset(found)


def behind_held(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    select: Callable[[Any], Tensor],
    suspects: Collection[str],
    unread: Mapping[str, Tensor],
    still_unread: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]],
) -> BehindHeld:
    """Return those of some arguments, and of the numbers of others, that the output depends on but does not read.

    The gradients of a run as it is tell. They tell nothing where that run cannot be differentiated.

    Args:
        model: The model, each of whose runs starts from the same state.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        select: From what it returns to one number for each example.
        suspects: The names of the arguments of whose rows the account reads none.
        unread: Which numbers of other arguments it does not read.
        still_unread: Keeps those that have no part, from those whose parts cancel.
    """
    if not suspects and not unread:
        return BehindHeld()
    mode = Differentiated(Rows(model))
    sources = Sources(mode, opens=True)
    given, named = sources.open_call(args, kwargs)
    try:
        with torch.enable_grad(), mode:
            output = select(model(*given, **named))
        rows = mode.rows.rows
        gradients = weighed_gradients(output, rows)
    except Exception:  # a model may fail in any way where its operations are differentiated
        return BehindHeld()
    read = read_arguments(rows, gradients, sources)
    depends = _numbers_read(rows, gradients, unread)
    return BehindHeld(
        tuple(name for name in sources.entries if name in read and name in suspects),
        _counts(rows, still_unread(depends)) if depends else {},
    )


def weighed_gradients(output: Tensor, rows: Sequence[Row]) -> Sequence[Tensor | None]:
    """Differentiate an output by rows; the weights of its numbers differ, since the sum of a softmax is a constant."""
    weights = torch.linspace(1.0, 2.0, output.numel(), device=output.device)
    total = (output.reshape(-1) * weights.to(output.dtype)).sum()
    if not total.requires_grad:
        return (None,) * len(rows)
    return torch.autograd.grad(total, [row.leaf for row in rows], allow_unused=True)


def _numbers_read(
    rows: Sequence[Row], gradients: Sequence[Tensor | None], unread: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Tell which numbers an account does not read of each argument that have gradients of more than rounding."""
    found = {}
    for row, gradient in zip(rows, gradients, strict=True):
        if row.kind == "feature" and row.name in unread and gradient is not None:
            least = torch.finfo(gradient.dtype).eps * gradient.abs().max()
            numbers = unread[row.name] & (gradient.abs() > least)
            if bool(numbers.any()):
                found[row.name] = numbers
    return found


def _counts(rows: Sequence[Row], numbers: Mapping[str, Tensor]) -> dict[str, tuple[int, int]]:
    """Count some numbers of each argument, and all of them, without zeros: see :func:`unread_numbers`."""
    sizes = {row.name: int(row.leaf.count_nonzero()) for row in rows if row.kind == "feature"}
    return {name: (int(each.sum()), sizes[name]) for name, each in numbers.items() if bool(each.any())}


def arguments_at(numbers: Tensor, sources: Sources) -> tuple[str, ...]:
    """Return the arguments of some entries, by the numbers of these."""
    return tuple(
        name
        for name, (first, shape) in sources.entries.items()
        if bool(((numbers >= first) & (numbers < first + shape.numel())).any())
    )
