"""What an attribution method explains: the predicted class of each text of a batch, and the logit that stands for it.

The target is the margin of a class: its logit less the mean of the other logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from unrolled.lab.data.batches.base import EncodedSequences
from unrolled.lab.data.vocabulary import PADDING, UNKNOWN
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.run_encoder import run_padded_encoder

__all__ = ["Explained", "batch_texts", "margin", "predict"]

_BATCH = 64


def margin(logits: Tensor, classes: Tensor) -> Tensor:
    """Return the logit of a class less the mean of the others, shape (batch,)."""
    own = logits.gather(1, classes[:, None])[:, 0]
    return own - (logits.sum(dim=1) - own) / (logits.shape[1] - 1)


@dataclass(frozen=True)
class Explained:
    """Texts, and the class of each that is explained."""

    model: Classifier
    """In evaluation mode."""
    tokens: Tensor
    """Shape (batch, time), int64; 0 at padding."""
    lengths: Tensor
    """Shape (batch,), int64."""
    classes: Tensor
    """Shape (batch,), int64."""
    blank: int = UNKNOWN
    """The token that replaces a word that is taken away."""

    @property
    def inside(self) -> Tensor:
        """Where there are tokens, shape (batch, time), bool."""
        return torch.arange(self.tokens.shape[1]) < self.lengths[:, None]

    @property
    def vectors(self) -> Tensor:
        """The vectors of the tokens, shape (batch, time, input)."""
        return self.model.embedding(self.tokens).detach()

    def target(self, logits: object) -> Tensor:
        """Select the margin of the explained class; logits of several copies of the batch may be given, in order."""
        assert isinstance(logits, Tensor)
        return margin(logits, self.classes.repeat(len(logits) // len(self.classes)))

    def target_of_vectors(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Compute the margin from token vectors, with a fast backward pass."""
        model = self.model
        return self.target(model.head(model.pooling(run_padded_encoder(model.encoder, vectors, lengths), lengths)))

    @torch.no_grad()
    def margins(self) -> Tensor:
        """Compute the margin of each text, shape (batch,)."""
        return self.target(self.model(self.tokens, self.lengths))

    def some(self, start: int, stop: int) -> Explained:
        """Return the texts from ``start`` up to, not including, ``stop``, without padding that none of them needs."""
        lengths = self.lengths[start:stop]
        tokens = self.tokens[start:stop, : int(lengths.max())]
        return replace(self, tokens=tokens, lengths=lengths, classes=self.classes[start:stop])

    def copies(self, tokens: Tensor, lengths: Tensor, of: Tensor) -> Explained:
        """Return changed copies of the texts numbered ``of``; their classes stay."""
        return replace(self, tokens=tokens, lengths=lengths, classes=self.classes[of])

    def without(self, removed: Tensor) -> Explained:
        """Return the texts without the words where ``removed``, shape (batch, time), is set; the rest moves up."""
        kept = self.inside & ~removed
        lengths = kept.sum(dim=1)
        order = (~kept).to(torch.int8).argsort(dim=1, stable=True)[:, : int(lengths.max())]
        tokens = self.tokens.gather(1, order)
        tokens = tokens.masked_fill(torch.arange(tokens.shape[1]) >= lengths[:, None], PADDING)
        return replace(self, tokens=tokens, lengths=lengths)

    def blanked(self, removed: Tensor) -> Explained:
        """Return the texts with the blank token where ``removed``, shape (batch, time), is set."""
        return replace(self, tokens=self.tokens.masked_fill(removed & self.inside, self.blank))


@torch.no_grad()
def predict(model: Classifier, tokens: Tensor, lengths: Tensor, blank: int = UNKNOWN) -> Explained:
    """Explain the class that the model predicts for each text."""
    return Explained(model, tokens, lengths, model(tokens, lengths).argmax(dim=1), blank)


def batch_texts(model: nn.Module, texts: Sequence[Sequence[int]], size: int = _BATCH) -> list[tuple[Tensor, Explained]]:
    """Batch texts, given as word indices, by length: the indices of the texts, and what is explained of them."""
    assert isinstance(model, Classifier)
    model.eval()
    rows = EncodedSequences.from_rows([(list(text),) for text in texts])
    found = []
    for which in rows.plan(size):
        (tokens,), lengths = rows.gather(which, (PADDING,))
        found.append((which, predict(model, tokens, lengths)))
    return found
