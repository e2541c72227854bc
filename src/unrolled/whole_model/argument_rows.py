"""The rows that were made of one argument, and what its entries contributed to each example by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from unrolled.held_forward.linear_output import LinearOutput

__all__ = ["ArgumentRows", "RowPart"]


@dataclass(frozen=True)
class RowPart:
    """A row, and where its values belong in the argument; by default the row is the argument."""

    place: int
    inside: Tensor | None = None
    """Which vectors of the row are those of this argument."""
    targets: Tensor | None = None
    """The flat index in the argument of each of them."""

    @classmethod
    def of_tokens(cls, place: int, positions: Tensor, first: int, count: int) -> RowPart:
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
        """Tell whether the row has its vectors in the order of the examples along an axis of the argument."""
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


class ByExample(NamedTuple):
    """The contributions of the entries of one argument."""

    values: Tensor
    axis: int | None
    """Which counts examples; None for a batch of one."""
    order: Tensor | None = None
    """For each example of the output, the index of its text, where the model changed the order."""


@dataclass(frozen=True)
class ArgumentRows:
    """One argument, and the rows that were made of it."""

    linear: LinearOutput
    shape: torch.Size
    parts: Sequence[RowPart]

    def by_example(self) -> ByExample:
        """Add up what the rows contributed, and find the axis that counts examples.

        An argument that several examples share gets such an axis in front.
        """
        linear, batch = self.linear, self.linear.batch
        total = linear.output.detach().new_zeros(self.shape)
        for part in self.parts:
            part.add(linear.contributions(part.place), total)
        axes = [axis for axis, size in enumerate(self.shape) if size == batch]
        if batch == 1:
            return ByExample(total, None)
        if len(axes) == 1 and linear.axis_counts_examples and all(part.in_order(axes[0], total) for part in self.parts):
            return ByExample(total, axes[0])
        examples = self._examples()
        if examples is None:
            each = total.new_zeros(batch, *self.shape)
            for part in self.parts:
                part.add(linear.by_each_example(part.place), each)
            return ByExample(each, 0)
        for axis in axes:
            order = _order(examples.movedim(axis, 0).reshape(batch, -1))
            if order is not None:
                if torch.equal(order, torch.arange(batch, device=order.device)):
                    return ByExample(total, axis)
                return ByExample(total.index_select(axis, order), axis, order)
        apart = torch.zeros(batch, *self.shape, dtype=total.dtype, device=total.device)
        return ByExample(apart.scatter_(0, examples.clamp_min(0)[None], total[None]), 0)

    def _examples(self) -> Tensor | None:
        """Return the example that each entry of the argument serves, or None if one serves several."""
        numbers = torch.full(self.shape, -1, dtype=torch.int64, device=self.linear.output.device)
        lowest = torch.full_like(numbers, -self.linear.batch)
        for part in self.parts:
            found = self.linear.examples(part.place)
            if found is None:
                return None
            part.number(found, numbers)
            part.number(torch.where(found < 0, -self.linear.batch, -found), lowest)
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
