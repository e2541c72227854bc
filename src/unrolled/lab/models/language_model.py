"""A language model: embedding, causal encoder, softmax over the vocabulary."""

from __future__ import annotations

from torch import Tensor, nn

from unrolled.composition.base import Encoder
from unrolled.errors import ShapeError, UsageError
from unrolled.lab.models.run_encoder import reads_ahead, run_encoder
from unrolled.lab.models.softmax import SoftmaxLayer

__all__ = ["LanguageModel", "RecurrentState"]

RecurrentState = tuple[Tensor, ...]
"""The state of a recurrent network between two windows: (h_n,) or (h_n, c_n); () at the beginning."""


class LanguageModel(nn.Module):
    r"""Predict every token from those before it.

    .. math:: p(x_{t+1} \mid x_1, …, x_t) = \mathrm{softmax}(W h_t + b), \quad h = \mathrm{encoder}(E_{x_1}, …, E_{x_T})

    A recurrent network goes on from one window of a text to the next: torch.nn's, or one of
    :func:`unrolled.cells.recurrent`. The encoders of :mod:`unrolled.composition` have no state to be carried; with them
    each window begins anew.

    Args:
        embedding: from token indices to vectors.
        encoder: a batch-first network that does not look ahead.
        head: from a position's features to the next token.
        dropout: the share of the features of word vectors and of the encoder's outputs dropped in training.

    Raises:
        UsageError: when the encoder is not batch first, or sees what it is to predict.
    """

    def __init__(self, embedding: nn.Embedding, encoder: nn.Module, head: SoftmaxLayer, dropout: float = 0.0) -> None:
        super().__init__()
        if not getattr(encoder, "batch_first", True):
            raise UsageError("the encoder has batch_first=False; expected True")
        if reads_ahead(encoder, embedding.embedding_dim):
            raise UsageError(
                f"the encoder ({type(encoder).__name__}) sees the token that it is to predict; expected one that reads "
                "in one direction, a transformer with causal=true"
            )
        self.embedding = embedding
        self.encoder = encoder
        self.head = head
        self.dropout = nn.Dropout(dropout)

    @property
    def has_state(self) -> bool:
        """Whether the encoder has a state that goes on from window to window."""
        return not isinstance(self.encoder, Encoder)

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Score every token as the next one, at every position; each sequence begins anew.

        Args:
            tokens: indices, shape (batch, time), int64.
            lengths: how many tokens each sequence has, shape (batch,); all of them when left out.

        Returns:
            Logits, shape (batch, time, vocabulary); log-probabilities where the softmax is adaptive.
        """
        vectors = self.dropout(self.embedding(_checked(tokens)))
        features = self.dropout(run_encoder(self.encoder, vectors, lengths))
        return self.head.scores(features, self.embedding.weight)

    def read(self, tokens: Tensor, state: RecurrentState = ()) -> tuple[Tensor, RecurrentState]:
        """Read a window of a text.

        Args:
            tokens: indices, shape (batch, time), int64.
            state: what the window before left; the network's own beginning when empty.

        Returns:
            The features of every position, shape (batch, time, size); and the state after the last, cut off from the
            graph, empty where the encoder has none.
        """
        vectors = self.dropout(self.embedding(_checked(tokens)))
        if not self.has_state:
            return self.dropout(self.encoder(vectors)[0]), ()
        hx = state[0] if len(state) == 1 else state or None
        outputs, final = self.encoder(vectors, hx)
        parts = final if isinstance(final, tuple) else (final,)
        return self.dropout(outputs), tuple(part.detach() for part in parts)

    def next(self, tokens: Tensor, state: RecurrentState = ()) -> tuple[Tensor, RecurrentState]:
        """Score what may follow a window of a text.

        Args:
            tokens: indices, shape (batch, time), int64.
            state: what the window before left.

        Returns:
            As :meth:`forward` gives them at the last position, shape (batch, vocabulary); and the state.
        """
        features, state = self.read(tokens, state)
        return self.head.scores(features[:, -1], self.embedding.weight), state

    def loss(self, tokens: Tensor, targets: Tensor, state: RecurrentState = ()) -> tuple[Tensor, RecurrentState]:
        """Compute what a window costs.

        Args:
            tokens: indices, shape (batch, time), int64.
            targets: what follows each; ``PADDING`` where nothing does.
            state: what the window before left.

        Returns:
            The cross-entropy in nats, summed; and the state.
        """
        features, state = self.read(tokens, state)
        return self.head.loss(features.flatten(0, 1), targets.flatten(), self.embedding.weight), state


def _checked(tokens: Tensor) -> Tensor:
    if tokens.ndim != 2 or 0 in tokens.shape:
        raise ShapeError(f"tokens have shape {tuple(tokens.shape)}; expected (batch, time), neither of them 0")
    return tokens
