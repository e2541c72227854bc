"""Samples from a language model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import torch
from torch import Tensor

from unrolled.errors import UsageError
from unrolled.lab.data.vocabulary import PADDING
from unrolled.lab.models.language_model import LanguageModel, RecurrentState

__all__ = ["generate_tokens", "sample_token"]


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
