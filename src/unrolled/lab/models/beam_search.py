"""Greedy and beam search for the output of a decoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor

from unrolled.errors import UsageError

__all__ = ["DecoderState", "DecoderStep", "TokenIds", "beam_search", "greedy_search"]


TokenIds = list[int]
"""The words of one sentence, without the end-of-sentence token."""


class DecoderState(Protocol):
    """The state of a decoder, with one row for each sentence or hypothesis."""

    def select(self, rows: Tensor) -> Self:
        """Select rows by index, shape (n,), int64; an index may occur more than once."""


S = TypeVar("S", bound=DecoderState)
DecoderStep = Callable[[Tensor, S], tuple[Tensor, S]]
"""From the previous words, shape (rows,), and the state to the logits of the next words, shape (rows, words), and the
next state. A word with logit -inf is never chosen."""


def greedy_search(step: DecoderStep[S], state: S, max_lengths: Tensor, end: int) -> list[TokenIds]:
    """Choose the most likely word at each position until the sentence ends; arguments as in :func:`beam_search`."""
    sentences: list[TokenIds] = [[] for _ in max_lengths]
    alive = torch.arange(len(max_lengths), device=max_lengths.device)
    words = torch.full_like(alive, end)
    for position in range(1, int(max_lengths.max()) + 1):
        logits, state = step(words, state)
        words = logits.argmax(dim=-1)
        for sentence, word in zip(alive.tolist(), words.tolist(), strict=True):
            if word != end:
                sentences[sentence].append(word)
        unfinished = ((words != end) & (max_lengths[alive] > position)).nonzero()[:, 0]
        if not len(unfinished):
            break
        if len(unfinished) < len(alive):
            alive, words, state = alive[unfinished], words[unfinished], state.select(unfinished)
    return sentences


def beam_search(step: DecoderStep[S], state: S, max_lengths: Tensor, end: int, beam_width: int) -> list[TokenIds]:
    r"""Extend the most likely hypotheses and choose the finished one with the best mean log-probability per word.

    .. math:: \hat y = \arg\max_y \frac{1}{|y|} \sum_t \log p(y_t \mid y_{<t}), \quad |y| \text{ includes the end}

    Without the division the shortest sentence would win. The search for a sentence stops when ``beam_width`` hypotheses
    have finished, or at the maximum length; a hypothesis cut off there counts only if none has finished. A beam width
    of 1 is the greedy search.

    Args:
        step: The decoder.
        state: The initial state, with one row for each sentence.
        max_lengths: The maximum number of words of each sentence, shape (sentences,), int64.
        end: The end-of-sentence token, which is also the word before the first one.
        beam_width: Number of hypotheses kept for each sentence.

    Returns:
        The best hypothesis of each sentence.

    Raises:
        UsageError: The beam width is not positive.

    Source:
        Sutskever et al. (2014), arXiv:1409.3215, section 3.2; the division by length: Cho et al. (2014),
        arXiv:1409.1259, section 4.2.2.
    """
    if beam_width < 1:
        raise UsageError(f"the beam width is {beam_width}; expected 1 or more")
    beams = _Beams(state, max_lengths, end, beam_width)
    for _ in range(int(max_lengths.max())):
        beams.extend(*step(beams.words, beams.state))
        if not len(beams.alive):
            break
    return [words for _, words in beams.best]


class _Beams(Generic[S]):
    """The hypotheses of the sentences that are not over, and the best finished one of every sentence."""

    def __init__(self, state: S, max_lengths: Tensor, end: int, width: int) -> None:
        count, device = len(max_lengths), max_lengths.device
        self.max_lengths = max_lengths
        self.end = end
        self.width = width
        self.best: list[tuple[float, TokenIds]] = [(-torch.inf, []) for _ in range(count)]
        self.finished = torch.zeros_like(max_lengths)
        """Number of finished hypotheses of each sentence."""
        self.alive = torch.arange(count, device=device)
        """The sentences that are not over; the hypotheses below are theirs."""
        self.state = state.select(self.alive.repeat_interleave(width))
        """With a row for each hypothesis."""
        self.scores = torch.full((count, width), -torch.inf, device=device)
        """Log-probabilities of the hypotheses, the most likely first."""
        self.scores[:, 0] = 0.0  # all hypotheses are still the same
        self.texts = torch.empty(count, width, 0, dtype=torch.int64, device=device)
        self.words = torch.full((count * width,), end, device=device)
        """The last word of each hypothesis."""

    def extend(self, logits: Tensor, state: S) -> None:
        """Extend the hypotheses by a word; ``logits`` and ``state`` are what the decoder returns for them."""
        log_probabilities = logits.log_softmax(dim=-1).view(len(self.alive), self.width, -1)
        size = log_probabilities.shape[-1]
        # Twice as many as are kept: if the whole first half ends here, the second half still continues.
        count = min(2 * self.width, self.width * size)
        values, places = (self.scores[..., None] + log_probabilities).flatten(1).topk(count)
        parents, words = places // size, places % size
        texts = torch.cat((self._gathered(self.texts, parents), words[..., None]), dim=2)
        ends = words == self.end
        self._keep_finished(values, texts, ends)
        order = ends.to(torch.int8).sort(dim=1, stable=True).indices[:, : self.width]  # unfinished, most likely first
        unfinished = self._unfinished(texts, order)
        rows = (unfinished[:, None] * self.width + parents.gather(1, order)[unfinished]).flatten()
        self.scores = values.masked_fill(ends, -torch.inf).gather(1, order)[unfinished]
        self.texts = self._gathered(texts, order)[unfinished]
        self.words = words.gather(1, order)[unfinished].flatten()
        self.alive, self.state = self.alive[unfinished], state.select(rows)

    @staticmethod
    def _gathered(texts: Tensor, places: Tensor) -> Tensor:
        """Select texts of each sentence, shape (sentences, texts, words), by their places in it."""
        return texts.gather(1, places[..., None].expand(-1, -1, texts.shape[2]))

    def _keep_finished(self, values: Tensor, texts: Tensor, ends: Tensor) -> None:
        """Keep the best hypothesis of each sentence that has ended, of the most likely extensions."""
        for row, place in (ends & values.isfinite())[:, : self.width].nonzero().tolist():
            sentence = int(self.alive[row])
            self.finished[sentence] += 1
            found = values[row, place].item() / texts.shape[2], texts[row, place, :-1].tolist()
            self.best[sentence] = max(self.best[sentence], found, key=lambda hypothesis: hypothesis[0])

    def _unfinished(self, texts: Tensor, order: Tensor) -> Tensor:
        """Return the rows of the sentences that go on; one that is cut off has its most likely hypothesis."""
        cut = self.max_lengths[self.alive] == texts.shape[2]
        for row in (cut & (self.finished[self.alive] == 0)).nonzero()[:, 0].tolist():
            self.best[int(self.alive[row])] = 0.0, texts[row, order[row, 0]].tolist()
        return (~cut & (self.finished[self.alive] < self.width)).nonzero()[:, 0]
