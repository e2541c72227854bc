"""Searching for what a decoder would say: word by word the likeliest, or several beginnings side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor

from unrolled.errors import UsageError

__all__ = ["DecoderState", "DecoderStep", "TokenIds", "beam_search", "greedy_search"]

TokenIds = list[int]
"""The words of one sentence, without its end."""


class DecoderState(Protocol):
    """What a decoder goes on from, a row for each sentence or beginning of one."""

    def select(self, rows: Tensor) -> Self:
        """Keep some rows, in some order, some of them more than once.

        Args:
            rows: which, shape (n,), int64.

        Returns:
            The same of these rows.
        """


S = TypeVar("S", bound=DecoderState)
DecoderStep = Callable[[Tensor, S], tuple[Tensor, S]]
"""From the words said last, shape (rows,), and what the decoder goes on from, to the logits of the next words, shape
(rows, words), and what it goes on from then. A word of logit -inf is never said."""


def greedy_search(step: DecoderStep[S], state: S, longest: Tensor, end: int) -> list[TokenIds]:
    """Say the likeliest word, and go on from there, until the sentence ends.

    Args:
        step: the decoder.
        state: what it begins with, a row for each sentence.
        longest: how many words each sentence may have at most, shape (sentences,), int64.
        end: the word that ends a sentence, which also stands before its first word.

    Returns:
        For each sentence its words.
    """
    said: list[TokenIds] = [[] for _ in longest]
    alive = torch.arange(len(longest), device=longest.device)
    words = torch.full_like(alive, end)
    for position in range(1, int(longest.max()) + 1):
        logits, state = step(words, state)
        words = logits.argmax(dim=-1)
        for sentence, word in zip(alive.tolist(), words.tolist(), strict=True):
            if word != end:
                said[sentence].append(word)
        going = ((words != end) & (longest[alive] > position)).nonzero()[:, 0]
        if not len(going):
            break
        if len(going) < len(alive):
            alive, words, state = alive[going], words[going], state.select(going)
    return said


def beam_search(step: DecoderStep[S], state: S, longest: Tensor, end: int, beam: int) -> list[TokenIds]:
    r"""Keep the likeliest beginnings, and choose among the sentences that ended by the mean log-probability of a word.

    .. math:: \hat y = \arg\max_y \frac{1}{|y|} \sum_t \log p(y_t \mid y_{<t}), \quad |y| \text{ counting the end}

    Without the division the shortest would win. A sentence is settled when as many have ended as the beam is wide, or
    when it may grow no longer; one that was cut off counts only if none has ended. A beam of 1 is the greedy search.

    Args:
        step: the decoder.
        state: what it begins with, a row for each sentence.
        longest: how many words each sentence may have at most, shape (sentences,), int64.
        end: the word that ends a sentence, which also stands before its first word.
        beam: how many beginnings are kept for each sentence.

    Returns:
        For each sentence the words of the best that was found.

    Raises:
        UsageError: when the beam is not positive.

    Source:
        Sutskever et al. (2014), arXiv:1409.3215, section 3.2; the division by length: Cho et al. (2014),
        arXiv:1409.1259, section 4.2.2.
    """
    if beam < 1:
        raise UsageError(f"the beam is {beam}; expected 1 or more")
    device = longest.device
    best: list[tuple[float, TokenIds]] = [(-torch.inf, []) for _ in longest]
    ended = torch.zeros_like(longest)  # how many of each sentence
    alive = torch.arange(len(longest), device=device)
    state = state.select(alive.repeat_interleave(beam))
    scores = torch.full((len(alive), beam), -torch.inf, device=device)
    scores[:, 0] = 0.0  # all beginnings are the same so far
    texts = torch.empty(len(alive), beam, 0, dtype=torch.int64, device=device)
    words = torch.full((len(alive) * beam,), end, device=device)
    for position in range(1, int(longest.max()) + 1):
        logits, state = step(words, state)
        known = logits.log_softmax(dim=-1).view(len(alive), beam, -1)
        size = known.shape[-1]
        # Twice as many as are kept: were each of the first half an end, the second half would still go on.
        values, places = (scores[..., None] + known).flatten(1).topk(min(2 * beam, beam * size))
        parents, words = places // size, places % size
        texts = torch.cat((texts.gather(1, parents[..., None].expand(-1, -1, position - 1)), words[..., None]), dim=2)
        ends = words == end
        for row, place in (ends & values.isfinite())[:, :beam].nonzero().tolist():
            sentence = int(alive[row])
            ended[sentence] += 1
            found = values[row, place].item() / position, texts[row, place, :-1].tolist()
            best[sentence] = max(best[sentence], found, key=_score)
        order = ends.to(torch.int8).sort(dim=1, stable=True).indices[:, :beam]  # what goes on, the likeliest first
        scores = values.masked_fill(ends, -torch.inf).gather(1, order)
        cut = longest[alive] == position
        for row in (cut & (ended[alive] == 0)).nonzero()[:, 0].tolist():
            best[int(alive[row])] = 0.0, texts[row, order[row, 0]].tolist()
        going = (~cut & (ended[alive] < beam)).nonzero()[:, 0]
        if not len(going):
            break
        rows = (going[:, None] * beam + parents.gather(1, order)[going]).flatten()
        texts = texts.gather(1, order[..., None].expand(-1, -1, position))[going]
        words = words.gather(1, order)[going].flatten()
        alive, scores, state = alive[going], scores[going], state.select(rows)
    return [said for _, said in best]


def _score(found: tuple[float, TokenIds]) -> float:
    return found[0]
