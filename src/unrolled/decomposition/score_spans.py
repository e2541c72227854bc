"""The account of a deep bidirectional network under a readout: by token, and by the span that a path has seen."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unrolled.cells.batch_layout import Layout, reversal
from unrolled.decomposition.bidirectional_stack import BidirectionalStack, token_contributions
from unrolled.decomposition.eval_mode import without_grad_and_autocast
from unrolled.decomposition.open_network import OpenedNetwork
from unrolled.decomposition.score_ngrams import NGramScores
from unrolled.decomposition.score_weight import score_weight
from unrolled.decomposition.stack_sweep import SpanColumns, TotalColumns, stack_sweep
from unrolled.linalg.quadrature import relative_error

__all__ = ["score_spans"]


@without_grad_and_autocast()
def score_spans(
    opened: OpenedNetwork, stacks: Sequence[BidirectionalStack], weights: tuple[Tensor, ...], longest: int
) -> NGramScores:
    """Score every span of at most ``longest`` tokens, and account for all paths by token.

    Args:
        opened: The network's run.
        stacks: The expanded networks whose terms are averaged.
        weights: w_t for each direction in token order, shape (time, batch, states of all layers).
        longest: Length of the longest span; by token all are counted.
    """
    layout, share = opened.layout, 1 / len(stacks)
    time, batch = weights[0].shape[:2]
    readout = _by_layer(stacks[0], layout, weights)
    held = min(longest, time)
    scores = torch.zeros(batch, 2, time, held, dtype=torch.float64, device=weights[0].device)
    contributions = torch.zeros_like(scores)
    tokens, initial = scores.new_zeros(batch, time), scores.new_zeros(batch)
    residual = torch.zeros_like(initial)
    errors = [torch.zeros_like(own) for own in opened.outputs]
    columns = SpanColumns(held)
    for stack in stacks:
        entering, of_initial = token_contributions(
            stack, [[None if each is None else each[None] for each in ways] for ways in readout]
        )
        tokens += share * entering[0].T.double()
        initial += share * of_initial[0].double()
        _add_spans(stack, readout, columns, scores, contributions)
        for way, total in enumerate(context(stack)):
            errors[way] += share * (total - opened.outputs[way])
    inside = layout.inside
    for error, own in zip(errors, opened.outputs, strict=True):
        relative = relative_error(error, own)
        residual = torch.maximum(residual, torch.where(inside, relative, 0.0).amax(dim=0).double())
    for band in (scores, contributions):
        band.mul_(share).mul_(inside.T[:, None, :, None])
    return NGramScores(
        scores.cpu(),
        contributions.cpu(),
        torch.where(inside.T, tokens, 0.0).cpu(),
        initial.cpu(),
        residual.cpu(),
        longest,
    )


def context(stack: BidirectionalStack, terms: bool = True, initial: bool = True) -> tuple[Tensor, Tensor]:
    """Sum all paths at every position: the top layer's hidden states in token order, each (time, batch, hidden)."""
    found: tuple[list[Tensor], list[Tensor]] = ([], [])
    top = len(stack.levels) - 1
    for step in stack_sweep(stack, TotalColumns(), terms, initial):
        if step.level == top:
            found[step.way].append(step.block[0][..., stack.levels[top][step.way].hidden])
    return torch.stack(found[0]), stack.layout.reverse(torch.stack(found[1]))


def _by_layer(stack: BidirectionalStack, layout: Layout, weights: tuple[Tensor, ...]) -> list[list[Tensor | None]]:
    """Split the weights by layer and direction, shape (time, batch, state); None for a layer that is not read."""
    inside = layout.inside[..., None]
    by_way = [
        torch.where(inside, given, torch.zeros_like(given)).split([ways[way].g.shape[-1] for ways in stack.levels], -1)
        for way, given in enumerate(weights)
    ]
    return [[part if bool(part.any()) else None for part in ways] for ways in zip(*by_way, strict=True)]


def _add_spans(
    stack: BidirectionalStack,
    readout: Sequence[Sequence[Tensor | None]],
    columns: SpanColumns,
    scores: Tensor,
    contributions: Tensor,
) -> None:
    """Add the scores and the contributions of the spans, at (batch, direction, where the span ends, length - 1).

    The end of a span is the last token of it that a direction reads: a contribution adds up the paths that are read
    anywhere in the span, a score those that are read at its end.
    """
    layout = stack.layout
    read = [
        [part if part is None or not way else layout.reverse(part) for way, part in enumerate(ways)] for ways in readout
    ]
    strongest = [[None if part is None else score_weight(part) for part in ways] for ways in read]
    found: dict[tuple[int, int], list[Tensor]] = {}
    for step in stack_sweep(stack, columns):
        weight, most = read[step.level][step.way], strongest[step.level][step.way]
        if weight is not None and most is not None:
            both = torch.stack((most, weight[step.time]))
            values = torch.einsum("kbs,mbs->kmb", step.block, both)
            found.setdefault((step.level, step.way), []).append(values.double())
    index = reversal(layout.lengths, layout.time).T
    for (_, way), steps in found.items():
        values = torch.stack(steps)  # (time, columns, 2, batch)
        count = values.shape[1]
        behind, ahead = (places[:count].to(values.device) for places in (columns.behind, columns.ahead))
        here = torch.arange(len(steps), device=values.device)[:, None]
        ends, starts = here + ahead, here - behind
        for band, which, wanted in ((scores, 0, ahead == 0), (contributions, 1, ahead >= 0)):
            kept = wanted & (starts >= 0) & (ends < len(steps))
            added = values.new_zeros(len(steps), band.shape[-1], values.shape[-1])
            added.index_put_((ends[kept], (ends - starts)[kept]), values[:, :, which][kept], accumulate=True)
            added = added.permute(2, 0, 1)
            band[:, way] += added.gather(1, index[:, :, None].expand_as(added)) if way else added
