"""Attention of a decoder to all states of the encoder."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["LuongAttention"]


class LuongAttention(nn.Module):
    r"""Global attention with the "general" score.

    .. math::
        a_t = \mathrm{softmax}_s(h_t^\top W_a \bar h_s), \quad c_t = \sum_s a_{t,s}\, \bar h_s, \quad
        \tilde h_t = \tanh(W_c [c_t; h_t])

    Args:
        states: Size of the decoder's states h_t.
        memory: Size of the encoder's states.

    Source:
        Luong et al. (2015), Effective Approaches to Attention-based Neural Machine Translation, eq. 5, 7 and 8,
        arXiv:1508.04025; the attentional vector is not fed back to the next step.
    """

    def __init__(self, states: int, memory: int) -> None:
        super().__init__()
        self.score = nn.Linear(memory, states, bias=False)
        self.combine = nn.Linear(memory + states, states, bias=False)

    def forward(self, states: Tensor, memory: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Compute the attentional vectors, shape (batch, positions, states).

        ``states`` has shape (batch, positions, states) and ``memory`` (batch, time, memory); ``lengths`` counts the
        valid states in ``memory``, all when omitted.
        """
        scores = states @ self.score(memory).transpose(1, 2)
        if lengths is not None:
            padding = torch.arange(memory.shape[1], device=memory.device) >= lengths.to(memory.device)[:, None]
            scores = scores.masked_fill(padding[:, None], -torch.inf)
        return torch.tanh(self.combine(torch.cat((scores.softmax(dim=-1) @ memory, states), dim=-1)))
