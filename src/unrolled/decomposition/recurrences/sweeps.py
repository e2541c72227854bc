r"""Sweeps over an affine recurrence: forward for every term, backward for one readout.

Forward, the block V_t = [A_t V_{t-1}, g_t] holds every n-gram that ends at t. The whole triangle takes T(T-1)/2
applications of an operator, done as products over (starts x batch). Backward, u_t = w_t + A_{t+1}ᵀ u_{t+1} collects the
contribution of every start to Σ_t w_tᵀ s_t in T applications: the cost of a backward pass.

Scores are cheaper than vectors. Cut the sentence in two, sweep the left part forward and the right part backward: every
score across the cut is then one inner product, d multiplications instead of d². For one class this saves half of the
applications.

A term about twelve orders of magnitude below rounding is dropped. Its numbers would soon be subnormal, which processors
multiply about a hundred times more slowly, and most terms of a long document are that small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from unrolled.decomposition.recurrences.affine_sequence import AffineSequence
from unrolled.decomposition.recurrences.composed_sequence import ComposedSequence
from unrolled.linalg.operators import Workspace
from unrolled.linalg.sweep_back import sweep_back
from unrolled.linalg.sweep_forward import sweep_forward

__all__ = ["TermBlock", "adjoint_sweep", "forward_sweep", "ngrams_by_length", "running_sum", "scores"]

_CHECK_EVERY = 16
"""Steps between two checks for negligible terms."""


def _negligible(block: Tensor, scale: float) -> Tensor:
    """Flag the columns smaller than the root of the least normal number, times a scale."""
    return block.abs().amax(dim=(1, 2)) < scale * torch.finfo(block.dtype).tiny ** 0.5


def _count_leading(flags: Tensor) -> int:
    """Count the flags before the first that is not set."""
    return int(flags.long().cumprod(dim=0).sum())


@dataclass(frozen=True)
class TermBlock:
    """All terms that end at one position."""

    time: int
    initial: Tensor
    """The initial state's term, shape (batch, state)."""
    older: Tensor
    """Sum of the n-grams longer than the window, shape (batch, state)."""
    terms: Tensor
    """v_{i:t} for the starts i from ``first`` to t, shape (starts, batch, state). Earlier starts are outside the window
    or negligible."""
    first: int


def forward_sweep(sequence: AffineSequence | ComposedSequence, window: int | None = None) -> Iterator[TermBlock]:
    """Sweep forward over all n-grams of at most ``window`` tokens; all if None.

    Each step yields a block whose tensors are views, which later steps overwrite.
    """
    time, batch, size = sequence.g.shape
    held = time if window is None else min(window, time)
    initial = sequence.initial
    # In front of the terms: the initial state's, and the sum of those outside the window, where they are needed.
    carries, drops = bool(initial.any()), held < time
    head = int(carries) + int(drops)
    lines, spare = sequence.g.new_zeros(2, head + held, batch, size)
    workspace = Workspace()
    if carries:
        lines[0] = initial
    none = torch.zeros_like(initial)
    scale = float(sequence.g.abs().max())
    count = 0
    for t in range(time):
        if count == held:
            lines[head - 1] += lines[head]
            spare[:head], spare[head:-1] = lines[:head], lines[head + 1 :]
            lines, spare = spare, lines
            count -= 1
        if head + count:
            sequence.apply(t, lines[: head + count], spare[: head + count], workspace)
            lines, spare = spare, lines
        lines[head + count] = sequence.g[t]
        count += 1
        if t % _CHECK_EVERY == _CHECK_EVERY - 1:
            gone = _count_leading(_negligible(lines[head : head + count], scale))
            if gone:
                spare[:head], spare[head : head + count - gone] = lines[:head], lines[head + gone : head + count]
                lines, spare = spare, lines
                count -= gone
        yield TermBlock(
            t,
            lines[0] if carries else none,
            lines[head - 1] if drops else none,
            lines[head : head + count],
            t + 1 - count,
        )


def ngrams_by_length(sequence: AffineSequence, longest: int) -> Iterator[Tensor]:
    """Compute the n-grams of one token, of two, … up to a length: v_{i:t} = A_t v_{i:t-1}, for all t at once.

    Of few lengths this takes as many products as there are lengths, and :func:`forward_sweep` one for each step.

    Yields:
        The n-grams of k tokens, shape (time - k + 1, batch, state); the first one ends at step k - 1. Where all longer
        ones are negligible, none follow.
    """
    terms = sequence.g
    scale, longest = float(terms.abs().max()), min(longest, len(terms))
    yield terms
    for length in range(2, longest + 1):
        terms = sequence.apply_from(length - 1, terms[:-1])
        if length % _CHECK_EVERY == 0:
            gone = _negligible(terms, scale)
            if bool(gone.all()):
                return
            terms[gone] = 0
        yield terms


def running_sum(sequence: AffineSequence, moved: Tensor | None = None) -> Tensor:
    """Sum all terms at every position, the initial state's among them, shape (time, batch, state).

    ``moved`` is by how much the lowest layer's input is more than where its line begins, shape (time, batch, input);
    None if it does not move.
    """
    states = sequence.g.clone()
    parts = (each.split(sequence.sizes, dim=-1) for each in (states, sequence.g))
    for layer, operator, part, g in zip(sequence.layers, sequence.operators, *parts, strict=True):
        if moved is not None:
            part += operator.apply_inputs(moved[None])[0]
        sweep_forward(operator, part, layer.initial)
        # what the layer adds to what the tokens alone make of it
        moved = layer.cell.hidden(part - g) if layer is not sequence.layers[-1] else None
    return states


def adjoint_sweep(sequence: AffineSequence, readout: Tensor) -> tuple[Tensor, Tensor]:
    """Sweep backward for the contributions of every start and of the initial state to Σ_t w_tᵀ s_t.

    Args:
        sequence: The affine recurrence.
        readout: w_t, shape (time, classes, batch, state).

    Returns:
        The contributions of the starts, shape (time, classes, batch), and of s_0, shape (classes, batch).
    """
    covectors = readout.clone()
    starts, initial = covectors.new_zeros(covectors.shape[:-1]), covectors.new_zeros(covectors.shape[1:-1])
    above: Tensor | None = None  # Cᵀ of the layer above, which reads all but g
    parts = [each.split(sequence.sizes, dim=-1) for each in (covectors, sequence.g)]
    for index in reversed(range(len(sequence.layers))):
        (part, g), operator, layer = (each[index] for each in parts), sequence.operators[index], sequence.layers[index]
        if above is not None:
            layer.cell.hidden(part).add_(above)
        first, at_inputs = sweep_back(operator, part, with_inputs=index > 0)
        starts += torch.einsum("tcbs,tbs->tcb", part, g)
        initial += (first * layer.initial).sum(dim=-1)
        if above is not None:
            starts -= torch.einsum("tcbf,tbf->tcb", above, layer.cell.hidden(g))
        above = at_inputs
    return starts, initial


def scores(sequence: AffineSequence, weight: Tensor) -> Tensor:
    """Score every n-gram, wᵀ A_t … A_{i+1} g_i, without storing its vector.

    ``weight`` is w of each class, shape (classes, state). The result has shape (end, start, classes, batch); it is
    zero where start > end.
    """
    time, batch, size = sequence.g.shape
    classes = weight.shape[0]
    result = sequence.g.new_zeros(time, time, classes, batch)
    # A column to the left of the cut is a start, one to the right an end of one class: the cut balances the two.
    cut = max(1, round(time * classes / (classes + 1)))
    for block in islice(forward_sweep(sequence), cut):
        result[block.time, block.first : block.time + 1] = (block.terms @ weight.T).transpose(1, 2)
    starts, born = block.terms, block.first
    ends, spare = sequence.g.new_empty(2, (time - cut) * classes, batch, size)
    workspace, scale, last = Workspace(), float(weight.abs().max()), time
    for t in reversed(range(cut, time)):
        here = slice((t - cut) * classes, (last - cut) * classes)
        ends[here.start : here.start + classes] = weight[:, None]
        result[t:last, t] = torch.einsum("nbs,bs->nb", ends[here], sequence.g[t]).view(-1, classes, batch)
        sequence.apply_transpose(t, ends[here], spare[here], workspace)
        ends, spare = spare, ends
        if t % _CHECK_EVERY == 0:
            last -= _count_leading(_negligible(ends[here], scale).view(-1, classes).all(dim=1).flip(0))
    ends = ends.view(time - cut, classes, batch, size)[: last - cut]
    result[cut:last, born:cut] = torch.einsum("ecbs,ibs->eicb", ends, starts)
    return result
