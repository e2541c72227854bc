"""An encoder over padded batches, none of which padding reaches.

Where a model is opened or judged, padding is packed away, so that whoever watches the network sees each sequence as
long as it is. In training padding is run over and blanked: on a CPU the time that torch takes back through a packed
batch grows with the square of its length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from unrolled.cells.batch_layout import read_batch
from unrolled.errors import ShapeError, UsageError

__all__ = ["checked_lengths", "reads_ahead", "run_encoder", "run_padded_encoder"]

_PLAIN: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {
    "GRU": torch.gru,
    "RNN_TANH": torch.rnn_tanh,
    "RNN_RELU": torch.rnn_relu,
}


def checked_lengths(lengths: Tensor | None, shape: Sequence[int]) -> Tensor | None:
    """Check lengths, and forget them where no sequence is padded.

    Args:
        lengths: how many tokens each sequence has, shape (batch,); all of them when None.
        shape: of what they are the lengths of: (batch, time, …).

    Returns:
        The lengths; None when every sequence fills its row.

    Raises:
        ShapeError: when there is not one length for each sequence.
        UsageError: when a length lies outside 1..time.
    """
    if lengths is None:
        return None
    batch, time = shape[:2]
    if lengths.shape != (batch,):
        raise ShapeError(f"lengths have shape {tuple(lengths.shape)}; expected ({batch},), one for each sequence")
    shortest, longest = torch.aminmax(lengths)
    if shortest < 1 or longest > time:
        raise UsageError(f"lengths lie between {shortest} and {longest}; expected 1 to {time}")
    return None if shortest == time else lengths


def run_encoder(encoder: nn.Module, vectors: Tensor, lengths: Tensor | None = None) -> Tensor:
    """Run an encoder over a padded batch.

    Padding never reaches it, whichever way it reads.

    Args:
        encoder: a batch-first network with the interface of ``torch.nn.RNN``.
        vectors: of the tokens, shape (batch, time, input).
        lengths: how many tokens each sequence has, shape (batch,); all of them when left out.

    Returns:
        Its output at every position, shape (batch, time, features); zero at padding.

    Example:
        >>> import torch
        >>> run_encoder(torch.nn.GRU(3, 5, batch_first=True), torch.randn(2, 4, 3), torch.tensor([4, 2])).shape
        torch.Size([2, 4, 5])
    """
    lengths = checked_lengths(lengths, vectors.shape)
    if lengths is None:
        return encoder(vectors)[0]
    if encoder.training and torch.is_grad_enabled():
        return run_padded_encoder(encoder, vectors, lengths)
    packed = pack_padded_sequence(vectors, lengths.cpu(), batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(encoder(packed)[0], batch_first=True, total_length=vectors.shape[1])[0]


def run_padded_encoder(encoder: nn.Module, vectors: Tensor, lengths: Tensor) -> Tensor:
    """Run an encoder over a padded batch without packing it: what gradients go back through fast.

    Padding comes too late for what reads forward, and what reads back begins behind it.

    Args:
        encoder: a network of ``torch.nn``, or one that takes lengths; batch-first.
        vectors: of the tokens, shape (batch, time, input).
        lengths: how many tokens each sequence has, shape (batch,).

    Returns:
        As :func:`contexts`.
    """
    if not isinstance(encoder, nn.RNNBase):
        return encoder(vectors, lengths=lengths)[0]
    inputs, layout = read_batch(vectors, encoder.input_size, True, lengths)
    if not encoder.bidirectional:
        return layout.blank(encoder(vectors)[0].transpose(0, 1)).transpose(0, 1)
    for layer in range(encoder.num_layers):
        if layer:
            inputs = dropout(inputs, encoder.dropout, encoder.training)
        ahead, back = encoder.all_weights[2 * layer : 2 * layer + 2]
        reversed_ = _one_way(encoder, back, layout.reverse(inputs))
        inputs = torch.cat((_one_way(encoder, ahead, inputs), layout.reverse(reversed_)), dim=-1)
    return layout.blank(inputs).transpose(0, 1)


def _one_way(network: nn.RNNBase, weights: Sequence[Tensor], inputs: Tensor) -> Tensor:
    """Run one layer of a network of torch.nn in one direction, inputs of shape (time, batch, features)."""
    state = inputs.new_zeros(1, inputs.shape[1], network.proj_size or network.hidden_size)
    given = list(weights)
    if network.mode == "LSTM":
        cells = inputs.new_zeros(1, inputs.shape[1], network.hidden_size)
        return torch.lstm(inputs, (state, cells), given, network.bias, 1, 0.0, True, False, False)[0]
    return _PLAIN[network.mode](inputs, state, given, network.bias, 1, 0.0, True, False, False)[0]


def reads_ahead(encoder: nn.Module, input_size: int) -> bool:
    """Try whether what stands behind a token changes its context: what predicts the next token must not see it.

    Args:
        encoder: a batch-first network with the interface of ``torch.nn.RNN``; its mode is left as it was.
        input_size: of a token's vector.

    Returns:
        Whether it does.

    Example:
        >>> import torch
        >>> reads_ahead(torch.nn.GRU(3, 5, batch_first=True), 3)
        False
    """
    like = next(encoder.parameters(), torch.empty(0))  # products of matrices have none of their own
    here = like.new_ones(2, 2, input_size)
    here[1, 1] = -1.0
    was = encoder.training
    encoder.eval()
    with torch.no_grad():
        first, other = run_encoder(encoder, here)[:, 0]
    encoder.train(was)
    return not torch.allclose(first, other, rtol=1e-4, atol=1e-6)
