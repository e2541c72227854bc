r"""Deletion of words in the order of their attributions: does a model lose its prediction without the highest ones?

With p the probability of the predicted class and S the share of words with the highest attributions,

- comprehensiveness is p(text) - p(text without S): high if S was needed;
- sufficiency is p(text) - p(S alone): low if S was enough.

Both are averaged over several shares. The score is comprehensiveness less sufficiency: higher is better. Words are
taken away, or replaced by the blank token. In the insertion curve words are restored into a text of blank tokens, the
highest first, and p is averaged.

Source:
    DeYoung et al. (2020), ERASER, section 4.1. arXiv:1911.03429. Petsiuk et al. (2018), RISE, for insertion.
    arXiv:1806.07421.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.lab.papers.analyses.attribution_methods.explained_texts import Explained

__all__ = ["Deletion", "delete"]

_SHARES = (0.05, 0.1, 0.2, 0.5)
"""The shares of words that are deleted: ERASER's without 1%, which is at most one word in texts of up to 100."""
_RESTORED = (0.1, 0.3, 0.5, 0.7, 0.9)
"""The shares of words that are restored in the insertion curve."""


@dataclass(frozen=True)
class Deletion:
    """The measures of each text, shape (texts,), float64."""

    comprehensiveness: Tensor
    sufficiency: Tensor
    blank_comprehensiveness: Tensor
    """With the blank token in place of what is deleted."""
    blank_sufficiency: Tensor
    insertion: Tensor

    @property
    def score(self) -> Tensor:
        """Comprehensiveness less sufficiency, of deletion."""
        return self.comprehensiveness - self.sufficiency

    @property
    def blank_score(self) -> Tensor:
        """Comprehensiveness less sufficiency, by the blank token."""
        return self.blank_comprehensiveness - self.blank_sufficiency


@torch.no_grad()
def _probability(explained: Explained) -> Tensor:
    logits = explained.model(explained.tokens, explained.lengths)
    return logits.double().softmax(dim=1).gather(1, explained.classes[:, None])[:, 0]


def delete(explained: Explained, values: Tensor) -> Deletion:
    """Delete the words of each text in the order of their attributions, shape (batch, time).

    At least one word is deleted, and at least one stays. Texts of one word are not allowed. Words of equal attribution
    have no defined order.
    """
    assert int(explained.lengths.min()) > 1
    rank = values.masked_fill(~explained.inside, -torch.inf).argsort(dim=1, descending=True).argsort(dim=1)
    whole = _probability(explained)
    lost: dict[str, list[Tensor]] = {"without": [], "alone": [], "blanked": [], "rest blanked": []}
    for share in _SHARES:
        count = (share * explained.lengths.double()).ceil().long().clamp_max(explained.lengths - 1)
        highest = rank < count[:, None]
        others = explained.inside & ~highest
        gone = (explained.without(highest), explained.without(others))
        changed = (*gone, explained.blanked(highest), explained.blanked(others))
        for found, each in zip(lost.values(), changed, strict=True):
            found.append(whole - _probability(each))
    restored = []
    for share in _RESTORED:
        count = (share * explained.lengths.double()).ceil().long()
        restored.append(_probability(explained.blanked(rank >= count[:, None])))
    return Deletion(*(torch.stack(found).mean(dim=0) for found in (*lost.values(), restored)))
