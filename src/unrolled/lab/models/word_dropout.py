"""Some words are not seen: which is how a network learns what to make of one it does not know."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.lab.data.vocabulary import UNKNOWN

__all__ = ["WordDropout"]


class WordDropout(nn.Module):
    """Replace words by ``<unk>`` at random, in training.

    Args:
        rate: the share of words.

    Source:
        Iyyer et al. (2015), Deep Unordered Composition, section 4, which drops them. https://aclanthology.org/P15-1162
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, tokens: Tensor) -> Tensor:
        """Hide some words.

        Args:
            tokens: word indices, int64.

        Returns:
            The same shape; the tokens themselves when the rate is 0, or in eval mode.
        """
        if not (self.training and self.rate):
            return tokens
        return tokens.masked_fill(torch.rand(tokens.shape, device=tokens.device) < self.rate, UNKNOWN)

    def extra_repr(self) -> str:
        """Say the rate."""
        return str(self.rate)
