r"""How a target reads every strand: one pass over the recorded calls, the last first.

With s the states of a strand and F the target, F = Σ_t w_tᵀ s_t + … where w counts every way by which the model reads
s_t except the recurrence itself: the next steps of the same chain, and the levels above it in a stack. What a later
strand reads otherwise (through its input, or as the beginning of another network) is part of w.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.decomposition.recurrences.affine_sequence import AffineSequence
from unrolled.decomposition.recurrences.bidirectional_stack import BidirectionalStack, entering_covectors
from unrolled.explanation.strands.strand import Strand
from unrolled.held_forward.recorded_maps import image, pull_back
from unrolled.linalg.sweep_back import sweep_back
from unrolled.model_runs.eval_mode import without_grad_and_autocast

__all__ = ["Covectors", "find_covectors", "own_start", "weights_of_targets"]

_ROUNDINGS = 64
"""How many roundings of an initial state may be left where other strands and rows made all of it."""


@dataclass(frozen=True)
class Covectors:
    """What one pass gives for each strand."""

    weights: Mapping[Strand, Tensor]
    """w_t, shape (time, batch, state)."""
    starts: Mapping[Strand, Tensor]
    """How the target reads the initial state, shape (batch, state); of the strands where that matters."""
    entering: Mapping[Strand, Tensor]
    """How it reads what each step adds, g, shape (time, batch, state); of the strands that were swept."""


def find_covectors(strands: Sequence[Strand], direct: Sequence[Tensor | None], whole: bool) -> Covectors:
    """Carry the target's gradient by the strands' states back through all strands.

    Args:
        strands: In the order of the run.
        direct: The gradient of the target by each strand's leaf, where no other strand lies between.
        whole: Whether to sweep every strand, and not only those that others lead back to.
    """
    found = _carry_back(strands, [direct], whole)
    return Covectors(*({s: each[0] for s, each in of.items()} for of in (found.weights, found.starts, found.entering)))


def weights_of_targets(
    strands: Sequence[Strand], direct: Sequence[Sequence[Tensor | None]]
) -> list[Mapping[Strand, Tensor]]:
    """Find how each of several targets reads every strand, w_t, in one pass over the strands."""
    found = _carry_back(strands, direct, whole=False).weights
    return [{strand: each[target] for strand, each in found.items()} for target in range(len(direct))]


@without_grad_and_autocast()
def _carry_back(strands: Sequence[Strand], direct: Sequence[Sequence[Tensor | None]], whole: bool) -> Covectors:
    """Carry the gradients of several targets back; all results have an axis of targets in front."""
    passed = _BackwardPass(strands, direct)
    for place in reversed(range(len(strands))):
        passed.take(strands[place], strands[:place], whole)
    return Covectors(passed.weights, passed.starts, passed.entering)


class _BackwardPass:
    """What is known of the strands while a pass goes over them, the last first.

    Args:
        strands: In the order of the run.
        direct: The gradients of each target by the strands' leaves.
    """

    def __init__(self, strands: Sequence[Strand], direct: Sequence[Sequence[Tensor | None]]) -> None:
        count = len(direct)
        self._strands = strands
        self.weights = {strand: strand.states.new_zeros(count, *strand.states.shape) for strand in strands}
        for target, gradients in enumerate(direct):
            for strand, gradient in zip(strands, gradients, strict=True):
                if gradient is not None:
                    self.weights[strand][target] = gradient
        self.starts: dict[Strand, Tensor] = {}
        self.entering: dict[Strand, Tensor] = {}
        self._by_chain = _Sums(count)
        """Of last states, by the next steps of the same chain."""
        self._past_strand = _Sums(count, of_starts=True)
        """Of initial states, by the next strand of the chain, past the strand itself."""
        self._by_levels_above = _Sums(count)
        self._through_line = _Sums(count)
        """By where the lines of levels above begin."""
        self._swept: dict[Strand, tuple[Tensor, Tensor]] = {}
        """What a stack of both directions gives, for the direction that comes next."""

    def take(self, strand: Strand, earlier: Sequence[Strand], whole: bool) -> None:
        """Carry the covectors of one strand to all that it reads; ``whole`` also if that is nothing."""
        reads_start = strand.before is not None or strand.start.requires_grad or bool(strand.start.any())
        at_inputs: Tensor | None = None
        if strand.stack is not None:
            of_g, at_start = self._sweep_both(strand, strand.stack)
        elif reads_start or strand.below or strand.alone is not None or whole:
            read = self._by_chain.added_to(self.weights[strand], strand)
            of_g, at_start, at_inputs = _sweep(strand.sequence, read, self._by_levels_above.get(strand))
        else:
            return
        self.entering[strand] = of_g
        if strand.alone is not None:
            self._to_line(strand, strand.alone, earlier, of_g)
        for lower, link in strand.below:
            assert at_inputs is not None
            self._by_levels_above[lower] += link.apply_transpose(at_inputs)
        if reads_start:
            self.starts[strand] = at_start
            self._to_others_by_start(strand, earlier, at_start)
        self._to_chain(strand, at_start)

    def _sweep_both(self, strand: Strand, stack: BidirectionalStack) -> tuple[Tensor, Tensor]:
        """Return the covectors of g and of the initial state; the two directions of a stack are swept together."""
        if strand not in self._swept:  # the other direction comes later in the run, and is met first
            pair = [each for each in self._strands if each.stack is stack]
            self._swept |= dict(zip(pair, _sweep_stack(stack, [self.weights[each] for each in pair]), strict=True))
        return self._swept[strand]

    def _to_line(self, strand: Strand, alone: tuple[Tensor, Tensor], earlier: Sequence[Strand], of_g: Tensor) -> None:
        """Carry the covectors of g to where the line of the strand's input begins."""
        leaf, g = alone
        levels = [lower for lower, _ in strand.below]
        others = [s for s in earlier if s not in levels]
        for target, of_line in enumerate(self._through_line.added_to(of_g, strand)):
            (at_line,) = pull_back(g, [leaf], of_line)
            if at_line is not None:
                _add(self.weights, target, strand.inputs, others, at_line)
                for lower, link in strand.below:
                    self._through_line[lower][target] += link.apply_transpose(at_line)

    def _to_others_by_start(self, strand: Strand, earlier: Sequence[Strand], at_start: Tensor) -> None:
        """Carry the covectors of the initial state to the strands that it reads otherwise than as a chain does."""
        followed = {s for s, _, _ in strand.continued}
        apart = [s for s in earlier if (s not in followed if strand.bypass is None else s.chain is not strand.chain)]
        for target, each in enumerate(at_start):
            _add(self.weights, target, strand.start, apart, each)

    def _to_chain(self, strand: Strand, at_start: Tensor) -> None:
        """Carry the covectors of the initial state to the strands that this one continues."""
        of_chain = self._past_strand.added_to(at_start, strand)
        passed = of_chain if strand.join is None else strand.join.apply_transpose(of_chain)
        for before, theirs, mine in strand.continued:
            self._by_chain[before][:, before.lengths[theirs] - 1, theirs] += passed[:, mine]
            if strand.bypass is not None:
                self._past_strand[before][:, theirs] += (strand.bypass * of_chain)[:, mine]


class _Sums(dict[Strand, Tensor]):
    """Sums of covectors of the states or starts of strands; those to which nothing was added take no memory.

    Args:
        count: Number of targets.
        of_starts: Whether they are of the initial states.
    """

    def __init__(self, count: int, of_starts: bool = False) -> None:
        super().__init__()
        self.count, self.of_starts = count, of_starts

    def __missing__(self, strand: Strand) -> Tensor:
        like = strand.start if self.of_starts else strand.states
        self[strand] = like.new_zeros(self.count, *like.shape)
        return self[strand]

    def added_to(self, other: Tensor, strand: Strand) -> Tensor:
        """Add the sum of a strand to another tensor."""
        return other + self[strand] if strand in self else other


def _add(
    weights: dict[Strand, Tensor], target: int, result: Tensor, strands: Sequence[Strand], covector: Tensor
) -> None:
    """Add what a covector of a result makes of the states that the result reads."""
    for strand, gradient in zip(strands, pull_back(result, [s.states for s in strands], covector), strict=True):
        if gradient is not None:
            weights[strand][target] += gradient


def _sweep(sequence: AffineSequence, read: Tensor, above: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Sweep one call backward, the top layer first.

    Args:
        sequence: The call's layers.
        read: Covectors of the states, shape (targets, time, batch, state).
        above: Those of the levels above, which do not read g; None for none.

    Returns:
        Covectors of g, (targets, time, batch, state), of the initial state, (targets, batch, state), and of the input's
        displacement.
    """
    reads = read.split(sequence.sizes, dim=-1)
    extra = None if above is None else above.split(sequence.sizes, dim=-1)
    of_g, starts = [], []
    by_input: Tensor | None = None
    for index in reversed(range(len(sequence.layers))):
        operator, cell = sequence.operators[index], sequence.layers[index].cell
        beyond = torch.zeros_like(reads[index]) if extra is None else extra[index].clone()
        if by_input is not None:
            cell.hidden(beyond).add_(by_input)
        states = reads[index] + beyond
        first, found = sweep_back(operator, states.transpose(0, 1), with_inputs=True)
        starts.append(first)
        by_input = states.new_zeros(*states.shape[:-1], cell.input_size) if found is None else found.transpose(0, 1)
        of_g.append(states - beyond)
    assert by_input is not None
    return torch.cat(of_g[::-1], dim=-1), torch.cat(starts[::-1], dim=-1), by_input


def _sweep_stack(stack: BidirectionalStack, reads: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Sweep a call of several layers in both directions backward, the top layer first.

    Args:
        stack: The call's layers.
        reads: Covectors of the states of each direction, shape (targets, time, batch, state of all layers), as it
            reads.

    Returns:
        For each direction covectors of g, (targets, time, batch, state), and of the initial state, (targets, batch,
        state).
    """
    sizes = [level[0].g.shape[-1] for level in stack.levels]
    by_way = [stack.layout.turn(each, way, axis=1) for way, each in enumerate(reads)]
    readout = [list(level) for level in zip(*(each.split(sizes, dim=-1) for each in by_way), strict=True)]
    found = {(each.level, each.way): each for each in entering_covectors(stack, readout)}
    levels = range(len(sizes))
    return [
        (
            torch.cat([found[level, way].of_g for level in levels], dim=-1),
            torch.cat([found[level, way].of_start for level in levels], dim=-1),
        )
        for way in range(len(reads))
    ]


def own_start(strand: Strand, strands: Sequence[Strand], rows: Sequence[Tensor]) -> Tensor:
    """Return the part of an initial state that neither other strands nor rows made, shape (batch, state)."""
    value = strand.start.detach()
    if not strand.start.requires_grad:
        return value
    sources = [*(s.states for s in strands if s is not strand), *rows]
    rest = value - image(strand.start, sources, sources)
    rounding = _ROUNDINGS * torch.finfo(value.dtype).eps * float(value.abs().max())
    return torch.where(rest.abs() <= rounding, torch.zeros_like(rest), rest)
