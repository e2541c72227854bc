"""Run an encoder over a padded batch so that padding does not affect the result.

In evaluation mode sequences are packed, so that code that observes the network sees each sequence at its own length. In
training the network runs over the padding, which is then set to zero: the time of torch's backward pass through a
packed batch on a CPU grows with the square of its length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from unrolled.cells.batch_layout import read_batch
from unrolled.errors import ShapeError, UsageError
from unrolled.lab.models.evaluation_mode import evaluation_mode

__all__ = [
    "check_batch_first",
    "check_tokens",
    "checked_lengths",
    "reads_ahead",
    "run_encoder",
    "run_packed",
    "run_padded_encoder",
]

_RNN_FUNCTIONS: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {
    "GRU": torch.gru,
    "RNN_TANH": torch.rnn_tanh,
    "RNN_RELU": torch.rnn_relu,
}


def check_batch_first(name: str, network: nn.Module) -> None:
    """Reject a network with ``batch_first=False``."""
    if not getattr(network, "batch_first", True):
        raise UsageError(f"the {name} has batch_first=False; expected True")


def check_tokens(name: str, tokens: Tensor) -> None:
    """Reject tokens that are not a batch of at least one token, of shape (batch, time)."""
    if tokens.ndim != 2 or 0 in tokens.shape:
        raise ShapeError(f"{name} have shape {tuple(tokens.shape)}; expected (batch, time), neither of them 0")


def checked_lengths(lengths: Tensor | None, shape: Sequence[int]) -> Tensor | None:
    """Check the lengths of sequences in a batch of shape (batch, time, …); return None if no sequence is padded.

    Raises:
        ShapeError: There is not one length for each sequence.
        UsageError: A length is outside 1..time.
    """
    if lengths is None:
        return None
    batch, time = shape[:2]
    if lengths.shape != (batch,):
        raise ShapeError(f"lengths have shape {tuple(lengths.shape)}; expected ({batch},), one for each sequence")
    shortest, longest = torch.aminmax(lengths)
    if shortest < 1 or longest > time:
        raise UsageError(f"lengths are between {shortest} and {longest}; expected 1 to {time}")
    return None if shortest == time else lengths


def run_packed(network: nn.Module, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, object]:
    """Run a network over a packed batch; return its outputs, zero at padding, and its final state."""
    packed = pack_padded_sequence(vectors, lengths.cpu(), batch_first=True, enforce_sorted=False)
    outputs, final = network(packed)
    return pad_packed_sequence(outputs, batch_first=True, total_length=vectors.shape[1])[0], final


def run_encoder(encoder: nn.Module, vectors: Tensor, lengths: Tensor | None = None) -> Tensor:
    """Run an encoder over a padded batch.

    Args:
        encoder: A batch-first network with the interface of ``torch.nn.RNN``, in any direction.
        vectors: Token vectors, shape (batch, time, input).
        lengths: Number of tokens of each sequence, shape (batch,); the full time when omitted.

    Returns:
        The output at every position, shape (batch, time, features); zero at padding.

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
    return run_packed(encoder, vectors, lengths)[0]


def run_padded_encoder(encoder: nn.Module, vectors: Tensor, lengths: Tensor) -> Tensor:
    """Compute :func:`run_encoder` without packing, which makes the backward pass fast.

    The forward direction reaches padding only after the sequence, and the backward direction starts after padding.
    """
    if not isinstance(encoder, nn.RNNBase):
        return encoder(vectors, lengths=lengths)[0]
    inputs, layout = read_batch(vectors, encoder.input_size, True, lengths)
    if not encoder.bidirectional:
        return layout.blank(encoder(vectors)[0].transpose(0, 1)).transpose(0, 1)
    for layer in range(encoder.num_layers):
        if layer:
            inputs = dropout(inputs, encoder.dropout, encoder.training)
        forward, backward = encoder.all_weights[2 * layer : 2 * layer + 2]
        reversed_ = _run_direction(encoder, backward, layout.reverse(inputs))
        inputs = torch.cat((_run_direction(encoder, forward, inputs), layout.reverse(reversed_)), dim=-1)
    return layout.blank(inputs).transpose(0, 1)


def _run_direction(network: nn.RNNBase, weights: Sequence[Tensor], inputs: Tensor) -> Tensor:
    """Run one layer and direction of a network of torch.nn over inputs of shape (time, batch, features)."""
    state = inputs.new_zeros(1, inputs.shape[1], network.proj_size or network.hidden_size)
    given = list(weights)
    if network.mode == "LSTM":
        cells = inputs.new_zeros(1, inputs.shape[1], network.hidden_size)
        return torch.lstm(inputs, (state, cells), given, network.bias, 1, 0.0, True, False, False)[0]
    return _RNN_FUNCTIONS[network.mode](inputs, state, given, network.bias, 1, 0.0, True, False, False)[0]


def reads_ahead(encoder: nn.Module, input_size: int) -> bool:
    """Test whether a token changes the context of an earlier one, so that the encoder cannot predict the next token.

    Example:
        >>> import torch
        >>> reads_ahead(torch.nn.GRU(3, 5, batch_first=True), 3)
        False
    """
    like = next(encoder.parameters(), torch.empty(0))  # mm has no parameters
    here = like.new_ones(2, 2, input_size)
    here[1, 1] = -1.0
    with evaluation_mode(encoder), torch.no_grad():
        first, other = run_encoder(encoder, here)[:, 0]
    return not torch.allclose(first, other, rtol=1e-4, atol=1e-6)
