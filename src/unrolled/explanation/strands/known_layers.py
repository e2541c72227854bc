"""Layers that an earlier run of the same model has expanded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from unrolled.cells.base import LayerRun
from unrolled.decomposition.recurrences.affine_sequence import AffineSequence

__all__ = ["KnownLayers"]


class KnownLayers:
    """The layers of every call and direction: a run that computes the same states takes the operators over."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], tuple[AffineSequence, Tensor]] = {}

    def expanded(
        self,
        place: tuple[int, int],
        runs: Sequence[LayerRun],
        origin: Tensor,
        expand: Callable[[Sequence[LayerRun], Tensor], AffineSequence],
    ) -> AffineSequence:
        """Return the layers of a run with the operators of an earlier one if all numbers are the same, else expand it.

        Args:
            place: The number of the call, and the direction.
            runs: The layers, lowest first.
            origin: Where the line of the lowest layer begins.
            expand: Expands runs from an origin.
        """
        if place in self._found:
            known, begun = self._found[place]
            if torch.equal(begun, origin) and _same(known.layers, runs):
                return replace(known, layers=tuple(runs))
        self._found[place] = found = expand(runs, origin), origin
        return found[0]


def _same(runs: Sequence[LayerRun], others: Sequence[LayerRun]) -> bool:
    """Whether layers read the same and give the same, number by number."""
    return len(runs) == len(others) and all(
        torch.equal(one.inputs, other.inputs)
        and torch.equal(one.initial, other.initial)
        and torch.equal(one.image, other.image)
        for one, other in zip(runs, others, strict=True)
    )
