"""Decoding: greedy and beam search for the output of a decoder, and samples from a language model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor

from unrolled.errors import UsageError
from unrolled.lab.data.vocabulary import PADDING
from unrolled.lab.models.language_model import LanguageModel, RecurrentState

__all__ = ["DecoderState", "DecoderStep", "TokenIds", "beam_search", "generate_tokens", "greedy_search", "sample_token"]


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
    device = max_lengths.device
    best: list[tuple[float, TokenIds]] = [(-torch.inf, []) for _ in max_lengths]
    finished = torch.zeros_like(max_lengths)  # number of finished hypotheses of each sentence
    alive = torch.arange(len(max_lengths), device=device)
    state = state.select(alive.repeat_interleave(beam_width))
    scores = torch.full((len(alive), beam_width), -torch.inf, device=device)
    scores[:, 0] = 0.0  # all hypotheses are still the same
    texts = torch.empty(len(alive), beam_width, 0, dtype=torch.int64, device=device)
    words = torch.full((len(alive) * beam_width,), end, device=device)
    for position in range(1, int(max_lengths.max()) + 1):
        logits, state = step(words, state)
        log_probabilities = logits.log_softmax(dim=-1).view(len(alive), beam_width, -1)
        size = log_probabilities.shape[-1]
        # Twice as many as are kept: if the whole first half ends here, the second half still continues.
        count = min(2 * beam_width, beam_width * size)
        values, places = (scores[..., None] + log_probabilities).flatten(1).topk(count)
        parents, words = places // size, places % size
        texts = torch.cat((texts.gather(1, parents[..., None].expand(-1, -1, position - 1)), words[..., None]), dim=2)
        ends = words == end
        for row, place in (ends & values.isfinite())[:, :beam_width].nonzero().tolist():
            sentence = int(alive[row])
            finished[sentence] += 1
            found = values[row, place].item() / position, texts[row, place, :-1].tolist()
            best[sentence] = max(best[sentence], found, key=_score)
        order = ends.to(torch.int8).sort(dim=1, stable=True).indices[:, :beam_width]  # unfinished, most likely first
        scores = values.masked_fill(ends, -torch.inf).gather(1, order)
        cut = max_lengths[alive] == position
        for row in (cut & (finished[alive] == 0)).nonzero()[:, 0].tolist():
            best[int(alive[row])] = 0.0, texts[row, order[row, 0]].tolist()
        unfinished = (~cut & (finished[alive] < beam_width)).nonzero()[:, 0]
        if not len(unfinished):
            break
        rows = (unfinished[:, None] * beam_width + parents.gather(1, order)[unfinished]).flatten()
        texts = texts.gather(1, order[..., None].expand(-1, -1, position))[unfinished]
        words = words.gather(1, order)[unfinished].flatten()
        alive, scores, state = alive[unfinished], scores[unfinished], state.select(rows)
    return [words for _, words in best]


def _score(hypothesis: tuple[float, TokenIds]) -> float:
    return hypothesis[0]


def generate_tokens(
    model: LanguageModel,
    prompt: Sequence[int],
    *,
    temperature: float = 1.0,
    top: int | None = None,
    never: Collection[int] = (PADDING,),
    context: int = 35,
    generator: torch.Generator | None = None,
) -> Iterator[int]:
    """Sample the continuation of a prompt, token by token, without end.

    A recurrent network reads each token once and keeps its state; an encoder without a state reads the last ``context``
    tokens again for each new token.

    Args:
        model: The model, in evaluation mode.
        prompt: At least one token.
        temperature: The logits are divided by it. 0 takes the most likely token; lower values make the text more
            conservative.
        top: Sample from this number of most likely tokens only; from all tokens when omitted.
        never: Tokens that are never sampled.
        context: Number of tokens that an encoder without a state reads.
        generator: A random generator on the CPU; torch's global one when omitted.

    Yields:
        The next token.

    Raises:
        UsageError: The prompt is empty, or a number is out of range.

    Example:
        >>> import torch
        >>> from itertools import islice
        >>> from unrolled.lab.models.softmax import FullSoftmax
        >>> lstm = torch.nn.LSTM(4, 8, batch_first=True)
        >>> model = LanguageModel(torch.nn.Embedding(10, 4), lstm, FullSoftmax(8, 10)).eval()
        >>> len(list(islice(generate_tokens(model, [3, 1, 4], top=5), 20)))
        20
    """
    if not prompt:
        raise UsageError("the prompt is empty; expected at least one token")
    if context < 1:
        raise UsageError(f"context is {context}; expected 1 or more")
    device = model.embedding.weight.device
    read: list[int] = list(prompt)
    state: RecurrentState = ()
    while True:
        with torch.no_grad():
            if not model.has_state:
                read = read[-context:]
            scores, state = model.next(torch.tensor([read], device=device), state)
            token = sample_token(scores[0].cpu(), temperature, top, never, generator)
        yield token
        read = [token] if model.has_state else [*read, token]


def sample_token(
    scores: Tensor,
    temperature: float = 1.0,
    top: int | None = None,
    never: Collection[int] = (),
    generator: torch.Generator | None = None,
) -> int:
    r"""Sample a token from logits or log-probabilities y, shape (vocabulary,).

    .. math:: p_k \propto e^{y_k / \tau}, \quad k \text{ among the most likely tokens}

    The other arguments are those of :func:`generate_tokens`.

    Raises:
        UsageError: The temperature is negative or infinite, or ``top`` is not positive.
    """
    if not 0 <= temperature < float("inf"):
        raise UsageError(f"the temperature is {temperature}; expected 0 or more")
    if top is not None and top < 1:
        raise UsageError(f"top is {top}; expected 1 or more")
    scores = scores.double().index_fill(0, torch.tensor(list(never), dtype=torch.int64), -torch.inf)
    if temperature == 0:
        return int(scores.argmax())
    likeliest, places = scores.sort(descending=True, stable=True)
    likeliest, places = likeliest[:top], places[:top]
    probabilities = torch.softmax((likeliest - likeliest[0]) / temperature, dim=0)
    return int(places[torch.multinomial(probabilities, 1, generator=generator)])
