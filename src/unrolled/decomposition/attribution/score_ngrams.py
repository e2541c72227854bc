"""The score and the contribution of every n-gram under a readout, by one forward sweep for each direction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.cells.batch_layout import Layout, reversal
from unrolled.decomposition.attribution.bands import by_entered, put_terms
from unrolled.decomposition.attribution.score_weight import score_weight
from unrolled.decomposition.opening.open_network import OpenedNetwork
from unrolled.decomposition.recurrences.affine_sequence import AffineSequence
from unrolled.decomposition.recurrences.composed_sequence import ComposedSequence
from unrolled.decomposition.recurrences.sweep_progress import count_steps
from unrolled.decomposition.recurrences.sweeps import (
    TermBlock,
    adjoint_sweep,
    forward_sweep,
    ngrams_by_length,
    running_sum,
)
from unrolled.linalg.quadrature import relative_error
from unrolled.model_runs.eval_mode import without_grad_and_autocast

__all__ = ["NGramScores", "score_each", "scored_blocks"]


@dataclass(frozen=True)
class NGramScores:
    """The n-gram scores of a batch, in float64 on the CPU."""

    scores: Tensor
    """rᵀ v with r the weight of the scores: a band in token order, shape (batch, directions, time, longest)."""
    contributions: Tensor
    """w_tᵀ v, the same shape."""
    tokens: Tensor
    """Contributions of all n-grams that enter at each token, of any length, shape (batch, time)."""
    initial: Tensor
    """Contribution of the initial state, Σ_t w_tᵀ A_t … A_1 s_0, shape (batch,)."""
    residual: Tensor
    """Largest relative error of the sum against the network's own state, shape (batch,)."""
    longest: int | None = None
    """Length of the longest n-gram that was scored; None for no limit."""


def scored_blocks(
    sequence: AffineSequence | ComposedSequence, weights: Tensor, longest: int | None
) -> Iterator[tuple[TermBlock, Tensor, Tensor]]:
    """Sweep forward, and multiply the terms that end at each step with the weight of the scores and with that step's.

    Args:
        sequence: The recurrence.
        weights: w_t of each readout in the order of the recurrence, shape (time, readouts, batch, state).
        longest: Length of the longest n-gram; None for no limit.

    Yields:
        The terms, and both products in float64, shape (readouts, batch, starts).
    """
    strongest = score_weight(weights)
    for block in count_steps(forward_sweep(sequence, longest)):
        both = torch.cat((strongest, weights[block.time])).transpose(0, 1)  # (batch, 2 readouts, state)
        of_score, of_weight = torch.einsum("mbs,bks->kbm", block.terms, both).double().chunk(2)
        yield block, of_score, of_weight


def _scored_lengths(sequence: AffineSequence, weights: Tensor, longest: int) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Multiply the n-grams of each length with the weight of the scores and with that of the step where they end.

    Args:
        sequence: The recurrence.
        weights: As in :func:`scored_blocks`.
        longest: Length of the longest n-gram.

    Yields:
        The length, and both products in float64, shape (readouts, batch, time - length + 1), by the step.
    """
    strongest = score_weight(weights)
    for before, terms in enumerate(count_steps(ngrams_by_length(sequence, longest), longest)):
        of_score = torch.einsum("tbs,mbs->mbt", terms, strongest)
        of_weight = torch.einsum("tbs,tmbs->mbt", terms, weights[before:])
        yield before + 1, of_score.double(), of_weight.double()


@without_grad_and_autocast()
def score_each(
    opened: OpenedNetwork,
    sequences: tuple[tuple[AffineSequence, ...], ...],
    readouts: Sequence[tuple[Tensor, ...]],
    longest: int | None,
) -> list[NGramScores]:
    """Score every n-gram of every direction under several readouts, by one sweep.

    Args:
        opened: The network's run.
        sequences: For each direction the recurrences whose terms are averaged.
        readouts: For each readout and each direction w_t in token order, shape (time, batch, state).
        longest: Length of the longest n-gram to score; None for no limit. By token all are counted.
    """
    lengths, inside, count = opened.lengths, opened.layout.inside, len(readouts)
    time, batch = opened.outputs[0].shape[:2]
    if longest is not None and longest >= time:
        longest = None
    held = time if longest is None else longest
    totals = _Totals.empty((count, batch, len(sequences), time, held), lengths.device)
    residual = totals.initial.new_zeros(batch)
    for d, members in enumerate(sequences):
        given = torch.stack([weights[d] for weights in readouts], dim=1)  # (time, readouts, batch, state)
        weight = torch.where(inside[:, None, :, None], given, torch.zeros_like(given))
        weight, own = (opened.layout.turn(each, d) for each in (weight, opened.outputs[d]))
        error = torch.zeros_like(own)
        share = 1 / len(members)
        for sequence in members:
            if longest is None:
                total = totals.add_all(d, sequence, weight, share)
            else:
                total = totals.add_up_to(longest, d, sequence, weight, share, opened.layout)
            error += share * (total[..., sequence.hidden] - own)
        relative = relative_error(error, own)
        residual = torch.maximum(residual, torch.where(inside, relative, 0.0).amax(dim=0).double())
    for band in (totals.scores, totals.contributions):
        _to_token_order(band, lengths)
        band.mul_(inside.T[:, None, :, None])
    tokens = torch.where(inside.T, by_entered(totals.contributions) if longest is None else totals.tokens, 0.0)
    return [
        NGramScores(
            totals.scores[k].cpu(),
            totals.contributions[k].cpu(),
            tokens[k].cpu(),
            totals.initial[k].cpu(),
            residual.cpu(),
            longest,
        )
        for k in range(count)
    ]


@dataclass(frozen=True)
class _Totals:
    """What the members of an expansion add up to, with readouts in front, in the order in which directions read."""

    scores: Tensor
    """Bands, shape (readouts, batch, directions, time, longest)."""
    contributions: Tensor
    """The same shape."""
    tokens: Tensor
    """In token order, shape (readouts, batch, time); zero where the bands tell."""
    initial: Tensor
    """Shape (readouts, batch)."""

    @classmethod
    def empty(cls, shape: tuple[int, int, int, int, int], device: torch.device) -> _Totals:
        """Begin at zero, with bands of a shape."""
        count, batch, _, time, _ = shape
        scores = torch.zeros(shape, dtype=torch.float64, device=device)
        return cls(
            scores, torch.zeros_like(scores), scores.new_zeros(count, batch, time), scores.new_zeros(count, batch)
        )

    def add_all(self, d: int, sequence: AffineSequence, weight: Tensor, share: float) -> Tensor:
        """Add the n-grams of all lengths of one direction; return the sum of all terms at every step."""
        total = torch.zeros_like(sequence.g)
        for block, of_score, of_weight in scored_blocks(sequence, weight, None):
            t = block.time
            put_terms(self.scores[:, :, d], t, share * of_score)
            put_terms(self.contributions[:, :, d], t, share * of_weight)
            self.initial.add_(share * (weight[t] * block.initial).sum(dim=-1).double())
            total[t] = block.terms.sum(dim=0) + block.initial
        return total

    def add_up_to(
        self, longest: int, d: int, sequence: AffineSequence, weight: Tensor, share: float, layout: Layout
    ) -> Tensor:
        """Add the n-grams up to a length, and all by token; return the sum of all terms at every step."""
        entering, of_start = adjoint_sweep(sequence, weight)  # (time, readouts, batch), (readouts, batch)
        entering = layout.turn(entering[..., None], d)[..., 0]
        self.tokens.add_(share * entering.permute(1, 2, 0).double())
        self.initial.add_(share * of_start.double())
        for length, of_score, of_weight in _scored_lengths(sequence, weight, longest):
            self.scores[:, :, d, length - 1 :, length - 1] += share * of_score
            self.contributions[:, :, d, length - 1 :, length - 1] += share * of_weight
        return running_sum(sequence)


def _to_token_order(band: Tensor, lengths: Tensor) -> None:
    """Turn the second direction, if there is one; the band has shape (readouts, batch, directions, time, longest)."""
    for backward in band.unbind(dim=2)[1:]:
        index = reversal(lengths, band.shape[3]).T[None, :, :, None]
        backward.copy_(backward.gather(2, index.expand_as(backward)))
