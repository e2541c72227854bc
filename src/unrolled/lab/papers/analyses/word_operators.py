r"""What a word does to the readout of its neighbours, at every place of a text.

In s_t = g_t + A_t s_{t-1}, with the readout w, the word at t makes of what came before it

.. math:: w^\top s_{t-1} \;\mapsto\; w^\top A_t s_{t-1}

and, when the word behind it is read, of what that word says alone

.. math:: w^\top g_{t+1} \;\mapsto\; w^\top (g_{t+1} + A_{t+1} g_t)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import torch
from torch import Tensor

from unrolled.decomposition.affine_sequence import AffineSequence
from unrolled.lab.papers.analyses.slope_interval import Slope, fit_slope
from unrolled.linalg.workspace import Workspace

__all__ = ["SIDES", "Places", "act"]

SIDES = ("before", "after")
"""What came before a word, and what comes next."""


class Places(NamedTuple):
    """Some places, each of one word."""

    words: Tensor
    """Their indices, shape (places,)."""
    met: Tensor
    """The readout of the neighbour, shape (places,)."""
    became: Tensor
    """What the word made of it, shape (places,)."""

    @classmethod
    def joined(cls, parts: Sequence[Places]) -> Self:
        """Lay places of several texts one behind the other.

        Args:
            parts: some places each.

        Returns:
            All of them.
        """
        return cls(*(torch.cat(each) for each in zip(*parts, strict=True)))

    def dealt_out(self, seed: int) -> Places:
        """Deal the words out anew among all places, which is what chance alone makes of them.

        Args:
            seed: how.

        Returns:
            The same places, each of some word.
        """
        order = torch.randperm(len(self.words), generator=torch.Generator().manual_seed(seed))
        return self._replace(words=self.words[order])

    def slopes(self, least: int) -> Mapping[int, tuple[int, Slope]]:
        """Fit a line for every word: by how much what became of its neighbours rises with what they said.

        Args:
            least: how many places a word must have.

        Returns:
            For each word how many it has, and the slope.
        """
        order = self.words.argsort(stable=True)
        words, counts = self.words[order].unique_consecutive(return_counts=True)
        sizes = counts.tolist()
        rows = zip(words.tolist(), sizes, self.met[order].split(sizes), self.became[order].split(sizes), strict=True)
        fitted = ((word, size, fit_slope(met, became)) for word, size, met, became in rows if size >= least)
        return {word: (size, slope) for word, size, slope in fitted if slope is not None}


@torch.no_grad()
def act(sequence: AffineSequence, tokens: Tensor, lengths: Tensor, readout: Tensor) -> dict[str, Places]:
    """Take down what every word of some texts does to both of its neighbours.

    Args:
        sequence: the affine recurrence of one expansion, read in the texts' order.
        tokens: the words' indices, shape (batch, time).
        lengths: of the texts, shape (batch,).
        readout: w, of the hidden output, shape (hidden,).

    Returns:
        For each of :data:`SIDES` the places that have such a neighbour.
    """
    time, batch, size = sequence.g.shape
    weight = sequence.g.new_zeros(size)
    weight[sequence.hidden] = readout
    states = torch.cat([layer.states for layer in sequence.layers], dim=-1)[:-1]
    carried, workspace = torch.zeros_like(sequence.g), Workspace()  # A_tᵀ w
    for t in range(1, time):
        sequence.apply_transpose(t, weight.expand(1, batch, size), carried[t : t + 1], workspace)
    has_both = (torch.arange(1, time)[:, None] < lengths).to(sequence.g.device)
    words = tokens.T
    alone = sequence.g[1:] @ weight
    found = {
        "before": (words[1:], states[1:] @ weight, (carried * states).sum(dim=-1)[1:]),
        "after": (words[:-1], alone, alone + (carried[1:] * sequence.g[:-1]).sum(dim=-1)),
    }
    return {side: Places(*(each[has_both] for each in rows)) for side, rows in found.items()}
