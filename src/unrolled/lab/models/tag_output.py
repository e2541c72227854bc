"""Output layers of a tagger: from the emissions of a sentence to its tags, jointly or token by token.

Emissions have shape (batch, time, tags). The mask ``inside``, shape (batch, time), is true at tokens and false at
padding; the first position of each sentence is a token.
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

_NEVER = -1e4
"""The score of an impossible transition: its exponential is 0, and unlike infinity it does not spoil gradients."""


class TagOutput(Protocol):
    """A probability distribution over tags."""

    def cost(self, emissions: Tensor, tags: Tensor, inside: Tensor) -> Tensor:
        """Compute the negative log-likelihood of tags, shape (batch, time), in nats, summed over all sentences."""

    def predictions(self, inside: Tensor) -> int:
        """Count the predictions over which the cost is averaged."""

    def decode(self, emissions: Tensor, inside: Tensor) -> list[list[int]]:
        """Find the indices of the most likely tags of each sentence, one for each token."""


class _Viterbi(nn.Module):
    """Decoding as a call, so that ``functional_call`` can run it with other weights."""

    def __init__(self, crf: nn.Module) -> None:
        super().__init__()
        self.crf = crf

    def forward(self, emissions: Tensor, inside: Tensor) -> list[list[int]]:
        return self.crf.decode(emissions, mask=inside)  # type: ignore[operator]  # a CRF


class LinearChainCRF(nn.Module):
    r"""A linear-chain conditional random field: one probability for all tags of a sentence.

    .. math:: p(y) \propto \exp\Bigl(a_{y_1} + \sum_t e_{t, y_t} + \sum_{t>1} T_{y_{t-1}, y_t} + b_{y_n}\Bigr)

    Sequences that break the grammar have probability 0, both in training and in decoding. Lample et al. do not exclude
    them; their model learns that they are unlikely.

    Raises:
        UsageError: pytorch-crf is not installed.

    Source:
        Lafferty et al. (2001); Lample et al. (2016), arXiv:1603.01360, section 2.2, as Implicit n-grams, appendix E.3.
    """

    def __init__(self, grammar: TagGrammar) -> None:
        super().__init__()
        try:
            from torchcrf import CRF
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
        """Return the weights of the field, with impossible transitions masked."""
        return {
            prefix + name: weight.masked_fill(~self.get_buffer(name), _NEVER)
            for name, weight in self.crf.named_parameters()
        }

    def cost(self, emissions: Tensor, tags: Tensor, inside: Tensor) -> Tensor:
        """Sum the negative log-likelihoods of the sentences."""
        scores, given = self._scores(""), {"mask": inside, "reduction": "sum"}
        return -functional_call(self.crf, scores, (emissions.to(scores["transitions"]), tags), given)

    def predictions(self, inside: Tensor) -> int:
        """Count the sentences, each of which is one prediction."""
        return len(inside)

    def decode(self, emissions: Tensor, inside: Tensor) -> list[list[int]]:
        """Find the most likely sequences by the Viterbi algorithm."""
        return functional_call(_Viterbi(self.crf), self._scores("crf."), (emissions, inside))


class IndependentTags(nn.Module):
    """A softmax at every token, independent of its neighbours; the tags may not spell whole entities."""

    def cost(self, emissions: Tensor, tags: Tensor, inside: Tensor) -> Tensor:
        """Sum the cross-entropies of the tokens."""
        return F.cross_entropy(emissions[inside], tags[inside], reduction="sum")

    def predictions(self, inside: Tensor) -> int:
        """Count the tokens."""
        return int(inside.sum())

    def decode(self, emissions: Tensor, inside: Tensor) -> list[list[int]]:
        """Choose the best tag of each token."""
        best, lengths = emissions.argmax(dim=-1).tolist(), inside.sum(dim=1).tolist()
        return [row[:length] for row, length in zip(best, lengths, strict=True)]
