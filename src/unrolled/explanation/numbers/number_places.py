"""Where the numbers of a model's arguments stand: at which step of which example, and as which feature."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from unrolled.explanation.even_row import even_row
from unrolled.explanation.numbers.no_numbers import MIXED, MixedNumbersError, NotByStepsError
from unrolled.explanation.numbers.numbers_by_argument import numbers_by_argument
from unrolled.explanation.numbers.step_numbers import (
    BIASES,
    HELD_AND_BIASES,
    OTHER_NUMBERS,
    ArgumentNumbers,
    Numbers,
    joined_numbers,
)
from unrolled.held_forward.linear_output import LinearOutput
from unrolled.held_forward.recorded_maps import random_weights
from unrolled.held_forward.tensor_facts.rows import Row

__all__ = ["numbers_of_steps"]


def numbers_of_steps(
    rows: Sequence[Row], leaves: Sequence[Tensor], total: Tensor, read: Tensor, inside: Tensor, order: Sequence[int]
) -> list[Numbers]:
    """Find the numbers of every example that one call, or one line of calls, reads.

    Args:
        rows: The sources of value.
        leaves: The other leaves of the recorded graph.
        total: What the sequences contribute through what they read, linear in that, shape (batch,).
        read: What they read at each step, with its graph, shape (time, batch, input).
        inside: Whether each step belongs to each sequence, shape (time, batch).
        order: The sequence that each example reads.

    Raises:
        MixedNumbersError: If numbers of several steps enter one step.
        NotByStepsError: If no argument has a number for each step.
    """
    order = list(order)
    # other sequences may read the same numbers, as windows do
    together = _Sequences(rows, leaves, total[order], read[:, order], inside[:, order])
    found = together.by_step() or together.apart()
    if found is not None:
        return found
    prefix = bool((together.inside[1:] <= together.inside[:-1]).all())
    read_alone = together.used or [place for place in together.zeros if together.linear.reads([place])]
    if len(read_alone) != 1 or not prefix:
        if not read_alone:
            raise NotByStepsError(_holds(together.rows, together.linear))
        raise MixedNumbersError(MIXED)
    (place,), lengths = read_alone, together.inside.sum(dim=0).tolist()
    return numbers_by_argument(together.linear, rows[place], together.parts[place], place, together.read, lengths)


@dataclass(frozen=True)
class _Sequences:
    """What one call, or one line of calls, reads: a sequence for each example."""

    rows: Sequence[Row]
    leaves: Sequence[Tensor]
    total: Tensor
    read: Tensor
    inside: Tensor

    @cached_property
    def linear(self) -> LinearOutput:
        """What they contribute, by the sources of value and the other leaves."""
        return LinearOutput(self.total, [*(row.leaf for row in self.rows), *self.leaves], keeps=True)

    @cached_property
    def parts(self) -> dict[int, Tensor]:
        """What the numbers of each argument contribute, by the place of its row."""
        return {
            place: _with_categories(self.linear, self.rows, place)
            for place, row in enumerate(self.rows)
            if row.kind == "feature" and self.linear.gradients[place] is not None
        }

    @cached_property
    def used(self) -> list[int]:
        """The arguments whose numbers contribute."""
        return [place for place, part in self.parts.items() if bool(part.any())]

    @property
    def zeros(self) -> list[int]:
        """The arguments that contribute nothing since their numbers are zero where they are read."""
        return [place for place in self.parts if place not in self.used and self._is_zero_where_read(place)]

    def apart(self) -> list[Numbers] | None:
        """Find the numbers of fewer sequences at a time, as overlapping windows need; None if a sequence mixes them."""
        every = list(range(len(self.total)))
        if not self.used or len(every) < 2 or self._of(every[:1]).by_step() is None:
            return None
        known = self._halved(every)
        return [known[number] for number in every] if known else None

    def _of(self, some: list[int]) -> _Sequences:
        return _Sequences(self.rows, self.leaves, self.total[some], self.read[:, some], self.inside[:, some])

    def _halved(self, some: list[int]) -> dict[int, Numbers]:
        """Find the numbers of both halves of some sequences, in which every other one overlaps less; {} for none."""
        known: dict[int, Numbers] = {}
        for half in (some[::2], some[1::2]):
            found = self._of(half).by_step()
            own = dict(zip(half, found, strict=True)) if found else self._halved(half) if len(half) > 1 else {}
            if not own:
                return {}
            known |= own
        return known

    def _is_zero_where_read(self, place: int) -> bool:
        """Whether an argument that contributes nothing does so since its numbers are zero, whatever reads them."""
        gradient = self.linear.gradients[place]
        return gradient is not None and (bool(gradient.any()) or not bool(self.rows[place].leaf.any()))

    def by_step(self) -> list[Numbers] | None:
        """Find the numbers that each step reads; None if no argument has them."""
        rows, linear, inside, used = self.rows, self.linear, self.inside, self.used
        read = _weighed(self.read, inside).reshape(-1)
        candidates = sorted([*used, *self.zeros])
        positions = LinearOutput(read, [rows[place].leaf for place in candidates], keeps=True)
        found: list[list[ArgumentNumbers]] = [[] for _ in self.total]
        scattered: set[str] = set()
        placed, left_out = [], False
        for number, place in enumerate(candidates):
            where = None if positions.gradients[number] is None else positions.examples(number, of_zeros=True)
            places = None if where is None else _by_position(_filled(where), inside)
            if places is not None:
                placed.append(place)
                others = self.parts[place].reshape(-1).clone()
                for own, index in zip(found, places, strict=True):
                    own.append(_part_of(rows[place], self.parts[place], index))
                    scattered |= {rows[place].name} if _is_scattered(index, rows[place].leaf.shape) else set()
                    others[index[index >= 0]] = 0.0
                left_out = left_out or bool(others.any())
        if not placed or (used and set(used).isdisjoint(placed)):  # zeros alone do not say what the steps read
            return None
        whole = set(used) <= set(placed) and not left_out and not _reads_integers(rows, linear)
        known = HELD_AND_BIASES if _holds(rows, linear) else BIASES
        rest_of = known if whole else OTHER_NUMBERS
        others_left = [rows[place] for place in used if rows[place].name not in {each.name for each in found[0]}]
        series = (row for row in others_left if row.leaf.dim() > 2 and len(inside) in row.leaf.shape)
        unnamed = tuple(row.name for row in series)
        return [
            replace(
                joined_numbers(own, not others_left),
                rest_of=rest_of,
                notes=_notes(others_left, own, scattered),
                unnamed=unnamed,
            )
            for own in _of_own_series(found)
        ]


def _weighed(read: Tensor, inside: Tensor) -> Tensor:
    """Make one number of what each position reads, in which no two of its numbers cancel; shape (time, batch)."""
    return (read * random_weights(read) * inside[..., None].to(read)).sum(dim=-1)


def _filled(where: Tensor) -> Tensor:
    """Give entries that are not read, as behind a relu, the position that all read ones along an axis share."""
    for axis in range(where.dim() - 1, -1, -1):
        highest = where.amax(dim=axis, keepdim=True).expand(where.shape)
        if bool(((where == highest) | (where < 0)).all()):
            return highest
    return where


def _by_position(where: Tensor, inside: Tensor) -> list[Tensor] | None:
    """Return the entries that each position of each example reads, -1 for none; None if they are not equally many."""
    # each of the tensors has the shape (time, features)
    flat, (time, batch) = where.reshape(-1).cpu(), inside.shape
    entries = (flat >= 0).nonzero()[:, 0]
    counts = flat[entries].bincount(minlength=time * batch)
    reads = counts > 0
    if len(counts[reads].unique()) != 1:
        return None
    count = int(counts.max())
    table = torch.full((time * batch, count), -1, device="cpu")
    table[reads] = entries[flat[entries].argsort(stable=True)].view(-1, count)
    whole = table.view(time, batch, count)
    return [_continued(whole[inside[:, row].cpu(), row], where.shape) for row in range(batch)]


def _continued(index: Tensor, shape: torch.Size) -> Tensor:
    """Give steps without an entry, as behind a relu, those that continue an even row of entries along one axis."""
    known = index[:, 0] >= 0
    even = None if bool(known.all()) else even_row(index)
    if even is None:
        return index
    first = known.int().argmax()
    axes = zip(
        *(torch.unravel_index(each, shape) for each in (even.clamp(0, shape.numel() - 1), even[first])), strict=True
    )
    moved = torch.stack([(one != other).any(dim=1) for one, other in axes])  # by axis and step
    along = moved[:, known].any(dim=1)  # behind the end of a row begins that of another example
    fits = (even >= 0).all(dim=1) & (even < shape.numel()).all(dim=1) & ~moved[~along].any(dim=0)
    return torch.where(fits[:, None] & (along.sum() <= 1), even, index)


def _holds(rows: Sequence[Row], linear: LinearOutput) -> bool:
    """Whether results that are held, or computed of several numbers, contribute."""
    places = [place for place, row in enumerate(rows) if row.kind in ("held", "computed", "mask")]
    return any(linear.gradients[place] is not None and bool(linear.contributions(place).any()) for place in places)


def _reads_integers(rows: Sequence[Row], linear: LinearOutput) -> bool:
    """Whether integers of an argument contribute as numbers, other than those made of an argument of numbers."""
    arguments = [row for row in rows if row.first >= 0]
    for place, row in enumerate(rows):
        if row.kind == "number" and row.positions is not None and linear.gradients[place] is not None:
            own = torch.stack([row.positions < 0, *(each.holds(row.positions) for each in arguments)]).any(dim=0)
            if bool(linear.contributions(place)[~own].any()):
                return True
    return False


def _with_categories(linear: LinearOutput, rows: Sequence[Row], place: int) -> Tensor:
    """Add up what the numbers of an argument contribute, as they are and by what tables have at them."""
    argument, total = rows[place], linear.contributions(place).detach().clone(memory_format=torch.contiguous_format)
    for other, row in enumerate(rows):
        if row.positions is not None and linear.gradients[other] is not None:
            own = argument.holds(row.positions)
            of_row = linear.contributions(other).detach().sum(dim=-1)[own].to(total)
            total.view(-1).index_add_(0, row.positions[own] - argument.first, of_row)
    return total


def _part_of(row: Row, contributions: Tensor, index: Tensor) -> ArgumentNumbers:
    """Take entries of an argument, and what they contribute."""
    given = (row.leaf.detach(), contributions)
    values, scores = (each.reshape(-1).cpu()[index.clamp_min(0)].masked_fill(index < 0, 0.0) for each in given)
    empty, steps = int((index[:, 0] < 0).sum()), _steps(index, row.leaf.shape)
    return ArgumentNumbers(row.name, values, scores, empty, row.first, steps)


def _steps(index: Tensor, shape: torch.Size) -> tuple[int, ...] | None:
    """Return the step of an argument at which each position reads it; None if not exactly one axis tells them apart."""
    if len(index) < 2 or bool((index < 0).any()):
        return None
    found = [at[:, 0].tolist() for at in torch.unravel_index(index, shape) if bool((at == at[:, :1]).all())]
    apart = [each for each in found if len(set(each)) == len(each)]
    return tuple(apart[0]) if len(apart) == 1 else None


def _is_scattered(index: Tensor, shape: torch.Size) -> bool:
    """Tell whether the k-th numbers of the steps stand in no common column of an argument that has as many columns."""
    known = index[(index >= 0).all(dim=1)]
    places = torch.unravel_index(known, shape)
    columns = [place for place, size in zip(places, shape, strict=True) if size == index.shape[1]]
    return len(known) > 0 and len(columns) > 0 and not any(bool((place == place[0]).all()) for place in columns)


def _of_own_series(found: list[list[ArgumentNumbers]]) -> list[list[ArgumentNumbers]]:
    """Leave out the series of other examples, where each example has one of its own, as in a list of series."""
    readers = [sum(not each.reads_nothing for each in of_argument) for of_argument in zip(*found, strict=True)]
    of_one = [count == 1 for count in readers]
    if len(found) == 1 or not all(
        any(own and not each.reads_nothing for own, each in zip(of_one, of_example, strict=True))
        for of_example in found
    ):
        return found
    return [
        [each for own, each in zip(of_one, of_example, strict=True) if not (own and each.reads_nothing)]
        for of_example in found
    ]


def _notes(others: Sequence[Row], found: Sequence[ArgumentNumbers], scattered: Collection[str]) -> tuple[str, ...]:
    """Say which numbers are of no step, at which steps zeros stand for others, and which features are no columns."""
    of_no_step = (
        f"numbers of argument {', '.join(row.name for row in others)} enter several steps; what they contribute is in "
        "the rest of these steps, with the biases; unrolled.account shows it by number"
    )
    empty = [
        f"{each.empty} of the steps read no number of argument {each.name}; zeros are shown there"
        for each in found
        if each.empty
    ]
    no_columns = [
        f"the steps read the numbers of argument {name} in another arrangement than its own, as by a view in place of "
        "a transpose: the first feature is the first number that a step reads, and no column"
        for name in sorted(scattered)
    ]
    return (*([of_no_step] if others else []), *empty, *no_columns)
