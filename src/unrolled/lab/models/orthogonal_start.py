"""Weight matrices that start orthogonal: a matrix changes the length of no vector that it keeps.

Source:
    Saxe et al. (2014), arXiv:1312.6120.
"""

from __future__ import annotations

from torch import nn

from unrolled.errors import UsageError

__all__ = ["start_orthogonal"]


def start_orthogonal(encoder: nn.Module, name: str) -> None:
    """Draw every matrix of an encoder with orthogonal columns, or rows where they are fewer.

    The matrix of several gates, such as ``weight_hh_l0`` of an LSTM, is one matrix.

    Raises:
        UsageError: The encoder has no matrix; the message shows its ``name``.
    """
    matrices = [weight for weight in encoder.parameters() if weight.dim() == 2]
    if not matrices:
        raise UsageError(f"orthogonal is True, but the encoder is {name}, whose weights hold no matrix; leave it out")
    for weight in matrices:
        nn.init.orthogonal_(weight)
