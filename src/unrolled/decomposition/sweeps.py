r"""The sweeps over an affine recurrence: forward blocks give every term, one adjoint sweep gives one account.

Forward, the block V_t = [A_t V_{t-1}, g_t] holds every n-gram that ends at t: T(T-1)/2 applications of an operator for
the whole triangle, as products over (starts x batch). Backward, u_t = w_t + A_{t+1}ᵀ u_{t+1} collects what every
start contributes to Σ_t w_tᵀ s_t in T applications: the price of a backward pass.

Scores alone come cheaper than vectors: cut the sentence in two, sweep the left part forward and the right part
backward, and let the two meet. Every score across the cut is then one inner product, d multiplications instead of d²,
and for one class half the applications are saved.

A term that has died away, some twelve orders of magnitude below rounding, is let go: its numbers would soon be
subnormal, which processors multiply a hundred times more slowly, and a long document is mostly such terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from unrolled.decomposition.affine_sequence import AffineSequence
from unrolled.linalg.workspace import Workspace

__all__ = ["Block", "adjoint", "blocks", "running", "scores"]


# How many steps pass between two looks at what has died away.
PATIENCE = 16


def _dead(block: Tensor, scale: float) -> Tensor:
    """Say of every column whether it has died away: smaller than the root of the least normal number, times a scale."""
    return block.abs().amax(dim=(1, 2)) < scale * torch.finfo(block.dtype).tiny ** 0.5


def _leading(flags: Tensor) -> int:
    """Count how many flags are set before the first that is not."""
    return int(flags.long().cumprod(dim=0).sum())


@dataclass(frozen=True)
class Block:
    """Everything that ends at one position."""

    time: int
    initial: Tensor
    """What is left of the initial state, shape (batch, state)."""
    older: Tensor
    """The sum of the n-grams that the window has dropped, shape (batch, state)."""
    terms: Tensor
    """v_{i:t} for the starts i still held, shape (starts, batch, state); the last one is the unigram g_t. Starts before
    them have left the window or died away."""
    first: int
    """The start of the first of them."""


def blocks(sequence: AffineSequence, window: int | None = None) -> Iterator[Block]:
    """Sweep forward over all n-grams.

    Args:
        sequence: the affine recurrence.
        window: how many starts to hold; all when None. What falls out is kept as one sum, so nothing is lost.

    Yields:
        A block a position. Its tensors are views, overwritten by the steps that follow.
    """
    time, batch, size = sequence.g.shape
    held = time if window is None else min(window, time)
    initial = sequence.initial
    # Up to two lines ride along in front of the terms, where they are needed: the initial state, and what fell out.
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
        if t % PATIENCE == PATIENCE - 1:
            gone = _leading(_dead(lines[head : head + count], scale))
            if gone:
                spare[:head], spare[head : head + count - gone] = lines[:head], lines[head + gone : head + count]
                lines, spare = spare, lines
                count -= gone
        yield Block(
            t,
            lines[0] if carries else none,
            lines[head - 1] if drops else none,
            lines[head : head + count],
            t + 1 - count,
        )


def running(sequence: AffineSequence) -> Tensor:
    """Sum all terms at every position: the state as the expansion has it.

    Args:
        sequence: the affine recurrence.

    Returns:
        Σ_i v_{i:t} + A_t … A_1 s_0, shape (time, batch, state).
    """
    states = torch.empty_like(sequence.g)
    current, workspace = sequence.initial, Workspace()
    for t, g in enumerate(sequence.g):
        sequence.apply(t, current[None], states[t : t + 1], workspace)
        current = states[t].add_(g)
    return states


def adjoint(sequence: AffineSequence, readout: Tensor) -> tuple[Tensor, Tensor]:
    """Sweep backward: what every start, and the initial state, contributes to Σ_t w_tᵀ s_t.

    Args:
        sequence: the affine recurrence.
        readout: w_t, shape (time, classes, batch, state).

    Returns:
        The contributions of the starts, shape (time, classes, batch), and of s_0, shape (classes, batch).
    """
    u, spare, workspace = torch.zeros_like(readout[0]), torch.empty_like(readout[0]), Workspace()
    contributions = readout.new_empty(readout.shape[:-1])
    for t in reversed(range(sequence.g.shape[0])):
        u.add_(readout[t])
        contributions[t] = (u * sequence.g[t]).sum(dim=-1)
        sequence.apply_transpose(t, u, spare, workspace)
        u, spare = spare, u
    return contributions, (u * sequence.initial).sum(dim=-1)


def scores(sequence: AffineSequence, weight: Tensor) -> Tensor:
    """Score every n-gram without keeping its vector: wᵀ A_t … A_{i+1} g_i for all i <= t.

    Args:
        sequence: the affine recurrence.
        weight: w of each class, shape (classes, state).

    Returns:
        Shape (end, start, classes, batch); zero where start > end.
    """
    time, batch, size = sequence.g.shape
    classes = weight.shape[0]
    result = sequence.g.new_zeros(time, time, classes, batch)
    # A column to the left of the cut is a start, one to the right an end of one class: the cut balances the two.
    cut = max(1, round(time * classes / (classes + 1)))
    for block in islice(blocks(sequence), cut):
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
        if t % PATIENCE == 0:
            last -= _leading(_dead(ends[here], scale).view(-1, classes).all(dim=1).flip(0))
    ends = ends.view(time - cut, classes, batch, size)[: last - cut]
    result[cut:last, born:cut] = torch.einsum("ecbs,ibs->eicb", ends, starts)
    return result
