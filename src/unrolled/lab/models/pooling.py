"""Pooling: from all states of a sequence to one vector.

Each module is called with the states, shape (batch, time, features), and the lengths, shape (batch,), or None if no
sequence is padded. The result, shape (batch, features), does not depend on padding.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from unrolled.errors import ShapeError
from unrolled.lab.models.padding_mask import padding_mask

__all__ = ["POOLINGS", "AttentionPooling", "EndStates", "LastState", "MaxPooling", "MeanPooling"]


def _is_padding(states: Tensor, lengths: Tensor) -> Tensor:
    """Return the mask of padded positions, shape (batch, time, 1)."""
    return padding_mask(states, lengths).unsqueeze(-1)


def _last(states: Tensor, lengths: Tensor | None) -> Tensor:
    """Select the state of the last token of each sequence, shape (batch, features)."""
    if lengths is None:
        return states[:, -1]
    return states[torch.arange(len(states)), lengths.to(states.device) - 1]


class LastState(nn.Module):
    """The final state of each direction: at the last token forward, at the first token backward.

    Args:
        directions: 1, or 2 for a bidirectional network, whose features are split between the directions.
    """

    def __init__(self, directions: int = 1) -> None:
        super().__init__()
        self.directions = directions

    def forward(self, states: Tensor, lengths: Tensor | None) -> Tensor:
        """Select the final states."""
        if states.shape[-1] % self.directions:
            raise ShapeError(
                f"states have {states.shape[-1]} features; expected a multiple of the {self.directions} directions"
            )
        forward, *backward = states.chunk(self.directions, dim=-1)
        return torch.cat([_last(forward, lengths), *(states[:, 0] for states in backward)], dim=-1)


class EndStates(nn.Module):
    """The states of the first and of the last token, one after the other: (batch, 2 · features).

    Source:
        Luan et al. (2019), arXiv:1904.03296, for spans; Implicit n-grams, footnote 10, for the Transformer.
    """

    def forward(self, states: Tensor, lengths: Tensor | None) -> Tensor:
        """Join the two states."""
        return torch.cat([states[:, 0], _last(states, lengths)], dim=-1)


class MeanPooling(nn.Module):
    """The mean of all states."""

    def forward(self, states: Tensor, lengths: Tensor | None) -> Tensor:
        """Average over time."""
        if lengths is None:
            return states.mean(dim=1)
        kept = states.masked_fill(_is_padding(states, lengths), 0.0)
        return kept.sum(dim=1) / lengths.to(states)[:, None]


class MaxPooling(nn.Module):
    """The maximum of each feature over time."""

    def forward(self, states: Tensor, lengths: Tensor | None) -> Tensor:
        """Take the maximum over time."""
        if lengths is not None:
            states = states.masked_fill(_is_padding(states, lengths), -torch.inf)
        return states.amax(dim=1)


class AttentionPooling(nn.Module):
    r"""A weighted mean with learned weights, for states of size ``features``.

    .. math:: p = \sum_t a_t h_t, \quad a = \mathrm{softmax}_t(v^\top \tanh(W h_t + b))

    Source:
        Yang et al. (2016), Hierarchical Attention Networks, eq. 5-7. https://aclanthology.org/N16-1174
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.project = nn.Linear(features, features)
        self.score = nn.Linear(features, 1, bias=False)

    def forward(self, states: Tensor, lengths: Tensor | None) -> Tensor:
        """Average the states with their attention weights."""
        scores = self.score(torch.tanh(self.project(states)))
        if lengths is not None:
            scores = scores.masked_fill(_is_padding(states, lengths), -torch.inf)
        return (scores.softmax(dim=1) * states).sum(dim=1)


POOLINGS: dict[str, Callable[[int, int], nn.Module]] = {
    "last": lambda directions, _: LastState(directions),
    "ends": lambda *_: EndStates(),
    "mean": lambda *_: MeanPooling(),
    "max": lambda *_: MaxPooling(),
    "attention": lambda _, features: AttentionPooling(features),
}
"""How to build a pooling, by name, from the number of directions and of features."""
