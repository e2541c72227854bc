"""The result of :func:`unrolled.decompose` for a deep bidirectional network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.decomposition.recurrences.bidirectional_stack import BidirectionalStack, token_contributions, total_states
from unrolled.decomposition.recurrences.stack_sweep import TokenColumns, layer_sweep, receivers
from unrolled.decomposition.result import Decomposition
from unrolled.model_runs.eval_mode import without_grad_and_autocast

__all__ = ["DeepBidirectionalDecomposition"]


@dataclass(frozen=True, repr=False, eq=False)
class DeepBidirectionalDecomposition(Decomposition):
    """The decomposition of a bidirectional network of several layers, down to its tokens.

    The term of a pair (end, start) is what token ``start`` contributes to the state at ``end``, on either side of it:
    the sum of all n-grams that enter at ``start`` and are read at ``end``.

    Example:
        >>> import torch, unrolled
        >>> rnn = torch.nn.GRU(4, 6, num_layers=2, bidirectional=True, batch_first=True)
        >>> found = unrolled.decompose(rnn, torch.randn(1, 3, 4))
        >>> bool(found.vectors()[0, 0, 2].any())  # the last token reaches the first forward state
        True
        >>> bool(torch.allclose(found.vectors().sum(dim=2), found.states(), atol=1e-5))
        True
    """

    stacks: tuple[BidirectionalStack, ...]
    """The expanded networks whose terms are averaged: one, or several for a mean."""

    @without_grad_and_autocast()
    def scores(self, weight: Tensor, direction: int = 0) -> Tensor:
        """Return the score wᵀ v of every pair of a position and a token, shape (batch, end, start, classes)."""
        weight = self._checked_weight(weight, direction)
        return self._collect(direction, lambda hidden: hidden @ weight.T)

    @without_grad_and_autocast()
    def final_scores(self, weight: Tensor, direction: int = 0) -> Tensor:
        """Return the scores of the tokens where the network stops reading, by one backward sweep.

        Returns:
            Shape (batch, start, classes).
        """
        weight = self._checked_weight(weight, direction)
        layout, total = self.opened.layout, torch.zeros((), device="cpu")
        for stack in self.stacks:
            top = stack.levels[-1][direction]
            time, batch, size = top.g.shape
            last = top.g.new_zeros(len(weight), time, batch, size)
            ends = layout.lengths - 1 if direction == 0 else torch.zeros_like(layout.lengths)
            at_end = weight[:, None].expand(-1, batch, -1)
            last[:, ends, torch.arange(batch, device="cpu"), top.hidden] = at_end
            readout: list[list[Tensor | None]] = [[None, None] for _ in stack.levels]
            readout[-1][direction] = last
            total = total + token_contributions(stack, readout)[0] / len(self.stacks)
        self.opened.weights.check()
        inside = layout.inside.T[..., None]
        found = total.permute(2, 1, 0)
        return torch.where(inside, found, torch.zeros_like(found))

    @without_grad_and_autocast()
    def context(self, direction: int = 0) -> Tensor:
        """Return the sum of all terms at each position, the initial state's among them: (batch, time, hidden)."""
        return self._total(direction, terms=True)

    @without_grad_and_autocast()
    def initial(self, direction: int = 0) -> Tensor:
        """Return the initial states' part of the state at each position, shape (batch, time, hidden)."""
        return self._total(direction, terms=False)

    def older(self, direction: int = 0) -> Tensor:
        """Return zero: every token has its own term."""
        return torch.zeros_like(self.states(direction))

    @without_grad_and_autocast()
    def _collect(self, direction: int, read: Callable[[Tensor], Tensor]) -> Tensor:
        """Fill (batch, end, start, …) with ``read`` of each token's part of the top layer's hidden states."""
        way = self._check(direction)
        total = torch.zeros((), device="cpu")
        for stack in self.stacks:
            top, columns = stack.levels[-1][way], TokenColumns(self.opened.layout.time)
            *_, received = receivers(stack, columns)
            blocks = layer_sweep(top, columns, received[way], lowest=False)
            total = total + torch.stack([read(block[..., top.hidden]) for block in blocks]) / len(self.stacks)
        return self._to_tokens(total.permute(2, 0, 1, 3), direction, (1, 2))

    def _total(self, direction: int, terms: bool) -> Tensor:
        way = self._check(direction)
        total = sum((total_states(stack, terms)[way] for stack in self.stacks), torch.zeros((), device="cpu"))
        self.opened.weights.check()
        return self.opened.layout.blank(total / len(self.stacks)).transpose(0, 1)
