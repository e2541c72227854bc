r"""Softmax layers: from the features of a position to the probability of every token.

``scores`` gives a number for every token; its softmax over the vocabulary is the probability. ``loss`` gives the summed
cross-entropy, which does not always need all scores. Both receive the word vectors, shape (vocabulary, embedding), for
the layer that predicts with them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn, zeros
from torch.nn import functional as F

from unrolled.errors import UsageError
from unrolled.lab.data.vocabulary import PADDING
from unrolled.lab.models.softmax_loss import softmax_loss

__all__ = ["AdaptiveSoftmax", "FullSoftmax", "SoftmaxLayer", "TiedSoftmax"]

_CUTOFFS = (2_000, 10_000, 50_000, 250_000)
_SHRINK = 4


class SoftmaxLayer(nn.Module, ABC):
    """Predicts a token from the features of the position before it."""

    @abstractmethod
    def scores(self, features: Tensor, vectors: Tensor) -> Tensor:
        """Compute logits or log-probabilities, shape (…, vocabulary), from features of shape (…, size)."""

    @abstractmethod
    def loss(self, features: Tensor, targets: Tensor, vectors: Tensor) -> Tensor:
        """Compute the summed cross-entropy in nats, a scalar.

        ``features`` has shape (predictions, size) and ``targets`` (predictions,), int64; ``PADDING`` costs nothing.
        """


class FullSoftmax(SoftmaxLayer):
    """A linear layer with its own weights."""

    def __init__(self, size: int, words: int) -> None:
        super().__init__()
        self.output = nn.Linear(size, words)

    def scores(self, features: Tensor, vectors: Tensor) -> Tensor:
        """Compute W h + b."""
        return self.output(features)

    def loss(self, features: Tensor, targets: Tensor, vectors: Tensor) -> Tensor:
        """Compute the cross-entropy over the whole vocabulary."""
        return softmax_loss(features, targets, self.output.weight, self.output.bias)


class TiedSoftmax(SoftmaxLayer):
    r"""A layer that uses the word vectors as its weights.

    .. math:: y = E\,P h + b

    P exists only if the features and the word vectors differ in size.

    Source:
        Press and Wolf (2017), Using the output embedding to improve language models, arXiv:1608.05859, without P;
        Inan et al. (2017), arXiv:1611.01462, section 3, with P.
    """

    def __init__(self, size: int, words: int, embedding: int) -> None:
        super().__init__()
        self.project = nn.Identity() if size == embedding else nn.Linear(size, embedding, bias=False)
        self.bias = nn.Parameter(zeros(words))

    def scores(self, features: Tensor, vectors: Tensor) -> Tensor:
        """Compute E P h + b."""
        return F.linear(self.project(features), vectors, self.bias)

    def loss(self, features: Tensor, targets: Tensor, vectors: Tensor) -> Tensor:
        """Compute the cross-entropy over the whole vocabulary."""
        return softmax_loss(self.project(features), targets, vectors, self.bias)


class AdaptiveSoftmax(SoftmaxLayer):
    """A layer that scores rare words only in the clusters that a batch needs.

    Words must be numbered by frequency, as :class:`unrolled.lab.data.vocabulary.Vocabulary` numbers them. Clusters
    start at word 2,000, 10,000, 50,000 and 250,000; the vectors of each are a quarter as long as those before.

    Raises:
        UsageError: The vocabulary or the features are too small for clusters.

    Source:
        Grave et al. (2017), Efficient softmax approximation for GPUs, arXiv:1609.04309.
    """

    def __init__(self, size: int, words: int) -> None:
        super().__init__()
        cutoffs = [cut for k, cut in enumerate(_CUTOFFS) if cut < words - 1 and size >= _SHRINK ** (k + 1)]
        if not cutoffs:
            raise UsageError(
                f"an adaptive softmax of {words} words on {size} features; expected more than {_CUTOFFS[0]:,} words "
                f"and at least {_SHRINK} features: use adaptive=off"
            )
        self.clusters = nn.AdaptiveLogSoftmaxWithLoss(size, words, cutoffs, div_value=_SHRINK, head_bias=True)

    def scores(self, features: Tensor, vectors: Tensor) -> Tensor:
        """Compute the log-probabilities of all words."""
        return self.clusters.log_prob(features.flatten(0, -2)).view(*features.shape[:-1], -1)

    def loss(self, features: Tensor, targets: Tensor, vectors: Tensor) -> Tensor:
        """Compute the cross-entropy from the frequent words and the necessary clusters."""
        kept = targets != PADDING
        return -self.clusters(features[kept], targets[kept]).output.sum()
