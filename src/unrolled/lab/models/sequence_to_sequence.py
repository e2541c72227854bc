r"""Encoder and decoder: one sequence read to its end, another said word by word.

.. math::
    h_t = \phi(h_{t-1}, x_t) \quad\text{for the source,} \qquad
    h_t = \phi(h_{t-1}) \quad\text{for the translation,} \qquad
    y_t = \mathrm{softmax}(W^{(S)} h_t)

What the notes call extensions are parts that are there or not: a decoder with weights of its own (I), one that reads
the encoder's last state c = h_T and the previous word as well, h_t = φ(h_{t-1}, c, y_{t-1}) (II), networks of several
layers (III), an encoder that reads both ways (IV). To reverse the source (V) is to give it reversed.

Source:
    CS 224d, Lecture Notes 4, section 2.4, eq. 23-27; Sutskever et al. (2014), arXiv:1409.3215; Cho et al. (2014),
    arXiv:1406.1078.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from unrolled.cells.recurrent import Recurrent
from unrolled.errors import ShapeError, UsageError
from unrolled.lab.models.decoder_bridge import DecoderBridge
from unrolled.lab.models.luong_attention import LuongAttention
from unrolled.lab.models.run_encoder import checked_lengths

__all__ = ["DecodingState", "RecurrentNetwork", "SequenceToSequence"]

RecurrentNetwork = nn.RNNBase | Recurrent


@dataclass(frozen=True)
class DecodingState:
    """What a decoder goes on from, for a batch of sources."""

    state: tuple[Tensor, ...]
    """Of the decoder: (h,) or (h, rest), each of shape (layers, batch, …)."""
    last: Tensor
    """c = h_T, the encoder's last state in each direction, shape (batch, features)."""
    memory: Tensor
    """The encoder's states at every word, shape (batch, time, features)."""
    lengths: Tensor | None
    """How many words each source has, shape (batch,); None when none is padded."""

    def select(self, rows: Tensor) -> DecodingState:
        """Keep some rows, in some order, some of them more than once.

        Args:
            rows: which, shape (n,), int64.

        Returns:
            What the decoder goes on from there.
        """
        return DecodingState(
            tuple(part[:, rows] for part in self.state),
            self.last[rows],
            self.memory[rows],
            None if self.lengths is None else self.lengths[rows],
        )


class SequenceToSequence(nn.Module):
    """Give the logits of every next word of a translation.

    Each word's logit is made of the encoder's states and of the words before it alone, so a source padded in a batch
    says what it says alone, and what stands behind a translation's end changes nothing.

    Args:
        source: from indices of the source's words to vectors.
        encoder: a batch-first recurrent network.
        decoder: one that reads one way, of as many layers, whose states have the same sizes; None for the encoder
            itself, which then reads one way too.
        target: from indices of the previous words to vectors, if the decoder is fed (extension II). It then reads
            these side by side with c; an encoder that is its own decoder reads zeros in the place of c.
        head: from the decoder's output to the logits.
        attention: what looks back at all of the encoder's states, if anything does.
        dropout: the share of the features of word vectors and of the head's input dropped in training.

    Raises:
        UsageError: when the networks do not fit together.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> networks = (nn.GRU(8, 16, batch_first=True), nn.GRU(8 + 16, 16, batch_first=True))
        >>> model = SequenceToSequence(nn.Embedding(20, 8), *networks, nn.Embedding(30, 8), nn.Linear(16, 30))
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
        _check(encoder, decoder)
        self.source = source
        self.encoder = encoder
        self.decoder = decoder
        self.target = target
        self.bridge = DecoderBridge(encoder) if encoder.bidirectional else None
        self.attention = attention
        self.head = head
        self.dropout = nn.Dropout(dropout)

    def forward(self, source: Tensor, previous: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Give the logits of all words of translations, each after the right ones before it.

        Args:
            source: word indices, shape (batch, time), int64.
            previous: the word before each position of the translation, shape (batch, positions), int64; without
                extension II only their number matters.
            lengths: how many words each source has, shape (batch,); all of them when left out.

        Returns:
            Logits, shape (batch, positions, words).

        Raises:
            ShapeError: when the two are not of the same number of sentences.
        """
        if previous.dim() != 2 or len(previous) != len(source):
            raise ShapeError(
                f"previous words have shape {tuple(previous.shape)}; expected ({len(source)}, positions), "
                "one row for each source"
            )
        return self._say(previous, self.begin(source, lengths))[0]

    def begin(self, source: Tensor, lengths: Tensor | None = None) -> DecodingState:
        """Read sources to their end.

        Args:
            source: word indices, shape (batch, time), int64.
            lengths: how many words each source has, shape (batch,); all of them when left out.

        Returns:
            What the decoder begins with.

        Raises:
            ShapeError: when the source is no batch of sentences.
        """
        if source.dim() != 2 or 0 in source.shape:
            raise ShapeError(f"the source has shape {tuple(source.shape)}; expected (batch, time), neither of them 0")
        vectors = self.dropout(self.source(source))
        if self.decoder is None and self.target is not None:  # one network, whose inputs must be of one size
            nothing = vectors.new_zeros(*vectors.shape[:2], self.encoder.input_size - vectors.shape[2])
            vectors = torch.cat((vectors, nothing), dim=-1)
        lengths = checked_lengths(lengths, vectors.shape)
        if lengths is None:
            memory, final = self.encoder(vectors)
        else:
            packed = pack_padded_sequence(vectors, lengths.cpu(), batch_first=True, enforce_sorted=False)
            memory, final = self.encoder(packed)
            memory, _ = pad_packed_sequence(memory, batch_first=True, total_length=source.shape[1])
        state = final if isinstance(final, tuple) else (final,)
        directions = 2 if self.encoder.bidirectional else 1
        last = torch.cat(tuple(state[0][-directions:]), dim=-1)
        return DecodingState(state if self.bridge is None else self.bridge(state), last, memory, lengths)

    def step(self, previous: Tensor, decoding: DecodingState) -> tuple[Tensor, DecodingState]:
        """Give the logits of one word more.

        Args:
            previous: the word before it, shape (batch,), int64.
            decoding: what the decoder goes on from.

        Returns:
            Logits, shape (batch, words), and what the decoder goes on from afterwards.
        """
        logits, state = self._say(previous[:, None], decoding)
        return logits[:, 0], replace(decoding, state=state)

    def _say(self, previous: Tensor, decoding: DecodingState) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The logits after each of the previous words, and the decoder's final state."""
        rows, positions = previous.shape
        network = self.encoder if self.decoder is None else self.decoder
        if self.target is None:
            inputs = decoding.last.new_zeros(rows, positions, network.input_size)
        else:
            vectors = self.dropout(self.target(previous))
            inputs = torch.cat((vectors, decoding.last[:, None].expand(-1, positions, -1)), dim=-1)
        state = decoding.state if len(decoding.state) > 1 else decoding.state[0]
        if self.decoder is None:
            # Not network(...): whoever watches the encoder, or puts other states in its place, means what it made of
            # the source, not what the same network says afterwards.
            forward: Any = type(network).forward
            outputs, final = forward(network, inputs, state)
        else:
            outputs, final = network(inputs, state)
        if self.attention is not None:
            outputs = self.attention(outputs, decoding.memory, decoding.lengths)
        return self.head(self.dropout(outputs)), final if isinstance(final, tuple) else (final,)


def _check(encoder: RecurrentNetwork, decoder: RecurrentNetwork | None) -> None:
    """Refuse networks that cannot hand their states on."""
    for name, network in (("encoder", encoder), ("decoder", decoder)):
        if network is not None and not network.batch_first:
            raise UsageError(f"the {name} has batch_first=False; expected True")
    if decoder is None:
        if encoder.bidirectional:
            raise UsageError("the encoder reads both ways and has no decoder; expected a decoder, which reads one way")
    elif decoder.bidirectional or decoder.num_layers != encoder.num_layers:
        ways = "both ways" if decoder.bidirectional else "one way"
        raise UsageError(
            f"the decoder has {decoder.num_layers} layers and reads {ways}; expected {encoder.num_layers}, "
            "as many as the encoder, and one way"
        )
