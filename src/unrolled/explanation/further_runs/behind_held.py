"""Arguments, and single numbers, that reach an output only through held results: they have no part of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from unrolled.explanation.arguments_read import read_arguments, weighed_gradients
from unrolled.explanation.further_runs.not_read import HeldReads
from unrolled.explanation.sources import Sources
from unrolled.held_forward.differentiated import Differentiated
from unrolled.held_forward.tensor_facts.rows import Row, Rows

__all__ = ["BehindHeld", "arguments_named", "behind_held"]


@dataclass(frozen=True)
class BehindHeld:
    """What an output depends on only through results that are held."""

    arguments: tuple[str, ...] = ()
    numbers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By argument of which other numbers are read: how many are not, and how many it has. Zeros do not count."""

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


def behind_held(reads: HeldReads, suspects: Collection[str], unread: Mapping[str, Tensor]) -> BehindHeld:
    """Return those of some arguments, and of the numbers of others, that the output depends on but does not read.

    The gradients of a run as it is tell. They tell nothing where that run cannot be differentiated.

    Args:
        reads: Held runs of the model, all from one state; they tell whether parts of a number cancel.
        suspects: The names of the arguments of whose rows the account reads none.
        unread: Which numbers of other arguments it does not read.
    """
    if not suspects and not unread:
        return BehindHeld()
    mode = Differentiated(Rows(reads.model))
    sources = Sources(mode)
    given, named = sources.open_call(reads.args, reads.kwargs)
    try:
        with torch.enable_grad(), mode:
            output = reads.select(reads.model(*given, **named))
        rows = mode.rows.rows
        gradients = weighed_gradients(output, rows)
    except Exception:  # a model may fail in any way where its operations are differentiated
        return BehindHeld()
    read = read_arguments(rows, gradients, sources)
    depends = _numbers_read(rows, gradients, unread)
    return BehindHeld(
        tuple(name for name in sources.entries if name in read and name in suspects),
        _counts(rows, reads.still_unread(depends)) if depends else {},
    )


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
    """Count some numbers of each argument, and all of them, without zeros, as ``unread_numbers`` does."""
    sizes = {row.name: int(row.leaf.count_nonzero()) for row in rows if row.kind == "feature"}
    return {name: (int(each.sum()), sizes[name]) for name, each in numbers.items() if bool(each.any())}
