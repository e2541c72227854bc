"""Word dropout, from which a network learns a representation of unknown words."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.lab.data.vocabulary import UNKNOWN

__all__ = ["WordDropout"]


class WordDropout(nn.Module):
    """Replace each word by ``<unk>`` with probability ``rate`` in training mode.

    Source:
        Iyyer et al. (2015), Deep Unordered Composition, section 4, which drops the words.
        https://aclanthology.org/P15-1162
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, tokens: Tensor) -> Tensor:
        """Return word indices of the same shape."""
        if not (self.training and self.rate):
            return tokens
        return tokens.masked_fill(torch.rand(tokens.shape, device=tokens.device) < self.rate, UNKNOWN)

    def extra_repr(self) -> str:
        """Show the rate."""
        return str(self.rate)
