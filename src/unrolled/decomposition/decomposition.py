r"""The states of a recurrent network as sums of n-gram terms.

.. math:: h_t = \sum_{i \le t} v_{i:t} + A_t … A_1 s_0, \qquad v_{i:t} = A_t … A_{i+1} g_i
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from unrolled.cells.base import Cell
from unrolled.cells.batch_layout import InitialState, Lengths, reversal
from unrolled.decomposition.affine_sequence import AffineSequence, expand
from unrolled.decomposition.arguments import checked_direction, checked_order, checked_tolerance, readout_rows
from unrolled.decomposition.eval_mode import plain_arithmetic, through_pre_hooks
from unrolled.decomposition.open_network import Network, Opened, open_network
from unrolled.decomposition.sweeps import Block, adjoint, blocks, running, scores
from unrolled.expansions import resolve
from unrolled.expansions.base import Expansion
from unrolled.linalg.relative_error import relative_error

__all__ = ["Decomposition", "decompose"]


@dataclass(frozen=True, repr=False)
class Decomposition:
    """What :func:`decompose` returns: the affine recurrences, from which terms, sums and scores are read.

    Positions are those of the tokens in both directions: in the backward one (``direction=1``) a term that entered at
    token ``start`` is read at ``end <= start``. Whatever lies beyond a sequence's length is zero. Nothing is computed
    before it is asked for, of weights shared with the network, and no result carries a gradient.
    """

    expansion: Expansion
    opened: Opened
    sequences: tuple[tuple[AffineSequence, ...], ...]
    """For each direction the affine recurrences whose terms are averaged: one, but for a mean."""
    max_order: int | None
    """How many tokens the longest n-gram spans, at most the padded length; None for all."""

    @property
    def parity(self) -> float:
        """The largest difference between our states and the network's own."""
        return self.opened.parity

    @property
    def lengths(self) -> Tensor:
        """How many tokens each sequence has, shape (batch,)."""
        return self.opened.lengths

    @property
    def scope(self) -> str:
        """What the n-grams are n-grams of: ``"tokens"``, or the inputs of a bidirectional stack's top layer."""
        return self.opened.scope

    @property
    def directions(self) -> int:
        """How many directions the network reads in: 1 or 2."""
        return len(self.sequences)

    def __repr__(self) -> str:
        time, batch, hidden = self.opened.outputs[0].shape
        sizes = f"batch={batch}, time={time}, hidden={hidden}, directions={self.directions}"
        return f"Decomposition({self.expansion}: {sizes}, max_order={self.max_order}, parity={self.parity:.2g})"

    def vectors(self, direction: int = 0) -> Tensor:
        """Give every n-gram's term v_{start:end}, the hidden part.

        It holds batch · time² · hidden numbers; :meth:`scores` does not.

        Args:
            direction: 0 forward, 1 backward.

        Returns:
            Shape (batch, end, start, hidden). With ``max_order=N`` the third axis has N columns (never more than time)
            counted from the end: the last is the unigram, the one before it the bigram.
        """
        return self._collect(direction, lambda hidden: hidden)

    @plain_arithmetic()
    def scores(self, weight: Tensor, direction: int = 0) -> Tensor:
        """Score every n-gram at every position without holding its vector: wᵀ v_{start:end}.

        Args:
            weight: w of each class, shape (classes, hidden) or (hidden,) for one.
            direction: 0 forward, 1 backward.

        Returns:
            Shape (batch, end, start, classes); the third axis as in :meth:`vectors`.

        Raises:
            ShapeError: when the weight does not fit the hidden output.
            NonFiniteError: when the weight is NaN or infinite.
        """
        weight = self._weight(weight, direction)
        if self.max_order is not None:
            return self._collect(direction, lambda hidden: hidden @ weight.T)
        members = self._sequences(direction)
        total: Tensor | None = None
        for sequence in members:
            whole = weight.new_zeros(weight.shape[0], sequence.g.shape[-1])
            whole[:, sequence.hidden] = weight
            found = scores(sequence, whole) / len(members)
            total = found if total is None else total + found
        assert total is not None
        return self._to_tokens(total.permute(3, 0, 1, 2), direction, (1, 2))

    @plain_arithmetic()
    def final_scores(self, weight: Tensor, direction: int = 0) -> Tensor:
        """Score the n-grams that end where the network stops reading, by one adjoint sweep.

        It is the last row of :meth:`scores` (the first position's, backward) at the price of a backward pass.

        Args:
            weight: w of each class, shape (classes, hidden) or (hidden,) for one.
            direction: 0 forward, 1 backward.

        Returns:
            Shape (batch, start, classes).

        Raises:
            ShapeError: when the weight does not fit the hidden output.
            NonFiniteError: when the weight is NaN or infinite.
        """
        weight = self._weight(weight, direction)
        lengths = self.lengths
        total: Tensor | None = None
        for sequence in self._sequences(direction):
            time, batch, size = sequence.g.shape
            readout = sequence.g.new_zeros(time, weight.shape[0], batch, size)
            last = torch.zeros_like(readout[0])
            last[..., sequence.hidden] = weight[:, None]
            readout[lengths - 1, :, torch.arange(batch)] = last.transpose(0, 1)
            starts, _ = adjoint(sequence, readout)
            total = starts if total is None else total + starts
        assert total is not None
        return self._to_tokens(total.permute(2, 0, 1) / len(self._sequences(direction)), direction, (1,))

    @plain_arithmetic()
    def context(self, direction: int = 0) -> Tensor:
        """Sum everything that ends at each position: the hidden state as the expansion has it.

        Args:
            direction: 0 forward, 1 backward.

        Returns:
            Σ_i v_{i:t} and what is left of the initial state, shape (batch, time, hidden).
        """
        members = self._sequences(direction)
        total = sum(running(s)[..., s.hidden] for s in members) / len(members)
        assert isinstance(total, Tensor)
        return self._to_tokens(total.transpose(0, 1), direction, (1,))

    def initial(self, direction: int = 0) -> Tensor:
        """Give what is left of the initial state at each position: the hidden part of A_t … A_1 s_0.

        Args:
            direction: 0 forward, 1 backward.

        Returns:
            Shape (batch, time, hidden).
        """
        return self._carried(direction, lambda block: block.initial)

    def older(self, direction: int = 0) -> Tensor:
        """Give the sum of the n-grams longer than ``max_order``, so that nothing is lost by the window.

        Args:
            direction: 0 forward, 1 backward.

        Returns:
            Shape (batch, time, hidden); zero without ``max_order``.
        """
        return self._carried(direction, lambda block: block.older)

    def states(self, direction: int = 0) -> Tensor:
        """Give the network's own hidden output.

        Args:
            direction: 0 forward, 1 backward.

        Returns:
            Shape (batch, time, hidden).
        """
        self._sequences(direction)
        return self.opened.layout.blank(self.opened.outputs[direction]).transpose(0, 1).clone()

    def residual(self, direction: int = 0) -> Tensor:
        """Measure how far the sum is from the network's own state: ‖context - h‖ / ‖h‖.

        Rounding grows with the largest term. A long, strongly growing network has terms many orders above their sum,
        which cancel: where an exact expansion leaves more than 1e-3, float64 is needed, or the sum cannot be had.

        Args:
            direction: 0 forward, 1 backward.

        Returns:
            Relative error, shape (batch, time).
        """
        own = self.states(direction)
        return relative_error(self.context(direction) - own, own)

    def _sequences(self, direction: int) -> tuple[AffineSequence, ...]:
        return self.sequences[checked_direction(direction, self.directions)]

    def _weight(self, weight: Tensor, direction: int) -> Tensor:
        first = self._sequences(direction)[0]
        return readout_rows(weight, first.layers[-1].cell.output_size, first.g)

    def _blocks(self, direction: int) -> Iterator[tuple[AffineSequence, Block]]:
        for sequence in self._sequences(direction):
            for block in blocks(sequence, self.max_order):
                yield sequence, block

    @plain_arithmetic()
    def _collect(self, direction: int, read: Callable[[Tensor], Tensor]) -> Tensor:
        """Fill (batch, end, start, …) with what ``read`` makes of each block's hidden part."""
        members = self._sequences(direction)
        time, batch, _ = members[0].g.shape
        columns = time if self.max_order is None else self.max_order
        result: Tensor | None = None
        for sequence, block in self._blocks(direction):
            values = read(block.terms[..., sequence.hidden]).transpose(0, 1)
            if result is None:
                result = values.new_zeros(batch, time, columns, values.shape[-1])
            # the full triangle counts starts from the front, a window counts orders from the back
            stop = block.time + 1 if self.max_order is None else columns
            result[:, block.time, stop - values.shape[1] : stop].add_(values, alpha=1 / len(members))
        assert result is not None
        return self._to_tokens(result, direction, (1, 2) if self.max_order is None else (1,))

    @plain_arithmetic()
    def _carried(self, direction: int, read: Callable[[Block], Tensor]) -> Tensor:
        members = self._sequences(direction)
        time, batch, _ = members[0].g.shape
        total = members[0].g.new_zeros(batch, time, members[0].layers[-1].cell.output_size)
        for sequence, block in self._blocks(direction):
            total[:, block.time] += read(block)[..., sequence.hidden] / len(members)
        return self._to_tokens(total, direction, (1,))

    def _to_tokens(self, values: Tensor, direction: int, axes: tuple[int, ...]) -> Tensor:
        """Turn reading order into token order and blank the padding, along the given time axes."""
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


@torch.no_grad()
def decompose(
    rnn: Network | Cell,
    inputs: Tensor | PackedSequence,
    lengths: Lengths = None,
    state: InitialState = None,
    *,
    expansion: str | Expansion = "path",
    max_order: int | None = None,
    tolerance: float = 1e-6,
) -> Decomposition:
    r"""Rewrite every hidden state of a recurrent network as a sum of n-gram terms.

    .. math:: h_t = \sum_{i \le t} A_t … A_{i+1} g_i + A_t … A_1 s_0

    A uni-directional stack is decomposed down to its inputs; a bidirectional stack over the inputs of its top layer,
    and ``scope`` says so. The network is opened in evaluation mode and left as it was; of its hooks those alone are run
    that come before its forward pass. Terms sum but for rounding, which grows with the largest of them: where terms
    outgrow their sum, in a long, strongly growing network, :meth:`Decomposition.residual` says so.

    Args:
        rnn: a ``torch.nn.RNN``, ``GRU`` or ``LSTM``, a network of :func:`unrolled.cells.recurrent`, or one cell.
        inputs: token vectors, as one would give them to the network: padded, unbatched or packed.
        lengths: of the sequences in a padded batch, shape (batch,).
        state: the initial state, as the network takes it; for a cell, flat, shape (batch, state).
        expansion: ``"path"``, ``"operating"``, ``"gates"`` or a mean of them for terms that sum to the state;
            ``"zero"`` or ``"activation"`` for terms that depend on their own tokens alone.
        max_order: the longest n-gram to keep apart, None for all; longer are summed up in :meth:`Decomposition.older`.
        tolerance: relative error over the sequence that ``path`` integrates to.

    Returns:
        The decomposition. Half-precision networks are decomposed in float32, and autocast is off meanwhile.

    Raises:
        ShapeError: when inputs, lengths or state do not fit the network.
        UnknownNameError: when there is no such expansion.
        NonFiniteError: when a weight or an input is NaN or infinite.
        ParityError: when our states differ from the network's by more than rounding.
        UsageError: when an argument is out of its range.

    Example:
        >>> import torch, unrolled
        >>> rnn = torch.nn.GRU(8, 16, batch_first=True)
        >>> found = unrolled.decompose(rnn, torch.randn(2, 5, 8))
        >>> found.vectors().shape
        torch.Size([2, 5, 5, 16])
        >>> bool(torch.allclose(found.vectors().sum(2), rnn(torch.randn(2, 5, 8))[0], atol=1e-5))
        False
        >>> bool(found.residual().max() < 1e-5)
        True
    """
    chosen = resolve(expansion)
    order, per_sequence = checked_order(max_order), checked_tolerance(tolerance)
    if isinstance(rnn, Network):
        inputs, state = through_pre_hooks(rnn, inputs, state)
    opened = open_network(rnn, inputs, lengths, state)
    sequences = tuple(
        tuple(expand(layers, member, per_sequence) for member in chosen.members()) for layers in opened.directions
    )
    # no n-gram is longer than the sequences: a window wider than that would only hold zeros
    held = order if order is None else min(order, opened.layout.time)
    return Decomposition(chosen, opened, sequences, held)
