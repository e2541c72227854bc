"""The result of :func:`unrolled.decompose`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.cells.batch_layout import reversal
from unrolled.decomposition.arguments import checked_direction, checked_weight
from unrolled.decomposition.opening.open_network import OpenedNetwork
from unrolled.decomposition.recurrences.affine_sequence import AffineSequence
from unrolled.decomposition.recurrences.sweeps import (
    TermBlock,
    adjoint_sweep,
    forward_sweep,
    ngrams_by_length,
    running_sum,
    scores,
)
from unrolled.expansions.base import Expansion
from unrolled.linalg.quadrature import relative_error
from unrolled.model_runs.eval_mode import without_grad_and_autocast

__all__ = ["Decomposition"]


@dataclass(frozen=True, repr=False, eq=False)
class Decomposition:
    """The decomposition of a batch, as :func:`unrolled.decompose` returns it.

    Positions are those of the tokens, in both directions. In the backward direction (``direction=1``) a term that
    enters at token ``start`` is read at ``end <= start``. Values beyond a sequence's length are zero.

    Terms, sums and scores are computed when they are asked for, from weights that are shared with the network: read
    them before you train the network further. Else they raise a ``ChangedWeightsError``. No result carries a gradient.
    Every method takes a ``direction``, 0 for forward and 1 for backward, and raises a ``UsageError`` if the network
    does not have it. A ``weight`` is the w of each class, shape (classes, hidden), or (hidden,) for one class. It
    raises a ``ShapeError`` if it does not fit, and a ``NonFiniteError`` if it holds NaN or infinity.

    Example:
        >>> import torch, unrolled
        >>> rnn = torch.nn.LSTM(8, 16, bidirectional=True, batch_first=True)
        >>> found = unrolled.decompose(rnn, torch.randn(2, 5, 8))
        >>> found.scores(torch.randn(3, 16), direction=1).shape  # (batch, end, start, classes)
        torch.Size([2, 5, 5, 3])
        >>> bool(torch.allclose(found.context(), found.states(), atol=1e-5))
        True
    """

    expansion: Expansion
    opened: OpenedNetwork
    sequences: tuple[tuple[AffineSequence, ...], ...]
    """For each direction the affine recurrences whose terms are averaged: one, or several for a mean."""
    max_order: int | None
    """Length of the longest n-gram in tokens, at most the padded length; None for no limit."""

    @property
    def parity(self) -> float:
        """The largest difference between the recomputed states and the network's own."""
        return self.opened.parity

    @property
    def lengths(self) -> Tensor:
        """Number of tokens of each sequence, shape (batch,)."""
        return self.opened.lengths

    @property
    def directions(self) -> int:
        """Number of directions: 1, or 2 for a bidirectional network."""
        return len(self.opened.directions)

    def __repr__(self) -> str:
        time, batch, hidden = self.opened.outputs[0].shape
        sizes = f"batch={batch}, time={time}, hidden={hidden}, directions={self.directions}"
        return f"Decomposition({self.expansion}: {sizes}, max_order={self.max_order}, parity={self.parity:.2g})"

    def vectors(self, direction: int = 0) -> Tensor:
        """Return the term v_{start:end} of every n-gram, its hidden part.

        This needs memory for batch · time² · hidden numbers; :meth:`scores` does not.

        Returns:
            Shape (batch, end, start, hidden). With ``max_order=N`` the third axis has N columns (at most time), counted
            from the end: the last column is the unigram, the one before it the bigram.
        """
        return self._collect(direction, lambda hidden: hidden)

    @without_grad_and_autocast()
    def scores(self, weight: Tensor, direction: int = 0) -> Tensor:
        """Return the score wᵀ v_{start:end} of every n-gram, without storing the vectors.

        Returns:
            Shape (batch, end, start, classes); the third axis as in :meth:`vectors`.
        """
        weight = self._checked_weight(weight, direction)
        if self.max_order is not None:
            return self._collect(direction, lambda hidden: hidden @ weight.T)
        members = self._members(direction)
        total: Tensor | None = None
        for sequence in members:
            whole = weight.new_zeros(weight.shape[0], sequence.g.shape[-1])
            whole[:, sequence.hidden] = weight
            found = scores(sequence, whole) / len(members)
            total = found if total is None else total + found
        assert total is not None
        return self._to_tokens(total.permute(3, 0, 1, 2), direction, (1, 2))

    @without_grad_and_autocast()
    def final_scores(self, weight: Tensor, direction: int = 0) -> Tensor:
        """Return the scores of the n-grams that end where the network stops reading, by one backward sweep.

        It is the last row of :meth:`scores` (the first row for the backward direction) at the cost of a backward pass.

        Returns:
            Shape (batch, start, classes).
        """
        weight = self._checked_weight(weight, direction)
        lengths = self.lengths
        total: Tensor | None = None
        for sequence in self._members(direction):
            time, batch, size = sequence.g.shape
            readout = sequence.g.new_zeros(time, weight.shape[0], batch, size)
            last = torch.zeros_like(readout[0])
            last[..., sequence.hidden] = weight[:, None]
            readout[lengths - 1, :, torch.arange(batch, device="cpu")] = last.transpose(0, 1)
            starts, _ = adjoint_sweep(sequence, readout)
            total = starts if total is None else total + starts
        assert total is not None
        return self._to_tokens(total.permute(2, 0, 1) / len(self._members(direction)), direction, (1,))

    @without_grad_and_autocast()
    def context(self, direction: int = 0) -> Tensor:
        """Return the sum of all terms at each position, the initial state's among them: (batch, time, hidden).

        For an exact expansion it equals :meth:`states` up to rounding.
        """
        members = self._members(direction)
        total = sum(running_sum(s)[..., s.hidden] for s in members) / len(members)
        assert isinstance(total, Tensor)
        return self._to_tokens(total.transpose(0, 1), direction, (1,))

    def initial(self, direction: int = 0) -> Tensor:
        """Return the initial state's term at each position, the hidden part of A_t … A_1 s_0: (batch, time, hidden)."""
        return self._carried(direction, lambda block: block.initial)

    def older(self, direction: int = 0) -> Tensor:
        """Return the sum of the n-grams longer than ``max_order``, shape (batch, time, hidden); zero without one."""
        return self._carried(direction, lambda block: block.older)

    def states(self, direction: int = 0) -> Tensor:
        """Return the network's own hidden output, shape (batch, time, hidden)."""
        self._check(direction)
        return self.opened.layout.blank(self.opened.outputs[direction]).transpose(0, 1).clone()

    def residual(self, direction: int = 0) -> Tensor:
        """Return the relative error of the sum against the network's own state, ‖context - h‖ / ‖h‖: (batch, time).

        Rounding grows with the largest term. In a long network whose states grow strongly, terms that are many orders
        of magnitude larger than their sum cancel. If an exact expansion leaves more than 1e-3, use float64.
        """
        own = self.states(direction)
        return relative_error(self.context(direction) - own, own)

    def _check(self, direction: int) -> int:
        return checked_direction(direction, self.directions)

    def _members(self, direction: int) -> tuple[AffineSequence, ...]:
        return self.sequences[self._check(direction)]

    def _checked_weight(self, weight: Tensor, direction: int) -> Tensor:
        own = self.opened.outputs[self._check(direction)]
        return checked_weight(weight, own.shape[-1], own)

    def _terms(self, sequence: AffineSequence) -> Iterator[tuple[tuple[int | slice, ...], Tensor]]:
        """Compute all terms, with their places in (batch, end, start, …); a window counts lengths from the back."""
        if self.max_order is None:
            for block in forward_sweep(sequence):
                yield (slice(None), block.time, slice(block.first, block.time + 1)), block.terms
        else:
            for before, terms in enumerate(ngrams_by_length(sequence, self.max_order)):
                yield (slice(None), slice(before, None), self.max_order - 1 - before), terms

    @without_grad_and_autocast()
    def _collect(self, direction: int, read: Callable[[Tensor], Tensor]) -> Tensor:
        """Fill (batch, end, start, …) with ``read`` of the terms' hidden parts."""
        members = self._members(direction)
        time, batch, _ = members[0].g.shape
        columns = time if self.max_order is None else self.max_order
        result: Tensor | None = None
        for sequence in members:
            for places, terms in self._terms(sequence):
                values = read(terms[..., sequence.hidden]).transpose(0, 1)
                if result is None:
                    result = values.new_zeros(batch, time, columns, values.shape[-1])
                result[places].add_(values, alpha=1 / len(members))
        assert result is not None
        return self._to_tokens(result, direction, (1, 2) if self.max_order is None else (1,))

    @without_grad_and_autocast()
    def _carried(self, direction: int, read: Callable[[TermBlock], Tensor]) -> Tensor:
        members = self._members(direction)
        time, batch, _ = members[0].g.shape
        total = members[0].g.new_zeros(batch, time, members[0].layers[-1].cell.output_size)
        for sequence in members:
            for block in forward_sweep(sequence, self.max_order):
                total[:, block.time] += read(block)[..., sequence.hidden] / len(members)
        return self._to_tokens(total, direction, (1,))

    def _to_tokens(self, values: Tensor, direction: int, axes: tuple[int, ...]) -> Tensor:
        """Put the time axes into token order and set padding to zero."""
        self.opened.weights.check()
        time = values.shape[1]
        if direction == 0 and int(self.lengths.min()) == time:
            return values
        index, inside = reversal(self.lengths, time).T, self.opened.layout.inside.T
        for axis in axes:
            shape = [values.shape[0], *(time if k == axis else 1 for k in range(1, values.dim()))]
            if direction == 1:
                values = values.gather(axis, index.view(shape).expand(values.shape))
            values = torch.where(inside.view(shape), values, torch.zeros_like(values))
        return values
