r"""How far the sum of an expansion's n-gram terms is from the network's own state, the further a sentence has gone.

.. math:: \frac{\|h_t - c_{1:t}\|}{\|h_t\|}, \qquad c_{1:t} = \sum_{i \le t} v_{i:t}

The error of one step is carried on by all that follow: this is what a user sees who opens a whole sentence. Numbers
are float64, so that rounding is far below whatever an expansion leaves out.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import cast

import torch
from torch import Tensor, nn

from unrolled.decomposition.decomposition import decompose
from unrolled.decomposition.open_network import Network
from unrolled.lab.data.batching import EncodedTexts
from unrolled.lab.models.classifier import Classifier

__all__ = ["ErrorByLength", "accumulated_errors", "by_length"]

_TOGETHER = 32


@dataclass(frozen=True)
class ErrorByLength:
    """Relative errors over the sentences that are long enough; element t is of the state after t + 1 words."""

    median: tuple[float | None, ...]
    """None where it is past all bounds."""
    ninetieth: tuple[float | None, ...]
    """The 90th percentile."""


@torch.no_grad()
def accumulated_errors(model: Classifier, texts: EncodedTexts, expansion: str, longest: int) -> Tensor:
    """Measure the error of the sum after every word of some texts.

    Args:
        model: a classifier with a recurrent network.
        texts: what it reads.
        expansion: as ``decompose`` takes it.
        longest: how many words of a text count.

    Returns:
        Relative errors, shape (texts, longest), float64; NaN behind a text's end.
    """
    embedding, encoder = (copy.deepcopy(part).double() for part in (model.embedding, model.encoder))
    found = torch.full((len(texts), longest), torch.nan, dtype=torch.float64)
    for which in texts.plan(_TOGETHER):
        batch = texts.select(which)
        vectors = cast("nn.Embedding", embedding)(batch.tokens[:, :longest])
        lengths = batch.lengths.clamp(max=longest)
        errors = decompose(cast("Network", encoder), vectors, lengths, expansion=expansion).residual()
        inside = torch.arange(errors.shape[1]) < lengths[:, None]
        # what has overflowed is infinitely wrong, and no gap
        errors = torch.where(errors.isfinite(), errors, torch.inf)
        found[which, : errors.shape[1]] = torch.where(inside, errors, torch.nan)
    return found


def by_length(errors: Tensor, fewest: int) -> ErrorByLength:
    """Sum errors up over texts, length by length.

    Args:
        errors: as :func:`accumulated_errors` gives them.
        fewest: how many texts there must be of a length; the lengths end where there are fewer.

    Returns:
        Medians and 90th percentiles, to four digits.
    """
    counts = (~errors.isnan()).sum(dim=0)
    enough = int((counts >= fewest).long().cumprod(dim=0).sum())
    columns = [column[~column.isnan()].sort().values for column in errors[:, :enough].T]
    return ErrorByLength(*(_at(columns, share) for share in (0.5, 0.9)))


def _at(columns: Sequence[Tensor], share: float) -> tuple[float | None, ...]:
    """Give the value below which that share lies: one that occurs, so that infinite ones do no harm."""
    values = (float(column[min(int(share * len(column)), len(column) - 1)]) for column in columns)
    return tuple(float(f"{value:.4g}") if isfinite(value) else None for value in values)
