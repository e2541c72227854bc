r"""What an expansion misses: in one step, in the sum of its n-gram terms, and in the account of a logit.

.. math:: \text{step:}\; \frac{\|h_t - \hat h_t\|}{\|h_t\|}, \quad \hat s_t = g_t + A_t s_{t-1}, \qquad
          \text{sum:}\; \frac{\|h_t - \sum_{i \le t} v_{i:t}\|}{\|h_t\|}

A step is measured from the network's own state before it, so errors of steps do not accumulate; errors of the sum do.

Source:
    Sun and Lu (2022), Implicit n-grams, appendix B.2, equation 15, for the error of a step.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from math import isfinite
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from unrolled.decomposition.decomposition import decompose
from unrolled.decomposition.opening.network_cells import Network
from unrolled.decomposition.result import Decomposition
from unrolled.errors import UsageError
from unrolled.explanation.api import explain_batch
from unrolled.lab.data.batches.base import EncodedTexts
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.training.run_folder import Run
from unrolled.linalg.operators import Workspace
from unrolled.linalg.quadrature import relative_error

__all__ = ["ErrorByLength", "error_quantiles", "largest_remainder", "step_errors", "sum_errors"]

_BATCH = 32


class ErrorByLength(NamedTuple):
    """Quantiles over the texts that are long enough; element t is for the state after t + 1 words, None if infinite."""

    median: tuple[float | None, ...]
    ninetieth: tuple[float | None, ...]
    """The 90th percentile."""


@torch.no_grad()
def step_errors(decomposition: Decomposition) -> Tensor:
    """Measure the relative error of every single step, shape (batch, time); zero at padding."""
    sequences = decomposition.sequences
    if len(sequences) != 1 or len(sequences[0]) != 1 or len(sequences[0][0].layers) != 1:
        raise UsageError("step errors need a network of one layer and one direction, and a single expansion")
    ((sequence,),) = sequences
    (layer,), workspace = sequence.layers, Workspace()
    moved = torch.empty_like(sequence.g)
    for time, state in enumerate(layer.states[:-1]):
        sequence.apply(time, state[None], moved[time][None], workspace)
    own, predicted = (each[..., sequence.hidden].transpose(0, 1) for each in (layer.image, sequence.g + moved))
    errors = relative_error(predicted - own, own)
    inside = torch.arange(errors.shape[1]) < decomposition.lengths[:, None]
    return torch.where(inside, errors, torch.zeros_like(errors))


@torch.no_grad()
def sum_errors(model: Classifier, texts: EncodedTexts, expansion: str, longest: int) -> Tensor:
    """Measure the relative error of the sum of terms after each of the first ``longest`` words.

    The network runs in float64, so that rounding is far below what an expansion misses. The result has the shape
    (texts, longest), with NaN after the end of a text.
    """
    embedding, encoder = (copy.deepcopy(part).double() for part in (model.embedding, model.encoder))
    found = torch.full((len(texts), longest), torch.nan, dtype=torch.float64)
    for which in texts.plan(_BATCH):
        batch = texts.select(which)
        vectors = cast("nn.Embedding", embedding)(batch.tokens[:, :longest])
        lengths = batch.lengths.clamp(max=longest)
        errors = decompose(cast("Network", encoder), vectors, lengths, expansion=expansion).residual()
        inside = torch.arange(errors.shape[1]) < lengths[:, None]
        errors = torch.where(errors.isfinite(), errors, torch.inf)  # an overflow is an infinite error, not a gap
        found[which, : errors.shape[1]] = torch.where(inside, errors, torch.nan)
    return found


def error_quantiles(errors: Tensor, fewest: int) -> ErrorByLength:
    """Take quantiles over texts at every length that at least ``fewest`` texts reach, to four digits."""
    counts = (~errors.isnan()).sum(dim=0)
    enough = int((counts >= fewest).long().cumprod(dim=0).sum())
    columns = [column[~column.isnan()].sort().values for column in errors[:, :enough].T]
    return ErrorByLength(*(_quantile(columns, share) for share in (0.5, 0.9)))


def _quantile(columns: Sequence[Tensor], share: float) -> tuple[float | None, ...]:
    """Take a value that occurs (the median of an even number is the upper one), because some values are infinite."""
    values = (float(column[min(int(share * len(column)), len(column) - 1)]) for column in columns)
    return tuple(float(f"{value:.4g}") if isfinite(value) else None for value in values)


def largest_remainder(run: Run, texts: Sequence[Any]) -> float:
    """Explain a classifier's logit of class 1 for some texts; give the largest remainder as a share of the logit."""
    split, shares = run.task.encode(texts), list[float]()
    for which in split.plan(len(texts)):
        batch = split.select(which)
        found = explain_batch(
            run.model, batch.tokens, batch.lengths, target=1, expansion="path", readout="ray", every_class=False
        )
        shares += [abs(e.ledger.remainder / e.ledger.logit) for e in found]
    return max(shares)
