r"""Softmax layers: from the features of a position to the probability of every token.

Each is a module with two methods. ``scores`` gives a number for every token, whose softmax over the vocabulary is
the probability; ``loss`` gives the summed cross-entropy, for which not all of them need be known. Both are given
the word vectors, shape (vocabulary, embedding), for the layer that predicts with them.
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
    """What predicts a token from the features of the position before it."""

    @abstractmethod
    def scores(self, features: Tensor, vectors: Tensor) -> Tensor:
        """Score every token.

        Args:
            features: shape (…, size).
            vectors: the word vectors, shape (vocabulary, embedding).

        Returns:
            Logits, or log-probabilities, shape (…, vocabulary).
        """

    @abstractmethod
    def loss(self, features: Tensor, targets: Tensor, vectors: Tensor) -> Tensor:
        """Compute the cross-entropy of what came.

        Args:
            features: shape (predictions, size).
            targets: the tokens, shape (predictions,), int64; ``PADDING`` is no token, and costs nothing.
            vectors: the word vectors, shape (vocabulary, embedding).

        Returns:
            Nats, summed; a scalar.
        """


class FullSoftmax(SoftmaxLayer):
    """A linear layer of its own.

    Args:
        size: of the features.
        words: in the vocabulary.
    """

    def __init__(self, size: int, words: int) -> None:
        super().__init__()
        self.output = nn.Linear(size, words)

    def scores(self, features: Tensor, vectors: Tensor) -> Tensor:  # has weights of its own
        """Compute W h + b."""
        return self.output(features)

    def loss(self, features: Tensor, targets: Tensor, vectors: Tensor) -> Tensor:  # as above
        """Take the softmax over the whole vocabulary."""
        return softmax_loss(features, targets, self.output.weight, self.output.bias)


class TiedSoftmax(SoftmaxLayer):
    r"""The word vectors themselves are the weights: one matrix reads and predicts.

    .. math:: y = E\,P h + b

    P is there only where features and word vectors differ in size.

    Args:
        size: of the features.
        words: in the vocabulary.
        embedding: of the word vectors.

    Source:
        Press and Wolf (2017), Using the output embedding to improve language models, arXiv:1608.05859, which has no
        P; Inan et al. (2017), arXiv:1611.01462, section 3, which has.
    """

    def __init__(self, size: int, words: int, embedding: int) -> None:
        super().__init__()
        self.project = nn.Identity() if size == embedding else nn.Linear(size, embedding, bias=False)
        self.bias = nn.Parameter(zeros(words))

    def scores(self, features: Tensor, vectors: Tensor) -> Tensor:
        """Compute E P h + b."""
        return F.linear(self.project(features), vectors, self.bias)

    def loss(self, features: Tensor, targets: Tensor, vectors: Tensor) -> Tensor:
        """Take the softmax over the whole vocabulary."""
        return softmax_loss(self.project(features), targets, vectors, self.bias)


class AdaptiveSoftmax(SoftmaxLayer):
    """Frequent words are scored at once; rare ones in clusters, and only where one of them came.

    Words must be numbered by frequency, as :class:`unrolled.lab.data.vocabulary.Vocabulary` numbers them. Clusters
    begin at word 2,000, 10,000, 50,000 and 250,000, each with vectors a quarter as long as the one before it.

    Args:
        size: of the features.
        words: in the vocabulary.

    Raises:
        UsageError: when the vocabulary, or the size, is too small to be shared out.

    Source:
        Grave et al. (2017), Efficient softmax approximation for GPUs, arXiv:1609.04309.
    """

    def __init__(self, size: int, words: int) -> None:
        super().__init__()
        cutoffs = [cut for k, cut in enumerate(_CUTOFFS) if cut < words - 1 and size >= _SHRINK ** (k + 1)]
        if not cutoffs:
            raise UsageError(
                f"an adaptive softmax of {words} words on {size} features; expected more than {_CUTOFFS[0]:,} words "
                f"and at least {_SHRINK} features: adaptive=off"
            )
        self.clusters = nn.AdaptiveLogSoftmaxWithLoss(size, words, cutoffs, div_value=_SHRINK, head_bias=True)

    def scores(self, features: Tensor, vectors: Tensor) -> Tensor:  # has weights of its own
        """Give the log-probabilities of all words."""
        return self.clusters.log_prob(features.flatten(0, -2)).view(*features.shape[:-1], -1)

    def loss(self, features: Tensor, targets: Tensor, vectors: Tensor) -> Tensor:  # as above
        """Score the frequent words, and the clusters that are needed."""
        kept = targets != PADDING
        return -self.clusters(features[kept], targets[kept]).output.sum()
