"""Which arguments of a model were made rows, and which of these arguments and their numbers an output reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from unrolled.explanation.sources import Sources
from unrolled.held_forward.tensor_facts.rows import Row

__all__ = [
    "INPUTS",
    "arguments_at",
    "opened_arguments",
    "read_arguments",
    "unread_by_all",
    "unread_numbers",
    "weighed_gradients",
]

INPUTS = ("token", "category", "feature")
"""The kinds of rows by which an output reads an argument. Integers that are used as numbers are not among them: beside
other value they are masks or counts."""


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


def unread_by_all(found: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Tell which numbers none of several runs reads."""
    known = [name for name in found[0] if all(name in each for each in found)]
    return {name: torch.stack([each[name] for each in found]).all(dim=0) for name in known}


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


def arguments_at(numbers: Tensor, sources: Sources) -> tuple[str, ...]:
    """Return the arguments of some entries, by the numbers of these."""
    return tuple(
        name
        for name, (first, shape) in sources.entries.items()
        if bool(((numbers >= first) & (numbers < first + shape.numel())).any())
    )


def weighed_gradients(output: Tensor, rows: Sequence[Row]) -> Sequence[Tensor | None]:
    """Differentiate an output by rows; the weights of its numbers differ, since the sum of a softmax is a constant."""
    weights = torch.linspace(1.0, 2.0, output.numel(), device=output.device)
    total = (output.reshape(-1) * weights.to(output.dtype)).sum()
    if not total.requires_grad:
        return (None,) * len(rows)
    return torch.autograd.grad(total, [row.leaf for row in rows], allow_unused=True)
