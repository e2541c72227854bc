r"""Encoder and decoder: the encoder reads one sequence to its end, the decoder produces another word by word.

.. math::
    h_t = \phi(h_{t-1}, x_t) \quad\text{for the source,} \qquad
    h_t = \phi(h_{t-1}) \quad\text{for the translation,} \qquad
    y_t = \mathrm{softmax}(W^{(S)} h_t)

The extensions of the lecture notes are optional: a decoder with its own weights (I); a decoder that also reads the
encoder's last state c = h_T and the previous word, h_t = φ(h_{t-1}, c, y_{t-1}) (II); networks of several layers (III);
a bidirectional encoder (IV). For a reversed source (V) reverse the source.

Source:
    CS 224d, Lecture Notes 4, section 2.4, eq. 23-27; Sutskever et al. (2014), arXiv:1409.3215; Cho et al. (2014),
    arXiv:1406.1078.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.cells.recurrent import Recurrent
from unrolled.errors import ShapeError, UsageError
from unrolled.lab.models.padding_mask import padding_mask
from unrolled.lab.models.run_encoder import check_batch_first, check_tokens, checked_lengths, run_packed
from unrolled.lab.models.state_parts import StateParts, from_parts, to_parts

__all__ = ["DecodingState", "LuongAttention", "RecurrentNetwork", "SequenceToSequence"]


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
            scores = scores.masked_fill(padding_mask(memory, lengths)[:, None], -torch.inf)
        return torch.tanh(self.combine(torch.cat((scores.softmax(dim=-1) @ memory, states), dim=-1)))


RecurrentNetwork = nn.RNNBase | Recurrent


@dataclass(frozen=True)
class DecodingState:
    """What a decoder continues from, for a batch of sources."""

    state: StateParts
    """The state of the decoder: (h,) or (h, rest), each of shape (layers, batch, …)."""
    last: Tensor
    """c = h_T, the encoder's last state in each direction, shape (batch, features)."""
    memory: Tensor
    """The encoder's states at every word, shape (batch, time, features)."""
    lengths: Tensor | None
    """Number of words of each source, shape (batch,); None if no source is padded."""

    def select(self, rows: Tensor) -> DecodingState:
        """Select rows by index, shape (n,), int64; an index may occur more than once."""
        return DecodingState(
            tuple(part[:, rows] for part in self.state),
            self.last[rows],
            self.memory[rows],
            None if self.lengths is None else self.lengths[rows],
        )


class _DecoderBridge(nn.Module):
    r"""Map the final states of both directions of an encoder to the initial state of a decoder, layer by layer.

    .. math:: s = W\,[\overrightarrow{h}_T; \overleftarrow{h}_1] + b

    The layers share W. The part of a state that is not its hidden output, such as an LSTM's cell, has its own map.

    Source:
        Ours; Bahdanau et al. (2015), arXiv:1409.0473, appendix A.2.2, start from the backward state alone.
    """

    def __init__(self, encoder: RecurrentNetwork) -> None:
        super().__init__()
        if isinstance(encoder, Recurrent):
            cell = encoder.cell(0, 0)
            sizes = [cell.output_size, cell.state_size - cell.output_size]
        else:
            sizes = [encoder.hidden_size, encoder.hidden_size if isinstance(encoder, nn.LSTM) else 0]
        self.maps = nn.ModuleList(nn.Linear(2 * size, size) for size in sizes if size)

    def forward(self, states: StateParts) -> StateParts:
        """Map (h_n,) or (h_n, c_n), each of shape (2 · layers, batch, size), to shape (layers, batch, size)."""
        joined = []
        for map_, part in zip(self.maps, states, strict=True):
            layers = part.unflatten(0, (-1, 2))
            joined.append(map_(torch.cat((layers[:, 0], layers[:, 1]), dim=-1)))
        return tuple(joined)


class SequenceToSequence(nn.Module):
    """Compute the logits of every word of a translation, each after the correct words before it.

    The logits of a word depend only on the source without its padding and on the words before it.

    Args:
        source: From indices of source words to vectors.
        encoder: A batch-first recurrent network.
        decoder: A one-directional network with as many layers and the same state sizes as the encoder; None if the
            encoder, which must then be one-directional, is also the decoder.
        target: From indices of previous words to vectors, for extension II; None without it. The decoder reads these
            vectors concatenated with c. An encoder that is also the decoder reads zeros in place of c.
        head: From the decoder's output to the logits.
        attention: Attention to all states of the encoder; None for none.
        dropout: Dropout probability of the features of word vectors and of the head's input.

    Raises:
        UsageError: The networks do not fit together.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> encoder, decoder = nn.GRU(8, 16, batch_first=True), nn.GRU(8 + 16, 16, batch_first=True)
        >>> model = SequenceToSequence(
        ...     nn.Embedding(20, 8), encoder, decoder, nn.Embedding(30, 8), nn.Linear(16, 30)
        ... )
        >>> model(torch.randint(20, (2, 5)), torch.randint(30, (2, 7))).shape
        torch.Size([2, 7, 30])
    """

    def __init__(
        self,
        source: nn.Module,
        encoder: RecurrentNetwork,
        decoder: RecurrentNetwork | None,
        target: nn.Module | None,
        head: nn.Module,
        attention: LuongAttention | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        _check_networks(encoder, decoder)
        self.source = source
        self.encoder = encoder
        self.decoder = decoder
        self.target = target
        self.bridge = _DecoderBridge(encoder) if encoder.bidirectional else None
        self.attention = attention
        self.head = head
        self.dropout = nn.Dropout(dropout)

    def forward(self, source: Tensor, previous: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Compute the logits of whole translations.

        Args:
            source: Word indices, shape (batch, time), int64.
            previous: The word before each position of the translation, shape (batch, positions), int64; without
                extension II only its shape matters.
            lengths: Number of words of each source, shape (batch,); the full time when omitted.

        Returns:
            Logits, shape (batch, positions, words).

        Raises:
            ShapeError: The source and the previous words are not of the same number of sentences.
        """
        if previous.dim() != 2 or len(previous) != len(source):
            raise ShapeError(
                f"previous words have shape {tuple(previous.shape)}; expected ({len(source)}, positions), "
                "one row for each source"
            )
        return self._decode(previous, self.begin(source, lengths))[0]

    def begin(self, source: Tensor, lengths: Tensor | None = None) -> DecodingState:
        """Read sources; arguments as in :meth:`forward`."""
        check_tokens("source words", source)
        vectors = self.dropout(self.source(source))
        if self.decoder is None and self.target is not None:  # the one network reads inputs of one size
            zeros = vectors.new_zeros(*vectors.shape[:2], self.encoder.input_size - vectors.shape[2])
            vectors = torch.cat((vectors, zeros), dim=-1)
        lengths = checked_lengths(lengths, vectors.shape)
        memory, final = self.encoder(vectors) if lengths is None else run_packed(self.encoder, vectors, lengths)
        state = to_parts(final)
        directions = 2 if self.encoder.bidirectional else 1
        last = torch.cat(tuple(state[0][-directions:]), dim=-1)
        return DecodingState(state if self.bridge is None else self.bridge(state), last, memory, lengths)

    def step(self, previous: Tensor, decoding: DecodingState) -> tuple[Tensor, DecodingState]:
        """Compute the logits of one more word, shape (batch, words), from the previous words, shape (batch,)."""
        logits, state = self._decode(previous[:, None], decoding)
        return logits[:, 0], replace(decoding, state=state)

    def _decode(self, previous: Tensor, decoding: DecodingState) -> tuple[Tensor, StateParts]:
        """Compute the logits after each of the previous words, and the decoder's final state."""
        rows, positions = previous.shape
        network = self.encoder if self.decoder is None else self.decoder
        if self.target is None:
            inputs = decoding.last.new_zeros(rows, positions, network.input_size)
        else:
            vectors = self.dropout(self.target(previous))
            inputs = torch.cat((vectors, decoding.last[:, None].expand(-1, positions, -1)), dim=-1)
        state = from_parts(decoding.state)
        if self.decoder is None:
            # Not network(...): hooks on the encoder are meant for the states of the source, not for the decoding steps
            # of the same network.
            forward: Any = type(network).forward
            outputs, final = forward(network, inputs, state)
        else:
            outputs, final = network(inputs, state)
        if self.attention is not None:
            outputs = self.attention(outputs, decoding.memory, decoding.lengths)
        return self.head(self.dropout(outputs)), to_parts(final)


def _check_networks(encoder: RecurrentNetwork, decoder: RecurrentNetwork | None) -> None:
    """Reject networks whose states do not fit together."""
    check_batch_first("encoder", encoder)
    if decoder is None:
        if encoder.bidirectional:
            raise UsageError("the encoder is bidirectional and there is no decoder; expected a one-directional decoder")
        return
    check_batch_first("decoder", decoder)
    if decoder.bidirectional or decoder.num_layers != encoder.num_layers:
        directions = "bidirectional" if decoder.bidirectional else "one-directional"
        raise UsageError(
            f"the decoder is {directions} with num_layers={decoder.num_layers}; expected a one-directional decoder "
            f"with num_layers={encoder.num_layers}, as in the encoder"
        )
