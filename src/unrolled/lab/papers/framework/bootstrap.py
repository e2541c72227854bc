"""Correlations with bootstrap intervals, where whole clusters of examples are drawn.

Phrases of one sentence overlap, so they are not independent; whole sentences are. Each resample draws as many sentences
as there are, with replacement, and the interval reaches from the 2.5th to the 97.5th percentile of the resamples. The
same seed draws the same sentences, so two scores of the same phrases can be compared resample by resample.
``scipy.stats.bootstrap`` draws single examples, neither clusters nor the same resamples for two scores.

Source:
    Efron and Tibshirani (1993), An Introduction to the Bootstrap; the percentile interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.errors import ShapeError

__all__ = ["Correlation", "correlate", "interval", "mean_over_groups"]

_DRAWN_AT_ONCE = 50


@dataclass(frozen=True)
class Correlation:
    """A coefficient, and its value in each resample."""

    value: float
    draws: tuple[float, ...]

    @property
    def interval(self) -> tuple[float, float]:
        """From the 2.5th to the 97.5th percentile."""
        return interval(self.draws)


def interval(draws: Sequence[float]) -> tuple[float, float]:
    """Return the 2.5th and the 97.5th percentile."""
    ends = torch.tensor(draws, dtype=torch.float64).quantile(torch.tensor([0.025, 0.975], dtype=torch.float64))
    return float(ends[0]), float(ends[1])


def mean_over_groups(groups: Sequence[Tensor], *, draws: int = 2000, seed: int = 0) -> tuple[float, float, float]:
    """Average over the members of each group, then over the groups; the interval draws the members of each group anew.

    The mean of n drawn members varies less than that of n new ones, by the factor (n - 1) / n of its variance, which
    counts in groups of a few. So what is drawn is moved away from the group's mean by the root of n / (n - 1).

    Args:
        groups: The values of each group, shape (members,), of at least two members each.
        draws: Number of resamples.
        seed: Seed of the generator that draws the resamples.

    Returns:
        The mean and the ends of its 95 % interval. It speaks of new members of these groups, not of other groups.

    Raises:
        ShapeError: If a group has fewer than two members.
    """
    generator, drawn = torch.Generator().manual_seed(seed), []
    for group in groups:
        if (count := len(group)) < 2:
            raise ShapeError(f"a group has {count} members; expected two or more, or its spread is not known")
        values, chosen = group.double(), torch.randint(count, (draws, count), generator=generator)
        drawn.append(values.mean() + (values[chosen].mean(dim=1) - values.mean()) * math.sqrt(count / (count - 1)))
    ends = interval(torch.stack(drawn).mean(dim=0).tolist())
    return float(torch.stack([group.double().mean() for group in groups]).mean()), *ends


def correlate(
    scores: Tensor, labels: Tensor, clusters: Tensor, *, ranked: bool = False, draws: int = 500, seed: int = 0
) -> Correlation:
    """Correlate two rows of numbers, on all examples and in every resample of the clusters.

    Args:
        scores: Score of each example, shape (n,).
        labels: Label of each example, shape (n,).
        clusters: Number of each example's sentence, from 0, shape (n,), int64.
        ranked: Whether to correlate ranks (Spearman) instead of values (Pearson). Ties share their mean rank, found
            anew in each resample.
        draws: Number of resamples.
        seed: Seed of the generator that draws the resamples.

    Returns:
        The coefficient; 0 where one of the rows does not vary.

    Raises:
        ShapeError: If the rows are not equally long.

    Example:
        >>> import torch
        >>> rise, sentence = torch.tensor([1.0, 2.0, 4.0, 8.0]), torch.tensor([0, 0, 1, 1])
        >>> round(correlate(rise, rise.log(), sentence, ranked=True, draws=10).value, 9)
        1.0
    """
    if not scores.shape == labels.shape == clusters.shape or scores.dim() != 1:
        raise ShapeError(
            f"scores, labels and clusters have shapes {tuple(scores.shape)}, {tuple(labels.shape)} and "
            f"{tuple(clusters.shape)}; expected three rows of one length"
        )
    rows = tuple(row.double() for row in (scores, labels))
    groups = tuple(row.unique(return_inverse=True)[1] for row in rows) if ranked else None
    found = []
    for counts in _counts(int(clusters.max()) + 1, draws, seed):
        weights = counts[:, clusters]
        one, other = rows if groups is None else (_ranks(group, weights) for group in groups)
        found += _pearson(one, other, weights).tolist()
    return Correlation(found[0], tuple(found[1:]))


def _counts(clusters: int, draws: int, seed: int) -> Iterator[Tensor]:
    """Give how often each cluster is drawn, shape (draws at once, clusters): once each first, then each resample."""
    yield torch.ones(1, clusters, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    for start in range(0, draws, _DRAWN_AT_ONCE):
        size = min(_DRAWN_AT_ONCE, draws - start)
        chosen = torch.randint(clusters, (size, clusters), generator=generator)
        yield torch.zeros(size, clusters, dtype=torch.float64).scatter_add_(
            1, chosen, torch.ones(size, clusters, dtype=torch.float64)
        )


def _ranks(groups: Tensor, weights: Tensor) -> Tensor:
    """Rank values that occur as often as their weights say; equal ones, of one group, share their mean rank."""
    sizes = weights.new_zeros(len(weights), int(groups.max()) + 1).index_add_(1, groups, weights)
    return (sizes.cumsum(dim=1) - sizes / 2)[:, groups]


def _pearson(one: Tensor, other: Tensor, weights: Tensor) -> Tensor:
    """Correlate values that occur as often as their weights say, shape (draws,)."""
    total, centred, varies = weights.sum(dim=1, keepdim=True), [], []
    for row in (one, other):
        away = row - (weights * row).sum(dim=1, keepdim=True) / total
        centred.append(away)
        # what does not vary still differs from its mean by rounding
        varies.append((weights * away.square()).sum(dim=1) > 1e-24 * (weights * row.square()).sum(dim=1))
    first, second = centred
    covariance = (weights * first * second).sum(dim=1)
    sizes = [(weights * away.square()).sum(dim=1).sqrt() for away in centred]
    found = (covariance / (sizes[0] * sizes[1])).clamp(-1.0, 1.0)
    return torch.where(varies[0] & varies[1], found, 0.0)
