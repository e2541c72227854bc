r"""From an encoder that has read both ways to a decoder that goes one way."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.cells.recurrent import Recurrent

__all__ = ["DecoderBridge"]


class DecoderBridge(nn.Module):
    r"""Make one state of the final states of both directions, layer by layer.

    .. math:: s = W\,[\overrightarrow{h}_T; \overleftarrow{h}_1] + b

    The layers share W. A state that is more than its hidden output, an LSTM's cell for one, has a second map for the
    rest.

    Args:
        encoder: the bidirectional network.

    Source:
        Ours; Bahdanau et al. (2015), arXiv:1409.0473, appendix A.2.2, begin from the backward state alone.
    """

    def __init__(self, encoder: nn.RNNBase | Recurrent) -> None:
        super().__init__()
        if isinstance(encoder, Recurrent):
            cell = encoder.cell(0, 0)
            sizes = [cell.output_size, cell.state_size - cell.output_size]
        else:
            sizes = [encoder.hidden_size, encoder.hidden_size if isinstance(encoder, nn.LSTM) else 0]
        self.maps = nn.ModuleList(nn.Linear(2 * size, size) for size in sizes if size)

    def forward(self, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Join the two directions.

        Args:
            states: as the encoder gives them: (h_n,) or (h_n, c_n), each of shape (2 · layers, batch, size).

        Returns:
            The same parts, each of shape (layers, batch, size).
        """
        joined = []
        for change, part in zip(self.maps, states, strict=True):
            layers = part.unflatten(0, (-1, 2))
            joined.append(change(torch.cat((layers[:, 0], layers[:, 1]), dim=-1)))
        return tuple(joined)
