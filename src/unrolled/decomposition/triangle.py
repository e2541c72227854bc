"""Every n-gram's score and contribution under a readout, in one forward sweep a direction."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.cells.batch_layout import reversal
from unrolled.decomposition.affine_sequence import AffineSequence
from unrolled.decomposition.eval_mode import plain_arithmetic
from unrolled.decomposition.open_network import Opened
from unrolled.decomposition.sweeps import blocks
from unrolled.linalg.relative_error import relative_error

__all__ = ["Reading", "read"]


@dataclass(frozen=True)
class Reading:
    """What a batch's n-grams say under a readout. All in float64 on the CPU."""

    scores: Tensor
    """rᵀ v with r = Σ_t w_t, shape (batch, directions, time read, time entered)."""
    contributions: Tensor
    """w_tᵀ v, the same shape."""
    initial: Tensor
    """Σ_t w_tᵀ A_t … A_1 s_0, shape (batch,)."""
    residual: Tensor
    """The largest relative error of the sum against the network's own state, shape (batch,)."""


@plain_arithmetic()
def read(opened: Opened, sequences: tuple[tuple[AffineSequence, ...], ...], weights: tuple[Tensor, ...]) -> Reading:
    """Read every n-gram of every direction.

    Args:
        opened: the network as it ran.
        sequences: for each direction the affine recurrences whose terms are averaged.
        weights: w_t for each direction, in token order, shape (time, batch, state).

    Returns:
        The reading.
    """
    lengths = opened.lengths
    time, batch = opened.outputs[0].shape[:2]
    index = reversal(lengths, time)
    inside = torch.arange(time, device=lengths.device)[:, None] < lengths
    scores = torch.zeros(batch, len(sequences), time, time, dtype=torch.float64, device=lengths.device)
    contributions = torch.zeros_like(scores)
    initial = torch.zeros(batch, dtype=torch.float64, device=lengths.device)
    residual = torch.zeros_like(initial)
    for d, (members, given) in enumerate(zip(sequences, weights, strict=True)):
        kept = torch.where(inside[..., None], given, torch.zeros_like(given))
        share = 1 / len(members)
        own = opened.outputs[d]
        if d == 1:
            kept = kept.gather(0, index[..., None].expand(kept.shape))
            own = own.gather(0, index[..., None].expand(own.shape))
        whole = kept.sum(dim=0)
        wrong = torch.zeros_like(own)
        for sequence in members:
            for block in blocks(sequence):
                t = block.time
                both = torch.stack((whole, kept[t])).transpose(0, 1)  # (batch, 2, state)
                values = torch.einsum("mbs,bks->kbm", block.terms, both).double()
                scores[:, d, t, block.first : t + 1] += share * values[0]
                contributions[:, d, t, block.first : t + 1] += share * values[1]
                initial += share * (kept[t] * block.initial).sum(dim=-1).double()
                total = block.terms.sum(dim=0) + block.initial
                wrong[t] += share * (total[..., sequence.hidden] - own[t])
        error = relative_error(wrong, own)
        residual = torch.maximum(residual, torch.where(inside, error, 0.0).amax(dim=0).double())
    for matrix in (scores, contributions):
        if len(sequences) == 2:
            rows, columns = index.T[:, :, None], index.T[:, None, :]
            matrix[:, 1] = (
                matrix[:, 1].gather(1, rows.expand(batch, time, time)).gather(2, columns.expand(batch, time, time))
            )
        mask = inside.T[:, None, :, None] & inside.T[:, None, None, :]
        matrix.mul_(mask)
    return Reading(scores.cpu(), contributions.cpu(), initial.cpu(), residual.cpu())
