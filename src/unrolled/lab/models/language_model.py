"""A language model: embedding, causal encoder, softmax over the vocabulary."""

from __future__ import annotations

from torch import Tensor, nn

from unrolled.composition.base import Encoder
from unrolled.errors import UsageError
from unrolled.lab.models.run_encoder import check_batch_first, check_tokens, reads_ahead, run_encoder
from unrolled.lab.models.softmax import SoftmaxLayer
from unrolled.lab.models.state_parts import StateParts, from_parts, to_parts

__all__ = ["LanguageModel", "RecurrentState"]

RecurrentState = StateParts
"""The state of a recurrent network between two windows: (h_n,) or (h_n, c_n); () before the first window."""


class LanguageModel(nn.Module):
    r"""Predict every token from the tokens before it.

    .. math:: p(x_{t+1} \mid x_1, …, x_t) = \mathrm{softmax}(W h_t + b), \quad h = \mathrm{encoder}(E_{x_1}, …, E_{x_T})

    A recurrent network of torch.nn or of :func:`unrolled.cells.recurrent` carries its state from one window of a text
    to the next. The encoders of :mod:`unrolled.composition` have no state, so they start each window anew.

    Args:
        embedding: From token indices to vectors.
        encoder: A batch-first network that does not read ahead.
        head: From the features of a position to the next token.
        dropout: Dropout probability of the features of word vectors and of the encoder's outputs.

    Raises:
        UsageError: The encoder is not batch first, or sees the token that it must predict.
    """

    def __init__(self, embedding: nn.Embedding, encoder: nn.Module, head: SoftmaxLayer, dropout: float = 0.0) -> None:
        super().__init__()
        check_batch_first("encoder", encoder)
        if reads_ahead(encoder, embedding.embedding_dim):
            raise UsageError(
                f"the encoder ({type(encoder).__name__}) sees the token that it must predict; expected an encoder that "
                "reads in one direction, or a transformer with causal=true"
            )
        self.embedding = embedding
        self.encoder = encoder
        self.head = head
        self.dropout = nn.Dropout(dropout)

    @property
    def has_state(self) -> bool:
        """Whether the encoder carries a state from window to window."""
        return not isinstance(self.encoder, Encoder)

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Score every token of the vocabulary as the next one, at every position of independent sequences.

        Args:
            tokens: Indices, shape (batch, time), int64.
            lengths: Number of tokens of each sequence, shape (batch,); the full time when omitted.

        Returns:
            Logits, shape (batch, time, vocabulary); log-probabilities if the softmax is adaptive.
        """
        check_tokens("tokens", tokens)
        vectors = self.dropout(self.embedding(tokens))
        features = self.dropout(run_encoder(self.encoder, vectors, lengths))
        return self.head.scores(features, self.embedding.weight)

    def read(self, tokens: Tensor, state: RecurrentState = ()) -> tuple[Tensor, RecurrentState]:
        """Read a window of a text from the state after the previous window.

        Returns the features of every position, shape (batch, time, size), and the state after the last one, detached
        from the graph; the state is empty if the encoder has none.
        """
        check_tokens("tokens", tokens)
        vectors = self.dropout(self.embedding(tokens))
        if not self.has_state:
            return self.dropout(self.encoder(vectors)[0]), ()
        outputs, final = self.encoder(vectors, from_parts(state))
        return self.dropout(outputs), tuple(part.detach() for part in to_parts(final))

    def next(self, tokens: Tensor, state: RecurrentState = ()) -> tuple[Tensor, RecurrentState]:
        """Read a window; return the scores of the token after it, shape (batch, vocabulary), and the state."""
        features, state = self.read(tokens, state)
        return self.head.scores(features[:, -1], self.embedding.weight), state

    def loss(self, tokens: Tensor, targets: Tensor, state: RecurrentState = ()) -> tuple[Tensor, RecurrentState]:
        """Read a window; return the summed cross-entropy of the next tokens in nats, and the state.

        ``targets`` has the shape of ``tokens``; ``PADDING`` is not predicted.
        """
        features, state = self.read(tokens, state)
        return self.head.loss(features.flatten(0, 1), targets.flatten(), self.embedding.weight), state
