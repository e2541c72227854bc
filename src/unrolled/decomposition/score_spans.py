r"""The account of a deep bidirectional network under readouts: by token, and by the span that a path has seen.

A path enters a layer that is read at one step k, having seen a span around k, and is read at a step t from there on. So
what it contributes is an inner product: of what enters at k, by span, and of w_t carried back from t to k, a covector.
The layers below are swept forward for the former; no vector of the layer that is read is carried by span.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.cells.batch_layout import reversal
from unrolled.decomposition.affine_sequence import AffineSequence
from unrolled.decomposition.bidirectional_stack import (
    BidirectionalStack,
    reverse_blocks,
    token_contributions,
    total_states,
)
from unrolled.decomposition.eval_mode import without_grad_and_autocast
from unrolled.decomposition.open_network import OpenedNetwork
from unrolled.decomposition.score_ngrams import NGramScores
from unrolled.decomposition.score_weight import score_weight
from unrolled.decomposition.stack_sweep import Received, SpanColumns, entering, receivers
from unrolled.linalg.operators import Workspace
from unrolled.linalg.quadrature import relative_error

__all__ = ["score_spans"]


@without_grad_and_autocast()
def score_spans(
    opened: OpenedNetwork,
    stacks: Sequence[BidirectionalStack],
    readouts: Sequence[tuple[Tensor, ...]],
    longest: int,
) -> list[NGramScores]:
    """Score every span of at most ``longest`` tokens under several readouts, and account for all paths by token.

    Args:
        opened: The network's run.
        stacks: The expanded networks whose terms are averaged.
        readouts: For each readout and each direction w_t in token order, shape (time, batch, states of all layers).
        longest: Length of the longest span; by token all are counted.
    """
    layout, share, count = opened.layout, 1 / len(stacks), len(readouts)
    time, batch = readouts[0][0].shape[:2]
    inside = layout.inside
    weights = _by_layer(stacks[0], inside, readouts)
    columns = SpanColumns(longest, time)
    found = torch.zeros(2, count, batch, 2, time, columns.longest, dtype=torch.float64, device=inside.device)
    tokens, initial = found.new_zeros(count, batch, time), found.new_zeros(count, batch)
    errors = [torch.zeros_like(own) for own in opened.outputs]
    index = reversal(layout.lengths, time).T[:, :, None]
    for stack in stacks:
        of_tokens, of_initial = token_contributions(stack, weights)
        tokens += share * of_tokens.transpose(1, 2).double()
        initial += share * of_initial.double()
        for ways, received, read in zip(stack.levels, receivers(stack, columns), weights, strict=True):
            for way, weight in enumerate(read):
                if weight is None:
                    continue
                readout = _Readout.of(reverse_blocks(layout, weight) if way else weight)
                spans = _spans(ways[way], columns, received[way], readout).permute(0, 3, 4, 1, 2)
                found[:, :, :, way] += share * (spans.gather(3, index.expand(spans.shape)) if way else spans)
        for error, own, total in zip(errors, opened.outputs, total_states(stack), strict=True):
            error += share * (total - own)
    relative = [relative_error(error, own) for error, own in zip(errors, opened.outputs, strict=True)]
    residual = torch.where(inside, torch.stack(relative), 0.0).amax(dim=(0, 1)).double().cpu()
    found *= inside.T[:, None, :, None]
    tokens = torch.where(inside.T, tokens, 0.0)
    return [
        NGramScores(found[0, k].cpu(), found[1, k].cpu(), tokens[k].cpu(), initial[k].cpu(), residual, longest)
        for k in range(count)
    ]


def _by_layer(
    stack: BidirectionalStack, inside: Tensor, readouts: Sequence[tuple[Tensor, ...]]
) -> list[list[Tensor | None]]:
    """Split weights by layer and direction, shape (readouts, time, batch, state); None for a layer that is not read."""
    by_way = []
    for way, given in enumerate(zip(*readouts, strict=True)):
        whole = torch.stack(given)
        whole = torch.where(inside[..., None], whole, torch.zeros_like(whole))
        by_way.append(whole.split([ways[way].g.shape[-1] for ways in stack.levels], dim=-1))
    return [[part if bool(part.any()) else None for part in ways] for ways in zip(*by_way, strict=True)]


@dataclass(frozen=True)
class _Readout:
    """The covectors of one direction of a layer, in the order in which it reads."""

    score: Tensor
    """r, shape (readouts, batch, state)."""
    weights: Tensor
    """w_t, shape (time, readouts, batch, state)."""
    shares: Tensor | None
    """w_t / r, shape (time, readouts, batch), where every w_t is a multiple of r; None where they are not."""

    @classmethod
    def of(cls, weights: Tensor) -> _Readout:
        """Make it from w_t, shape (readouts, time, batch, state)."""
        weights = weights.transpose(0, 1)
        score = score_weight(weights)
        size = (score * score).sum(dim=-1)
        shares = torch.where(size > 0, (weights * score).sum(dim=-1) / size, 0.0)
        off = (weights - shares[..., None] * score).abs()
        same = off.amax(dim=-1) <= 8 * torch.finfo(weights.dtype).eps * weights.abs().amax(dim=-1)
        return cls(score, weights, shares if bool(same.all()) else None)

    def at(self, time: int) -> Tensor:
        """Return the covectors of one step: r, and w_t where it is not a multiple."""
        return self.score if self.shares is not None else torch.cat((self.score, self.weights[time]))

    def both(self, values: Tensor, first: int) -> tuple[Tensor, Tensor]:
        """Return values under r and under w_t from those of :meth:`at`, shape (columns, steps, covectors, batch)."""
        if self.shares is None:
            scores, contributions = values.chunk(2, dim=2)
            return scores, contributions
        return values, values * self.shares[first : first + values.shape[1]]


def _spans(layer: AffineSequence, columns: SpanColumns, received: tuple[Received, ...], readout: _Readout) -> Tensor:
    """Compute scores and contributions of the spans in the order in which one direction of a layer reads.

    A contribution adds up the paths that are read anywhere in the span, a score those that are read at its end.

    Returns:
        Shape (2, where the span ends, length - 1, readouts, batch).
    """
    time, batch, size = layer.g.shape
    shape = (2, time, columns.longest, len(readout.score), batch)
    found = torch.zeros(shape, dtype=torch.float64, device=layer.g.device)
    ends, spare = layer.g.new_empty(2, time, len(readout.at(0)), batch, size)
    workspace = Workspace()
    for t in reversed(range(time)):
        stop = min(t + columns.longest, time)
        if t + 1 < stop:
            later, image = (each[t + 1 : stop].flatten(0, 1) for each in (ends, spare))
            layer.apply_transpose(t + 1, later, image, workspace)
            ends, spare = spare, ends
        ends[t] = readout.at(t)
        own = (torch.tensor([columns.source(t)]), layer.g[t][None])
        here = (own, *entering(layer, columns, received, t, workspace))
        place = torch.cat([places for places, _ in here])
        values = torch.cat([torch.einsum("cbs,trbs->ctrb", block, ends[t:stop]) for _, block in here])
        reads, begins = torch.arange(t, stop), (t - columns.behind[place])[:, None]
        seen = (t + columns.ahead[place])[:, None]
        stops = torch.maximum(seen, reads)
        lengths = stops - begins
        fits = lengths < columns.longest
        for total, each, wanted in zip(found, readout.both(values, t), (fits & (seen <= reads), fits), strict=True):
            total.index_put_((stops[wanted], lengths[wanted]), each[wanted].double(), accumulate=True)
    return found
