r"""Affine recurrences joined to one: along time where calls continue one another, upward where one reads another.

A **stretch** is what one call, or several calls one above the other, contribute to a sequence. Between two stretches
the state may pass a position-wise function (a **join**), and between two levels of a stretch the states do
(a **link**). The state with which a stretch began may pass the stretch by (a **bypass**), as a mask lets it. All are
linear, with their factors held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from unrolled.decomposition.recurrences.affine_sequence import AffineSequence
from unrolled.held_forward.recorded_maps import PositionMap
from unrolled.linalg.operators import Workspace

__all__ = ["ComposedSequence", "Stretch"]


@dataclass(frozen=True)
class Stretch:
    """The steps of one call, or of calls one above the other."""

    levels: tuple[AffineSequence, ...]
    """Lowest first."""
    links: tuple[tuple[tuple[int, PositionMap], ...], ...]
    """For each level: which levels below it reads, and how."""
    joins: tuple[PositionMap | None, ...]
    """For each level: what the state passes before the first step; None if it is carried on as it is."""
    bypasses: tuple[Tensor | None, ...]
    """For each level: the factor of the state with which the stretch before began, which is added to what the join
    gives, shape (batch of the stretch, state); None if it is not read."""
    rows: Tensor | None
    """Which sequences take part, shape (batch of the stretch,); None for all in order."""
    inside: Tensor | None
    """Whether each step is inside its sequence, shape (time, batch of the stretch); None if all are."""

    @property
    def time(self) -> int:
        """Number of steps."""
        return len(self.levels[0].g)

    @property
    def sizes(self) -> list[int]:
        """Size of each level's state."""
        return [level.g.shape[-1] for level in self.levels]


@dataclass(frozen=True)
class ComposedSequence:
    """s_t = g_t + A_t s_{t-1} over all stretches; the state is that of all levels, lowest first.

    Where a stretch has a bypass, the states with which the stretch began stand in front of it.
    """

    g: Tensor
    """Shape (time, batch, state), zero where a sequence has no step."""
    stretches: tuple[Stretch, ...]

    @cached_property
    def _places(self) -> list[tuple[Stretch, int]]:
        """The stretch of each step, and the step's number inside it."""
        return [(stretch, t) for stretch in self.stretches for t in range(stretch.time)]

    def with_starts(self) -> ComposedSequence:
        """Put the states with which stretches begin in front of the states, if one of them passes a stretch by."""
        if all(bypass is None for stretch in self.stretches for bypass in stretch.bypasses):
            return self
        return replace(self, g=torch.nn.functional.pad(self.g, (self.g.shape[-1], 0)))

    @property
    def initial(self) -> Tensor:
        """Zero, shape (batch, state): what initial states contribute is no n-gram."""
        return torch.zeros_like(self.g[0])

    @property
    def hidden(self) -> slice:
        """Position of the top level's hidden output in the state."""
        top = self.stretches[0].levels[-1].layers[-1].cell
        return slice(self.g.shape[-1] - top.output_size, self.g.shape[-1])

    def apply(self, time: int, block: Tensor, out: Tensor, workspace: Workspace) -> Tensor:
        """Compute A_t V for V of shape (columns, batch, state) into ``out``, which must not overlap with V."""
        stretch, t = self._places[time]
        if stretch.rows is None and stretch.inside is None:
            return self._step(stretch, t, block, out, workspace)
        part = block if stretch.rows is None else block[:, stretch.rows]
        image = self._step(stretch, t, part, torch.empty_like(part), workspace)
        if stretch.inside is not None:
            image = torch.where(stretch.inside[t][:, None], image, part)
        if stretch.rows is None:
            return out.copy_(image)
        out.copy_(block)
        out[:, stretch.rows] = image
        return out

    def _step(self, stretch: Stretch, t: int, block: Tensor, out: Tensor, workspace: Workspace) -> Tensor:
        size = sum(stretch.sizes)
        images = out[..., -size:].split(stretch.sizes, dim=-1)
        starts, new_starts = block[..., :-size], out[..., :-size]
        new_starts.copy_(starts)
        first = 0
        for place, part in enumerate(block[..., -size:].split(stretch.sizes, dim=-1)):
            before, of_level = part, slice(first, first + part.shape[-1])
            first = of_level.stop
            if t == 0:
                join, bypass = stretch.joins[place], stretch.bypasses[place]
                before = part if join is None else join.apply(part)
                before = before if bypass is None else before + bypass * starts[..., of_level]
                if starts.shape[-1]:
                    new_starts[..., of_level] = before
            below = _sum([link.at(t).apply(images[lower]) for lower, link in stretch.links[place]])
            stretch.levels[place].apply(t, before, images[place], workspace, below)
        return out


def _sum(parts: Sequence[Tensor]) -> Tensor | None:
    total: Tensor | None = None
    for part in parts:
        total = part if total is None else total + part
    return total
