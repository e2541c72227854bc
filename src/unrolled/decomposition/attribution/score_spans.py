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
from unrolled.decomposition.attribution.score_ngrams import NGramScores
from unrolled.decomposition.attribution.score_weight import score_weight
from unrolled.decomposition.opening.open_network import OpenedNetwork
from unrolled.decomposition.recurrences.affine_sequence import AffineSequence
from unrolled.decomposition.recurrences.bidirectional_stack import BidirectionalStack, token_contributions, total_states
from unrolled.decomposition.recurrences.stack_sweep import Received, SpanColumns, chosen_columns, receivers
from unrolled.decomposition.recurrences.sweep_progress import count_steps, planned_steps
from unrolled.linalg.operators import Workspace
from unrolled.linalg.quadrature import relative_error
from unrolled.model_runs.eval_mode import without_grad_and_autocast

__all__ = ["DEEP_ORDER", "score_spans", "span_bands"]

DEEP_ORDER = 6
"""Length of the longest spans that are told apart if nobody asks for another: the cost grows faster than the length."""
_ROUNDINGS = 8
"""How many roundings covectors may be off multiples of one."""


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
    share, count, asked = 1 / len(stacks), len(readouts), longest
    time, batch = readouts[0][0].shape[:2]
    inside = opened.layout.inside
    weights = _by_layer(stacks[0], inside, readouts)
    longest = min(longest, time)
    found = torch.zeros(2, count, batch, 2, time, longest, dtype=torch.float64, device=inside.device)
    tokens, initial = found.new_zeros(count, batch, time), found.new_zeros(count, batch)
    errors = [torch.zeros_like(own) for own in opened.outputs]
    sweeps = len(stacks) * sum(each is not None for read in weights for each in read)
    with planned_steps(sweeps * time):
        for stack in stacks:
            of_tokens, of_initial = token_contributions(stack, weights)
            tokens += share * of_tokens.transpose(1, 2).double()
            initial += share * of_initial.double()
            found += share * _bands(stack, weights, longest)
            for error, own, total in zip(errors, opened.outputs, total_states(stack), strict=True):
                error += share * (total - own)
    relative = [relative_error(error, own) for error, own in zip(errors, opened.outputs, strict=True)]
    residual = torch.where(inside, torch.stack(relative), 0.0).amax(dim=(0, 1)).double().cpu()
    tokens = torch.where(inside.T, tokens, 0.0)
    return [
        NGramScores(found[0, k].cpu(), found[1, k].cpu(), tokens[k].cpu(), initial[k].cpu(), residual, asked)
        for k in range(count)
    ]


@without_grad_and_autocast()
def span_bands(stack: BidirectionalStack, readout: tuple[Tensor, Tensor], longest: int | None) -> tuple[Tensor, Tensor]:
    """Score every span of at most ``longest`` tokens under one readout, w_t as in :func:`score_spans`.

    Returns:
        Scores and contributions, bands in token order, each (batch, directions, time, longest).
    """
    layout = stack.layout
    weights = _by_layer(stack, layout.inside, [readout])
    found = _bands(stack, weights, layout.time if longest is None else min(longest, layout.time))
    return found[0, 0].cpu(), found[1, 0].cpu()


def _bands(stack: BidirectionalStack, weights: Sequence[Sequence[Tensor | None]], longest: int) -> Tensor:
    """Return scores and contributions in token order, shape (2, readouts, batch, directions, time, longest)."""
    layout, columns = stack.layout, SpanColumns(longest, stack.layout.time)
    inside = layout.inside
    count = max((len(each) for ways in weights for each in ways if each is not None), default=1)
    found = torch.zeros(
        2, count, len(layout.lengths), 2, layout.time, longest, dtype=torch.float64, device=inside.device
    )
    index = reversal(layout.lengths, layout.time).T[:, :, None]
    for ways, received, read in zip(stack.levels, receivers(stack, columns), weights, strict=True):
        for way, weight in enumerate(read):
            if weight is None:
                continue
            readout = _Readout.of(layout.turn(weight, way, axis=1))
            spans = _spans(ways[way], columns, received[way], readout).permute(0, 3, 4, 1, 2)
            found[:, :, :, way] += spans.gather(3, index.expand(spans.shape)) if way else spans
    return found * inside.T[:, None, :, None]


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
        same = off.amax(dim=-1) <= _ROUNDINGS * torch.finfo(weights.dtype).eps * weights.abs().amax(dim=-1)
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
    """Score spans in the order in which a layer reads, shape (2, end of the span, length - 1, readouts, batch)."""
    # A contribution adds up the paths that are read anywhere in the span, a score those that are read at its end. Cᵀ
    # takes the covectors to what the layer receives, as they are fewer than its columns.
    (time, batch, size), longest, (operator,) = layer.g.shape, columns.longest, layer.operators
    # the last places are not reached: spans end inside the text
    shape = (2, time + longest, longest, len(readout.score), batch)
    found = torch.zeros(shape, dtype=torch.float64, device=layer.g.device)
    ends, spare = layer.g.new_empty(2, time, len(readout.at(0)), batch, size)
    pairs, workspace = _Pairs(columns, received), Workspace()
    for t in count_steps(reversed(range(time))):
        stop = min(t + longest, time)
        ends[t] = readout.at(t)
        here, image = ends[t:stop], spare[t:stop].flatten(0, 1)
        _, at_inputs = operator.at(t).apply_transpose(here.flatten(0, 1), bool(received), image, workspace)
        alive, met = pairs.at(t)
        values = [torch.einsum("bs,trbs->trb", layer.g[t], here)[None]]
        if at_inputs is None:  # C is zero, or nothing enters
            values.append(here.new_zeros(sum(map(len, alive)), *here.shape[:3]))
        else:
            at_each = at_inputs.unflatten(0, here.shape[:2]).split([each.values.shape[-1] for each in received], -1)
            for each, some, at in zip(received, alive, at_each, strict=True):
                values.append(torch.einsum("cbf,trbf->ctrb", chosen_columns(each.values[t], some), at))
        under = readout.both(torch.cat(values), t)
        for total, products, (chosen, places) in zip(found, under, met, strict=True):
            total[t : t + longest].flatten(0, 1).index_add_(0, places, products.flatten(0, 1)[chosen].double())
        ends, spare = spare, ends
    return found[:, :time]


class _Pairs:
    """What enters a layer at a step, paired with the steps that read it, and the span that both make.

    Args:
        columns: The spans that are kept apart.
        received: What enters from both directions of the layer below; the token itself enters before.
    """

    def __init__(self, columns: SpanColumns, received: tuple[Received, ...]) -> None:
        self._columns, self._received = columns, received
        self._known: dict[tuple[int, int], tuple[list[Tensor], list[tuple[Tensor, Tensor]]]] = {}

    def at(self, time: int) -> tuple[list[Tensor], list[tuple[Tensor, Tensor]]]:
        """Return which columns enter at a step, and their pairs for scores and for contributions.

        Pairs are two indices: of (column, step that reads), and of (end of the span from here, length - 1).
        """
        longest = self._columns.longest
        borders = min(time, longest), min(self._columns.time - time, longest)  # all that matters of the step
        if borders not in self._known:
            alive = [self._columns.alive(each.places, time) for each in self._received]
            entering = (each.places[some] for each, some in zip(self._received, alive, strict=True))
            place = torch.cat((torch.tensor([self._columns.source(time)], device="cpu"), *entering))
            seen, reads = self._columns.ahead[place][:, None], torch.arange(borders[1], device="cpu")
            stops = torch.maximum(seen, reads)
            lengths = stops + self._columns.behind[place][:, None]
            fits, places = lengths < longest, (stops * longest + lengths).flatten()
            chosen = [each.flatten().nonzero()[:, 0] for each in (fits & (seen <= reads), fits)]
            self._known[borders] = alive, [(each, places[each]) for each in chosen]
        return self._known[borders]
