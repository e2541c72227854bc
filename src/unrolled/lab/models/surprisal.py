"""How likely a language model finds each token of a text."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from unrolled.lab.models.language_model import LanguageModel

__all__ = ["surprisals"]


@torch.no_grad()
def surprisals(model: LanguageModel, start: int, tokens: Sequence[int], window: int) -> list[float]:
    r"""Compute -log₂ p(x_t | x_0, …, x_{t-1}) of every token, in bits.

    Args:
        model: The model, in evaluation mode.
        start: The token x_0 that precedes the text.
        tokens: The text x_1, …, x_T.
        window: Number of tokens read at a time. A recurrent network carries its state from window to window; any other
            encoder starts anew in each, as in its training.

    Returns:
        T numbers; the probability of the text is 2 to the power of minus their sum.
    """
    given = torch.tensor([[start, *tokens]])
    bits: list[float] = []
    state: tuple[torch.Tensor, ...] = ()
    for begin in range(0, len(tokens), window):
        end = min(begin + window, len(tokens))
        features, state = model.read(given[:, begin:end], state)
        scores = model.head.scores(features, model.embedding.weight)[0].double().log_softmax(dim=-1)
        wanted = given[0, begin + 1 : end + 1]
        found = -scores[torch.arange(end - begin), wanted] / torch.log(torch.tensor(2.0, dtype=torch.float64))
        bits += found.tolist()
    return bits
