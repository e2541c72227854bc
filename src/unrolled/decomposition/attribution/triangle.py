"""The scores and the contributions of all n-grams of a text."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.decomposition.attribution.bands import to_matrix
from unrolled.decomposition.attribution.own_memory import OwnMemory

__all__ = ["Triangle"]


@dataclass(frozen=True, eq=False)
class Triangle(OwnMemory):
    """The two numbers of every n-gram.

    They are kept by direction, position read and length: ``score_band[d, t, k]`` belongs to the n-gram of k + 1 tokens
    that is read at token t, its last token forward and its first token backward.
    """

    score_band: Tensor
    """Shape (directions, time, longest)."""
    contribution_band: Tensor
    """Shape (directions, time, longest)."""
    starts: tuple[int, ...] = ()
    """Where further sequences begin that stand beside the first; no n-gram reaches over such a place."""
    ways: tuple[int, ...] = ()
    """The number of directions of each of these sequences; empty where there is one sequence."""

    def holds(self, d: int, start: int, stop: int) -> bool:
        """Tell whether the tokens [start, stop) are of one sequence, and one that has direction ``d``."""
        if any(start < each < stop for each in self.starts):
            return False
        return bisect_right(self.starts, start) not in self.without(d)

    def without(self, d: int) -> list[int]:
        """Return the numbers of the sequences that do not have direction ``d``, whose entries are zeros."""
        return [k for k, ways in enumerate(self.ways) if d >= ways]

    @property
    def scores(self) -> Tensor:
        """The scores by direction, position read and position entered, shape (directions, time, time).

        ``scores[d, t, i]`` belongs to the n-gram that enters at token i and is read at token t. Forward it spans
        ``[i, t + 1)`` with i <= t; backward it spans ``[t, i + 1)`` with i >= t. All other entries are zero. This takes
        the square of the text's length; the bands do not where ``max_order`` limits them.
        """
        return _matrices(self.score_band)

    @property
    def contributions(self) -> Tensor:
        """The contributions in the same form as ``scores``."""
        return _matrices(self.contribution_band)


def _matrices(bands: Tensor) -> Tensor:
    """Lay the bands of one or two directions out by position read and position entered."""
    if not len(bands):
        return bands
    return torch.stack([to_matrix(band, backward=d == 1) for d, band in enumerate(bands)])
