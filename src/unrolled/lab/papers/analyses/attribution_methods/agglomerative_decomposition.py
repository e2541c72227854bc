r"""Agglomerative contextual decomposition: words join a growing group, in the order of what they add to it.

Every word begins with its own score as a phrase. The word with the highest score is taken; it and the words beside it
that were taken before are one group. A word beside a group is scored again by what it adds, s(group and word) -
s(group). It keeps the highest of its own score and of what it adds to the groups that are beside it now. (The paper's
queue keeps what it would have added to an earlier, smaller group as well.) This goes on until no word is left. A word's
attribution is the score with which it was taken.

The paper ranks groups, not words: its first level is contextual decomposition itself. The priority with which its queue
takes a word, alone or beside a group, is the number of a word that its algorithm computes. Of the paper's percentile k
one word at a time is left.

Source:
    Singh, Murdoch and Yu (2019), Hierarchical interpretations for neural network predictions, algorithm 1.
    arXiv:1806.05337.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["agglomerate"]

_NEVER = -torch.inf


def agglomerate(score: Callable[[Tensor, Tensor, Tensor], Tensor], lengths: Tensor) -> Tensor:
    """Give each word the score with which it is taken, shape (texts, longest), float64; 0 at padding.

    Args:
        score: Scores phrases, at least one: takes the numbers of their texts, their starts and their stops, all of one
            shape.
        lengths: Number of tokens of each text, shape (texts,).
    """
    time = int(lengths.max())
    inside = torch.arange(time) < lengths[:, None]
    text, place = inside.nonzero().unbind(dim=1)
    alone, as_left, as_right = torch.full((3, len(lengths), time), _NEVER, dtype=torch.float64)
    alone[text, place] = score(text, place, place + 1).double()
    found, taken = torch.zeros_like(alone), ~inside
    for _ in range(time):
        (rows,) = (~taken).any(dim=1).nonzero(as_tuple=True)
        best = torch.stack((alone, as_left, as_right)).amax(dim=0).masked_fill(taken, _NEVER)
        words = best[rows].argmax(dim=1)
        found[rows, words], taken[rows, words] = best[rows, words], True
        starts, stops = _groups(taken & inside, rows, words)
        of_groups = score(rows, starts, stops).double()
        sides = ((as_left, starts - 1, stops, starts - 1), (as_right, starts, stops + 1, stops))
        for scores, first, after, word in sides:
            open_ = (word >= 0) & (word < lengths[rows])
            if open_.any():
                joined = score(rows[open_], first[open_], after[open_]).double()
                scores[rows[open_], word[open_]] = joined - of_groups[open_]
    return found


def _groups(taken: Tensor, rows: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
    """Find the first and the one after the last of the words taken around each of ``words`` without a gap."""
    place = torch.arange(taken.shape[1])
    gaps = ~taken[rows]
    before = torch.where(gaps & (place < words[:, None]), place, -1).amax(dim=1)
    after = torch.where(gaps & (place > words[:, None]), place, taken.shape[1]).amin(dim=1)
    return before + 1, after
