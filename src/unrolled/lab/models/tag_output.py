"""From the emissions of a sentence to its tags: all together, or each by itself.

Both are modules with the same three methods; which positions are tokens and not padding is said by a mask.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from unrolled.errors import UsageError
from unrolled.lab.data.spans import TagGrammar

__all__ = ["IndependentTags", "LinearChainCRF", "TagOutput"]

NEVER = -1e4
"""The score of what cannot be: its exponential is 0, and unlike infinity it leaves gradients alone."""


class TagOutput(Protocol):
    """What gives tags a probability."""

    def cost(self, emissions: Tensor, tags: Tensor, inside: Tensor) -> Tensor:
        """Give the negative log-likelihood of tags.

        Args:
            emissions: a score for each tag, shape (batch, time, tags).
            tags: the indices of the true ones, shape (batch, time); anything at padding.
            inside: where there is a token, shape (batch, time), bool; on at the first of each sentence.

        Returns:
            The sum over all sentences, a scalar, in nats.
        """

    def predictions(self, inside: Tensor) -> int:
        """Count what is predicted, over which a cost is to be averaged.

        Args:
            inside: where there is a token, shape (batch, time), bool.

        Returns:
            How many predictions there are.
        """

    def decode(self, emissions: Tensor, inside: Tensor) -> list[list[int]]:
        """Find the most likely tags.

        Args:
            emissions: a score for each tag, shape (batch, time, tags).
            inside: where there is a token, shape (batch, time), bool.

        Returns:
            The indices of each sentence's tags, as many as it has tokens.
        """


class _Viterbi(nn.Module):
    """Decoding as a call, which is what ``functional_call`` lends other weights to."""

    def __init__(self, crf: nn.Module) -> None:
        super().__init__()
        self.crf = crf

    def forward(self, emissions: Tensor, inside: Tensor) -> list[list[int]]:
        return self.crf.decode(emissions, mask=inside)  # type: ignore[operator]  # a CRF


class LinearChainCRF(nn.Module):
    r"""A linear-chain conditional random field: one probability for all tags of a sentence.

    .. math:: p(y) \propto \exp\Bigl(a_{y_1} + \sum_t e_{t, y_t} + \sum_{t>1} T_{y_{t-1}, y_t} + b_{y_n}\Bigr)

    Sequences that break the grammar have probability 0, in training as in decoding: the likelihood is that of what
    can be said. Lample et al. leave it to training to find them unlikely.

    Args:
        grammar: which tag may follow which.

    Raises:
        UsageError: when pytorch-crf is not installed.

    Source:
        Lafferty et al. (2001); Lample et al. (2016), arXiv:1603.01360, section 2.2, as Implicit n-grams, appendix E.3.
    """

    def __init__(self, grammar: TagGrammar) -> None:
        super().__init__()
        try:
            from torchcrf import CRF  # type: ignore[import-untyped]  # no stubs
        except ImportError as error:
            raise UsageError(
                'a conditional random field needs pytorch-crf; install it with: pip install "unrolled[tasks]", '
                "or do without: crf=false"
            ) from error
        self.crf = CRF(len(grammar.first), batch_first=True)
        rules = {"start_transitions": grammar.first, "transitions": grammar.after, "end_transitions": grammar.last}
        for name, possible in rules.items():
            self.register_buffer(name, torch.tensor(possible), persistent=False)

    def _scores(self, prefix: str) -> dict[str, Tensor]:
        """The field's weights, with what cannot be masked out."""
        return {
            prefix + name: weight.masked_fill(~self.get_buffer(name), NEVER)
            for name, weight in self.crf.named_parameters()
        }

    def cost(self, emissions: Tensor, tags: Tensor, inside: Tensor) -> Tensor:
        """Sum the negative log-likelihoods of the sentences; see :class:`TagOutput`."""
        scores, given = self._scores(""), {"mask": inside, "reduction": "sum"}
        return -functional_call(self.crf, scores, (emissions.to(scores["transitions"]), tags), given)

    def predictions(self, inside: Tensor) -> int:
        """Count the sentences, each of which is one prediction."""
        return len(inside)

    def decode(self, emissions: Tensor, inside: Tensor) -> list[list[int]]:
        """Find the most likely sequences, by Viterbi's algorithm; see :class:`TagOutput`."""
        return functional_call(_Viterbi(self.crf), self._scores("crf."), (emissions, inside))


class IndependentTags(nn.Module):
    """A softmax at every token, which knows nothing of the tags beside it; they may spell no whole entity."""

    def cost(self, emissions: Tensor, tags: Tensor, inside: Tensor) -> Tensor:
        """Sum the cross-entropies of the tokens; see :class:`TagOutput`."""
        return F.cross_entropy(emissions[inside], tags[inside], reduction="sum")

    def predictions(self, inside: Tensor) -> int:
        """Count the tokens."""
        return int(inside.sum())

    def decode(self, emissions: Tensor, inside: Tensor) -> list[list[int]]:
        """Take each token's best tag; see :class:`TagOutput`."""
        best, lengths = emissions.argmax(dim=-1).tolist(), inside.sum(dim=1).tolist()
        return [row[:length] for row, length in zip(best, lengths, strict=True)]
