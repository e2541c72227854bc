"""How a target reads the states of a recurrent network: a weight for each of them, and what they do not contribute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

__all__ = ["Readout"]


@dataclass(frozen=True)
class Readout:
    """The readout of a batch."""

    weights: tuple[Tensor, ...]
    """w_t for each direction, in token order, shape (time, batch, state), in the network's order of sequences."""
    logit: Tensor
    """F(H), the model's output, shape (batch,)."""
    bias: Tensor
    """What the states do not contribute, shape (batch,): F(0), or the biases and constants of a held run."""
    dtype: torch.dtype
    """The type of least precision that the states pass through on their way to F."""
    order: Tensor
    """Index of the network's sequence that each example of the output reads, shape (batch,)."""
    notes: tuple[str, ...] = ()
    biases: Mapping[str, Tensor] = field(default_factory=dict)
    """The parts of the bias by name, each (batch,), where they are known."""
    is_sigmoid: bool = False
    """Whether the target is known to be the result of a sigmoid."""
