"""The numbers of an argument by its own steps, where those of several enter one step of the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from unrolled.explanation.numbers.no_numbers import MIXED, MixedNumbersError
from unrolled.explanation.numbers.step_numbers import OTHER_STEPS, ArgumentNumbers, Numbers, joined_numbers
from unrolled.held_forward.linear_output import LinearOutput
from unrolled.held_forward.recorded_maps import random_weights
from unrolled.held_forward.tensor_facts.rows import Row

__all__ = ["BY_ARGUMENT", "numbers_by_argument"]

_COMPARED = 8
"""How many steps of a sequence are compared."""

BY_ARGUMENT = (
    "numbers of several steps enter one step of the network: features are shown by the steps of the argument, with "
    "what they contribute by all steps, and the rest of a step holds what numbers of other steps contribute there"
)


def numbers_by_argument(
    linear: LinearOutput, row: Row, contributions: Tensor, place: int, read: Tensor, lengths: Sequence[int]
) -> list[Numbers]:
    """Show the numbers of a single argument by its own steps, where those of several enter one step of the network."""
    axes = _axes(linear, place, lengths)
    if axes is None or not _differ_most_along(axes, row.leaf, read):
        raise MixedNumbersError(MIXED)
    parts = (row.leaf.detach(), contributions)
    found = []
    for b in range(len(lengths)):
        values, scores = (_by_axes(each, axes, b, lengths) for each in parts)
        found.append(
            replace(
                joined_numbers([ArgumentNumbers(row.name, values, scores, first=row.first)]),
                rest_of=OTHER_STEPS,
                notes=(BY_ARGUMENT,),
            )
        )
    return found


def _differ_most_along(axes: tuple[int | None, int], leaf: Tensor, read: Tensor) -> bool:
    """Tell whether steps read different entries along the axis of steps, more so than along any other axis."""
    # else the sizes fit by chance, or the argument describes the sequence and no step of it
    if len(read) < 2:
        return True
    weights = random_weights(read[0], seed=1)
    several = sorted({k * (len(read) - 1) // (_COMPARED - 1) for k in range(_COMPARED)})
    found = [
        torch.autograd.grad((read[t] * weights).sum(), leaf, retain_graph=True, allow_unused=True)[0] for t in several
    ]
    sizes = torch.stack([torch.zeros_like(leaf) if each is None else each.abs() for each in found])

    def difference(axis: int) -> float:
        along = sizes.movedim(axis + 1, 1).flatten(2).sum(dim=2)
        shares = along / along.sum(dim=1, keepdim=True).clamp_min(torch.finfo(along.dtype).tiny)
        return float((shares - shares.mean(dim=0)).abs().sum())

    others = [difference(axis) for axis in range(leaf.dim()) if axis not in axes]
    return difference(axes[1]) > max([1e-6, *others])


def _axes(linear: LinearOutput, place: int, lengths: Sequence[int]) -> tuple[int | None, int] | None:
    """Find the axes that count examples (None for one example) and steps; None unless exactly one pair fits."""
    shape, batch, time = linear.leaves[place].shape, len(lengths), max(lengths)
    steps = [axis for axis, size in enumerate(shape) if size == time]
    if batch == 1:
        return (None, steps[0]) if len(steps) == 1 else None
    served = linear.examples(place)
    if served is None:
        return None
    numbers = torch.arange(batch, device=served.device)
    examples = [axis for axis, size in enumerate(shape) if size == batch]
    counting = [a for a in examples if bool(((served.movedim(a, -1) == numbers) | (served.movedim(a, -1) < 0)).all())]
    fits = [(a, t) for a in counting for t in steps if a != t]
    return fits[0] if len(fits) == 1 else None


def _by_axes(entries: Tensor, axes: tuple[int | None, int], example: int, lengths: Sequence[int]) -> Tensor:
    """Return the entries of one example, shape (time, features)."""
    a, t = axes
    own = entries.movedim(t, 0) if a is None else entries.movedim((a, t), (0, 1))[example]
    return own.reshape(len(own), -1)[: lengths[example]]
