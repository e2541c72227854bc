"""Recurrent weights that start at the identity, biases at zero: with relu, an empty input leaves the state unchanged.

Source:
    Le et al. (2015), arXiv:1504.00941; CS 224D notes, part IV, section 2.2.
"""

from __future__ import annotations

from torch import nn

from unrolled.cells.elman import Elman
from unrolled.cells.recurrent import Recurrent
from unrolled.errors import UsageError

__all__ = ["start_at_identity"]


def start_at_identity(encoder: nn.Module, name: str) -> None:
    """Set the recurrent weights of an Elman network to the identity and its biases to zero.

    Raises:
        UsageError: The encoder has gates or is not recurrent; the message shows its ``name``.
    """
    if isinstance(encoder, Recurrent) and all(isinstance(cell, Elman) for cell in encoder.cells):
        for cell in encoder.cells:
            cell.initialise_identity()  # type: ignore[operator]  # every cell is an Elman cell
    elif type(encoder) is nn.RNN:
        for key, weight in encoder.named_parameters():
            if key.startswith("weight_hh"):
                nn.init.eye_(weight)
            elif key.startswith("bias"):
                nn.init.zeros_(weight)
    else:
        raise UsageError(f"identity is True, but the encoder is {name}; expected rnn or elman, which have no gates")
