r"""Lines: the sequences of n-grams that an explanation lists, made of strands.

A line is a chain, a stack of chains, or one call in both directions. It has several sequences where the network runs
over a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from unrolled.cells.batch_layout import reversal
from unrolled.decomposition.attribution.bands import put_terms
from unrolled.decomposition.attribution.score_ngrams import scored_blocks
from unrolled.decomposition.attribution.score_spans import span_bands
from unrolled.decomposition.recurrences.bidirectional_stack import BidirectionalStack, total_states
from unrolled.decomposition.recurrences.composed_sequence import ComposedSequence, Stretch
from unrolled.decomposition.recurrences.sweeps import running_sum
from unrolled.explanation.strands.strand import Strand
from unrolled.linalg.quadrature import relative_error
from unrolled.model_runs.eval_mode import without_grad_and_autocast

__all__ = ["Line", "find_lines", "residual", "unfit_stacks"]


@dataclass(frozen=True)
class Line:
    """Strands that make one sequence of n-grams."""

    levels: tuple[tuple[Strand, ...], ...]
    """The chains, lowest level first; of one call in both directions: forward and backward."""
    both: bool
    """Whether the levels are two directions."""

    @property
    def coupled(self) -> bool:
        """Whether the two directions read each other's layers, so that its n-grams are spans."""
        return self.first.stack is not None

    @property
    def first(self) -> Strand:
        """The first strand of the lowest level."""
        return self.levels[0][0]

    @property
    def strands(self) -> list[Strand]:
        """All strands."""
        return [strand for level in self.levels for strand in level]

    @property
    def network(self) -> str:
        """The paths of its networks."""
        return " + ".join(dict.fromkeys(level[0].network for level in self.levels))

    @cached_property
    def batch(self) -> int:
        """Number of its sequences."""
        return self.first.sequences_of_chain

    @cached_property
    def inside(self) -> Tensor:
        """Whether each step of the line belongs to each sequence, shape (time, batch)."""
        parts = []
        for strand in self.levels[0]:
            time = len(strand.states)
            part = torch.zeros(time, self.batch, dtype=torch.bool, device="cpu")
            part[:, strand.rows] = torch.arange(time, device="cpu")[:, None] < strand.lengths.cpu()
            parts.append(part)
        return torch.cat(parts)

    @without_grad_and_autocast()
    def score(self, weights: Mapping[Strand, Tensor], longest: int | None = None) -> tuple[Tensor, Tensor]:
        """Score every n-gram of every sequence, up to a length.

        Returns:
            Scores and contributions, bands in token order, shape (batch, directions, time, longest).
        """
        if self.first.stack is not None:
            return self._score_stack(self.first.stack, weights, longest)
        ways = [(level,) for level in self.levels] if self.both else [self.levels]
        pairs = [_score(self._compose(levels), self._spread(levels, weights), longest) for levels in ways]
        scores, contributions = (torch.stack([pair[k] for pair in pairs], dim=1) for k in (0, 1))
        if self.both:
            index = reversal(self.first.lengths, len(self.first.states)).T
            for band in (scores, contributions):
                band[:, 1] = band[:, 1].gather(1, index[:, :, None].expand_as(band[:, 1]))
        return scores.cpu(), contributions.cpu()

    def _score_stack(
        self, stack: BidirectionalStack, weights: Mapping[Strand, Tensor], longest: int | None
    ) -> tuple[Tensor, Tensor]:
        """Score the spans of a call whose directions read each other's layers."""
        own = [each.own.split(each.sequence.sizes, dim=-1) for each in self.strands]
        levels = tuple(
            (replace(forward, g=own[0][k]), replace(backward, g=own[1][k]))
            for k, (forward, backward) in enumerate(stack.levels)
        )
        forward, backward = (weights[each].detach() for each in self.strands)
        return span_bands(replace(stack, levels=levels), (forward, stack.layout.reverse(backward)), longest)

    @without_grad_and_autocast()
    def by_token(self, entering: Mapping[Strand, Tensor]) -> Tensor:
        """Sum the contributions of all n-grams that enter at each token, shape (batch, time)."""
        products = {s: (entering[s] * s.own).sum(dim=-1, keepdim=True) for s in self.strands}
        if not self.both:
            whole = torch.cat([self._spread((level,), products) for level in self.levels], dim=-1)
            return whole.sum(dim=-1).T.double().cpu()
        forward, backward = (self._spread((level,), products)[..., 0] for level in self.levels)
        return (forward + backward.gather(0, reversal(self.first.lengths, len(forward)))).T.double().cpu()

    def over_steps(self, level: Sequence[Strand], values: Mapping[Strand, Tensor]) -> Tensor:
        """Put the values of a level's strands, each (time, batch, n), one after another over the line's sequences."""
        parts = []
        for strand in level:
            own = values[strand]
            whole = own.new_zeros(len(own), self.batch, own.shape[-1])
            parts.append(whole.index_copy(1, strand.rows.to(own.device), own))
        return torch.cat(parts)

    def _spread(self, levels: Sequence[Sequence[Strand]], values: Mapping[Strand, Tensor]) -> Tensor:
        """Put the values of levels side by side over the line's steps and sequences, zero outside these."""
        whole = torch.cat([self.over_steps(level, values).detach() for level in levels], dim=-1)
        return torch.where(self.inside.to(whole.device)[..., None], whole, torch.zeros_like(whole))

    def _compose(self, levels: Sequence[Sequence[Strand]]) -> ComposedSequence:
        """Join the strands' recurrences."""
        stretches = []
        for count, strands in enumerate(zip(*levels, strict=True)):
            rows = strands[0].rows
            places = {strand: number for number, strand in enumerate(strands)}
            time, lengths = len(strands[0].states), strands[0].lengths
            straight = torch.equal(rows, torch.arange(self.batch, device="cpu"))
            # what follows the end of a sequence is read by nobody, unless another stretch follows
            ends_early = int(lengths.min()) < time and count + 1 < len(levels[0])
            stretches.append(
                Stretch(
                    levels=tuple(strand.sequence for strand in strands),
                    links=tuple(tuple((places[low], link) for low, link in strand.below) for strand in strands),
                    joins=tuple(strand.join for strand in strands),
                    bypasses=tuple(strand.bypass for strand in strands),
                    rows=None if straight else rows,
                    inside=torch.arange(time, device=lengths.device)[:, None] < lengths if ends_early else None,
                )
            )
        g = self._spread(levels, {s: s.own for level in levels for s in level})
        return ComposedSequence(g, tuple(stretches)).with_starts()


def _score(sequence: ComposedSequence, weights: Tensor, longest: int | None) -> tuple[Tensor, Tensor]:
    """Multiply every term with its weight and with that of the scores, each (batch, time, longest)."""
    time, batch, _ = sequence.g.shape
    held = time if longest is None else min(time, longest)
    scores = torch.zeros(batch, time, held, dtype=torch.float64, device=weights.device)
    contributions = torch.zeros_like(scores)
    weights = torch.nn.functional.pad(weights, (sequence.g.shape[-1] - weights.shape[-1], 0))  # no start is read
    for block, (of_score,), (of_weight,) in scored_blocks(sequence, weights[:, None], longest):
        put_terms(scores, block.time, of_score)
        put_terms(contributions, block.time, of_weight)
    return scores, contributions


def find_lines(strands: Sequence[Strand]) -> list[Line]:
    """Group strands to lines, in the order in which they begin."""
    lines, seen = [], set()
    for strand in strands:
        if strand in seen:
            continue
        if strand.both:
            pair = [s for s in strands if s.call == strand.call]
            lines.append(Line(tuple((s,) for s in pair), both=True))
        else:
            chains = _stack_of(strand, strands)
            lines.append(Line(tuple(tuple(chain) for chain in chains), both=False))
        seen.update(lines[-1].strands)
    return lines


def _stack_of(strand: Strand, strands: Sequence[Strand]) -> list[list[Strand]]:
    """Return the chains that are connected to a strand's, in the order in which they begin."""
    members = {strand.chain[0]}
    grown = True
    while grown:
        grown = False
        for each in strands:
            if each.before is None and not each.both:
                lower = {low for low, _ in each.below}
                connected = {each, *lower} & members
                if connected and not {each, *lower} <= members:
                    members |= {each, *lower}
                    grown = True
    return [each.chain for each in strands if each in members]


def unfit_stacks(strands: Sequence[Strand]) -> set[str]:
    """Return the networks whose chains are levels of one stack, but not step by step from beginning to end."""
    unfit: set[str] = set()
    for line in find_lines(strands):
        if line.both or len(line.levels) == 1:
            continue
        lowest = line.levels[0]
        for level in line.levels[1:]:
            fits = len(level) == len(lowest) and all(
                torch.equal(mine.lengths, theirs.lengths)
                and len(mine.states) == len(theirs.states)
                and torch.equal(mine.rows, theirs.rows)
                for mine, theirs in zip(level, lowest, strict=True)
            )
            if not fits:
                unfit.add(level[0].network)
    return unfit


@without_grad_and_autocast()
def residual(strand: Strand) -> Tensor:
    """Return the largest relative error of the sum of a strand's terms against its states, shape (batch,)."""
    if strand.stack is not None:
        hidden = strand.states.detach()[..., strand.sequence.hidden]
        own = strand.stack.layout.turn(hidden, strand.direction)
        found = relative_error(total_states(strand.stack)[strand.direction] - own, own)
        return torch.where(strand.stack.layout.inside, found, 0.0).amax(dim=0).double()
    inside = torch.arange(len(strand.states), device=strand.lengths.device)[:, None] < strand.lengths
    moved = [link.apply(low.moved) for low, link in strand.below]
    states, total = strand.states.detach(), running_sum(strand.sequence, torch.stack(moved).sum(0) if moved else None)
    return torch.where(inside, relative_error(total - states, states), 0.0).amax(dim=0).double()
