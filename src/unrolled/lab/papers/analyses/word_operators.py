r"""What a word does to the readout of its neighbours: regressions over all its occurrences.

In s_t = g_t + A_t s_{t-1}, with the readout w, the word at t turns the readout of what came before it into

.. math:: w^\top s_{t-1} \;\mapsto\; w^\top A_t s_{t-1}

and, when the next word is read, the readout of that word alone into

.. math:: w^\top g_{t+1} \;\mapsto\; w^\top (g_{t+1} + A_{t+1} g_t)

The slope of the second on the first is 1 where the word changes nothing, below 0 where it reverses the sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from statistics import median
from typing import NamedTuple, Self

import torch
from torch import Tensor

from unrolled.decomposition.recurrences.affine_sequence import AffineSequence
from unrolled.lab.metrics.area_under_curve import area_under_curve
from unrolled.linalg.operators import Workspace

__all__ = ["SIDES", "Occurrences", "RankedWords", "Slope", "WordSlope", "fit_slope", "neighbour_readouts"]

SIDES = ("before", "after")
"""The neighbour that a word acts on: what came before it, or the word after it."""
_NORMAL = 1.96


class Slope(NamedTuple):
    """A regression slope."""

    value: float
    half: float
    """Half the width of its 95% interval."""


def fit_slope(x: Tensor, y: Tensor) -> Slope | None:
    r"""Fit y = a + b x by least squares; the interval allows the residuals to vary with x (HC3).

    .. math::
        \mathrm{se}(b)^2 = \frac{\sum_i (x_i - \bar x)^2\, e_i^2 / (1 - l_i)^2}{\left(\sum_i (x_i - \bar x)^2\right)^2}

    with residuals e and leverages l. Returns None for fewer than three points, or where x is constant.

    Source:
        MacKinnon and White (1985), Some heteroskedasticity-consistent covariance matrix estimators.

    Example:
        >>> import torch
        >>> fit_slope(torch.tensor([0.0, 1.0, 2.0, 3.0]), torch.tensor([1.0, -1.0, -3.0, -5.0]))
        Slope(value=-2.0, half=0.0)
    """
    x, y = x.double() - x.double().mean(), y.double() - y.double().mean()
    spread = x.square().sum()
    if len(x) < 3 or not spread:
        return None
    value = (x * y).sum() / spread
    # a point that alone decides the slope has leverage 1 and residual 0
    left = (1 - 1 / len(x) - x.square() / spread).clamp(min=1e-6)
    variance = (x * (y - value * x) / left).square().sum() / spread.square()
    return Slope(float(value), _NORMAL * float(variance.sqrt()))


class Occurrences(NamedTuple):
    """Occurrences of words, each with the readout of one neighbour; all of shape (occurrences,)."""

    words: Tensor
    """Indices of the words."""
    alone: Tensor
    """The neighbour's readout without the word."""
    combined: Tensor
    """The neighbour's readout with the word."""

    @classmethod
    def joined(cls, parts: Sequence[Occurrences]) -> Self:
        """Concatenate occurrences."""
        return cls(*(torch.cat(each) for each in zip(*parts, strict=True)))

    def shuffled(self, seed: int) -> Occurrences:
        """Permute the words among the occurrences, as a control."""
        order = torch.randperm(len(self.words), generator=torch.Generator().manual_seed(seed))
        return self._replace(words=self.words[order])

    def slopes(self, least: int) -> Mapping[int, tuple[int, Slope]]:
        """Fit a slope for every word with at least ``least`` occurrences; give their number and the slope."""
        order = self.words.argsort(stable=True)
        words, counts = self.words[order].unique_consecutive(return_counts=True)
        sizes = counts.tolist()
        rows = zip(
            words.tolist(), sizes, self.alone[order].split(sizes), self.combined[order].split(sizes), strict=True
        )
        fitted = ((word, size, fit_slope(alone, combined)) for word, size, alone, combined in rows if size >= least)
        return {word: (size, slope) for word, size, slope in fitted if slope is not None}


@torch.no_grad()
def neighbour_readouts(
    sequence: AffineSequence, tokens: Tensor, lengths: Tensor, readout: Tensor
) -> dict[str, Occurrences]:
    """Collect what every word of some texts does to both of its neighbours, by :data:`SIDES`.

    ``tokens`` has the shape (batch, time), ``lengths`` (batch,), ``readout`` (hidden,).
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
    return {side: Occurrences(*(each[has_both] for each in rows)) for side, rows in found.items()}


class WordSlope(NamedTuple):
    """A word, the number of its occurrences, its slope and half the width of the slope's interval."""

    word: str
    occurrences: int
    slope: float
    half: float


class RankedWords(NamedTuple):
    """Words by their slopes, and those whose whole interval lies on one side of a bound, the strongest first."""

    words: tuple[WordSlope, ...]
    """All words, from the lowest slope to the highest."""
    reversing: tuple[WordSlope, ...]
    """Below 0."""
    amplifying: tuple[WordSlope, ...]
    """Above 1, and above the median word."""
    erasing: tuple[WordSlope, ...]
    """Nearer to 0 than half the median word."""

    @classmethod
    def of(cls, words: Iterable[WordSlope]) -> Self:
        """Rank one word or more."""
        ranked = tuple(sorted(words, key=lambda each: each.slope))
        usual = median(each.slope for each in ranked)
        near = (each for each in ranked if abs(each.slope) + each.half < abs(usual) / 2)
        return cls(
            ranked,
            tuple(each for each in ranked if each.slope + each.half < 0),
            tuple(each for each in reversed(ranked) if each.slope - each.half > max(1.0, usual)),
            tuple(sorted(near, key=lambda each: abs(each.slope) + each.half)),
        )

    def area_under_curve(self, chosen: Set[str]) -> float | None:
        """Compute how often the slope of a chosen word is below that of another; None without words of both kinds."""
        return area_under_curve([-each.slope for each in self.words], [each.word in chosen for each in self.words])
