"""Which positions of a padded batch are padding."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["padding_mask"]


def padding_mask(padded: Tensor, lengths: Tensor) -> Tensor:
    """Return the mask of the positions behind the ends of sequences, shape (batch, time), on the device of ``padded``.

    ``padded`` has the shape (batch, time, …), ``lengths`` (batch,).
    """
    return torch.arange(padded.shape[1], device=padded.device) >= lengths.to(padded.device)[:, None]
