"""All measures of one attribution method on one network: deletion, insertion, stability, sums and cost.

- *remainder*: how far words and rest are from the margin, relative to it; the median over texts.
- *cancellation*: Σ|a| / |Σa| over the words; the median over texts.
- *stability*: the fifth of the words that the model misses least, by occlusion, is replaced by ``<unk>``; Pearson's
  correlation of the other words' attributions before and after, the mean over texts. A text whose attributions are all
  equal before or after has no correlation and is left out.
- *cost*: processor time, in units of one forward and one backward pass over the same texts.

Of an even number of texts, the median is torch's: the lower of the two in the middle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from unrolled.lab.papers.analyses.attribution_methods.explained_texts import Explained
from unrolled.lab.papers.analyses.attribution_methods.token_attributions import Attributor, attributor
from unrolled.lab.papers.analyses.faithfulness.deletion import Deletion, delete
from unrolled.lab.papers.analyses.faithfulness.processor_time import least_time, timed

__all__ = ["measure_method", "time_gradient"]

_MEASURES = ("comprehensiveness", "sufficiency", "blank_score", "insertion")
_MISSED_LEAST = 0.2
"""The share of words that is replaced for the stability."""


Batches = Sequence[tuple[Tensor, Explained]]
"""The indices of the texts of each batch, and what is explained of them."""


def time_gradient(batches: Batches) -> float:
    """Measure the seconds of processor time of a forward and a backward pass over all texts, the least of three."""
    gradient = attributor("gradient x input")
    return least_time(lambda: [gradient(texts) for _, texts in batches])


def measure_method(name: str, batches: Batches, gradient: float, stable: int) -> dict[str, Any]:
    """Measure a method on batches of texts.

    Args:
        name: Name of the method, see :func:`attributor`.
        batches: The texts that are explained.
        gradient: Seconds of a gradient, from :func:`time_gradient`.
        stable: About how many texts are explained again for the stability; with 0 it is not measured.

    Returns:
        In JSON types; ``scores`` holds each text's score of deletion in thousandths.

    Raises:
        UsageError: If the method does not exist for the network.
    """
    method = attributor(name)
    method(batches[0][1].some(0, 1))  # what only the first call does is no part of the cost
    count, seconds = sum(len(which) for which, _ in batches), 0.0
    deletions: list[Deletion] = []
    remainders: list[Tensor] = []
    cancellations: list[Tensor] = []
    correlations: list[Tensor] = []
    for which, texts in batches:
        found, passed = timed(partial(method, texts))
        seconds += passed
        deletions.append(delete(texts, found.values))
        total, margins = found.values.sum(dim=1), texts.margins().double()
        cancellations.append(found.values.abs().sum(dim=1) / total.abs())
        if found.rest is not None:
            remainders.append((margins - total - found.rest).abs() / margins.abs())
        if again := min(len(which), math.ceil(stable * len(which) / count)):
            correlations.append(_stability(method, texts.some(0, again)))
    means = {each: torch.cat([getattr(part, each) for part in deletions]).mean() for each in _MEASURES}
    scores = torch.empty(count, dtype=torch.float64)
    scores[torch.cat([which for which, _ in batches])] = torch.cat([part.score for part in deletions])
    return {
        "scores": (1000 * scores).round().int().tolist(),
        **{each: round(float(value), 4) for each, value in means.items()},
        "remainder": _short(torch.cat(remainders).median()) if remainders else None,
        "cancellation": _short(torch.cat(cancellations).median()),
        "stability": _short(torch.cat(correlations).nanmean()) if correlations else None,
        "cost": float(f"{seconds / gradient:.3g}"),
    }


def _short(value: Tensor) -> float | None:
    """Keep four digits; None for what is not finite, as where all attributions are 0."""
    return float(f"{value:.4g}") if value.isfinite() else None


def _stability(method: Attributor, texts: Explained) -> Tensor:
    """Correlate the attributions of the words that stay, before and after the least needed are blanked."""
    missed = attributor("occlusion by <unk>")(texts).values.abs().masked_fill(~texts.inside, torch.inf)
    count = (_MISSED_LEAST * texts.lengths).long()
    gone = missed.argsort(dim=1).argsort(dim=1) < count[:, None]
    before, after = (method(each).values for each in (texts, texts.blanked(gone)))
    kept = texts.inside & ~gone
    rows = [
        torch.corrcoef(torch.stack((one[k], two[k])))[0, 1] for one, two, k in zip(before, after, kept, strict=True)
    ]
    return torch.stack(rows)
