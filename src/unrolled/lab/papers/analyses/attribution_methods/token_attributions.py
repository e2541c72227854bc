"""Attributions of a prediction to the words of a text: the expansions, and the methods that they compete with.

Every method gives each word one number, in the unit of the logit. An expansion gives a word the sum of the terms of all
n-grams that begin with it; ``account, EXPANSION`` gives it what :func:`unrolled.account` does, where the biases of the
network are rows of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from unrolled.errors import UnknownNameError, UsageError
from unrolled.expansions import EXPANSIONS, resolve
from unrolled.explanation.api import explain_batch
from unrolled.lab.papers.analyses.attribution_methods.agglomerative_decomposition import agglomerate
from unrolled.lab.papers.analyses.attribution_methods.backward_rules import deep_lift, relevance
from unrolled.lab.papers.analyses.attribution_methods.contextual_decomposition import (
    contextual_decomposition,
    one_way_lstm,
)
from unrolled.lab.papers.analyses.attribution_methods.explained_texts import Explained
from unrolled.lab.papers.analyses.attribution_methods.phrase_scores import gradient_times_input, integrated_gradients
from unrolled.lab.papers.analyses.attribution_methods.sampled_attributions import kernel_shap, lime, shapley_sampling
from unrolled.whole_model.account import account

__all__ = ["TokenAttribution", "attribute", "attributor"]

_AT_ONCE = 512
"""Interpolated texts in a batch of integrated gradients."""
_COPIES_AT_ONCE = 512


@dataclass(frozen=True)
class TokenAttribution:
    """What a method says of a batch."""

    values: Tensor
    """Shape (batch, time), float64; 0 at padding."""
    rest: Tensor | None = None
    """What the method says is not of the words, shape (batch,): words and rest sum to the margin if the method is
    complete. None where a method states no sum."""


Attributor = Callable[[Explained], TokenAttribution]


def attribute(method: str, explained: Explained) -> TokenAttribution:
    """Attribute the margins to the words by a method; see :func:`attributor`."""
    return attributor(method)(explained)


def attributor(method: str) -> Attributor:
    """Find the function of a method by its name; any name that is no other method's is that of an expansion.

    Raises:
        UnknownNameError: If no method has that name; the message suggests the nearest one.
        UsageError: If a method lacks its number, or needs a library that is missing. The function raises it where the
            method does not exist for a network; ``account, path`` raises a ``ConvergenceError`` where its quadrature
            does not converge.
    """
    name, _, number = method.partition(", ")
    if method in _PLAIN:
        return _masked(_PLAIN[method])
    if name in _METHODS_WITH_A_NUMBER:
        if not number.isdecimal():
            raise UsageError(f"{method!r} lacks its number of points or samples; write it behind the name: {name}, 50")
        return _masked(_METHODS_WITH_A_NUMBER[name](int(number)))
    if name == "account":
        return _masked(partial(_account, expansion=number))
    try:
        resolve(method)
    except UnknownNameError:
        known = {*_PLAIN, *_METHODS_WITH_A_NUMBER, "account", *EXPANSIONS.names()}
        raise UnknownNameError("method of attribution", method, known) from None
    return _masked(partial(_ngrams, expansion=method))


def _masked(found: Attributor) -> Attributor:
    """Set padding to zero, in float64."""

    def attribute(explained: Explained) -> TokenAttribution:
        attribution = found(explained)
        values = torch.where(explained.inside, attribution.values.detach().double(), 0.0)
        return TokenAttribution(values, None if attribution.rest is None else attribution.rest.detach().double())

    return attribute


def _ngrams(explained: Explained, expansion: str) -> TokenAttribution:
    """Sum the contributions of all n-grams that begin with a word, over all places where the model reads."""
    found = explain_batch(
        explained.model, explained.tokens, explained.lengths, target=explained.target, expansion=expansion
    )
    for each in found:
        if any("quadrature" in note for note in each.notes):
            raise UsageError(f"{expansion}: its quadrature has not converged")
    values = torch.zeros(explained.tokens.shape, dtype=torch.float64)
    for row, each in zip(values, found, strict=True):
        row[: len(each.tokens)] = each.token_scores
    return TokenAttribution(values, torch.tensor([each.ledger.bias + each.ledger.initial for each in found]))


def _account(explained: Explained, expansion: str) -> TokenAttribution:
    found = account(
        explained.model, explained.tokens, explained.lengths, target=explained.target, expansion=expansion or "secant"
    )
    tokens = found.tokens
    assert tokens is not None
    if tokens.dim() == 3:  # of every token to every example: a token of another example adds 0
        tokens = tokens.sum(dim=0)
    return TokenAttribution(tokens, found.output - found.movement + found.initial)


def _gradient(explained: Explained) -> TokenAttribution:
    values = gradient_times_input(explained.target_of_vectors, explained.vectors, explained.lengths)
    return TokenAttribution(values, torch.zeros(len(values)))


def _integrated_gradients(points: int) -> Attributor:
    attribution, size = integrated_gradients(points), max(1, _AT_ONCE // points)

    def attribute(explained: Explained) -> TokenAttribution:
        values = torch.zeros(explained.tokens.shape)
        for start in range(0, len(values), size):
            which = torch.arange(start, min(start + size, len(values)))
            few = explained.copies(explained.tokens[which], explained.lengths[which], which)
            values[which] = attribution(few.target_of_vectors, few.vectors, few.lengths).to(values)
        with torch.no_grad():
            zeros = torch.zeros_like(explained.vectors)
            return TokenAttribution(values, explained.target_of_vectors(zeros, explained.lengths))

    return attribute


@torch.no_grad()
def _occlusion(explained: Explained, *, blank: bool) -> TokenAttribution:
    """Take each word away, or replace it by the blank token: what the margin loses."""
    batch, time = explained.tokens.shape
    text, place = explained.inside.nonzero().unbind(dim=1)
    values, before = torch.zeros(batch, time, dtype=torch.float64), explained.margins().double()
    for start in range(0, len(text), _COPIES_AT_ONCE):
        rows, places = text[start : start + _COPIES_AT_ONCE], place[start : start + _COPIES_AT_ONCE]
        copies = explained.copies(explained.tokens[rows], explained.lengths[rows], rows)
        removed = torch.arange(time) == places[:, None]
        changed = copies.blanked(removed) if blank else copies.without(removed)
        values[rows, places] = before[rows] - changed.margins().double()
    return TokenAttribution(values)


def _random(explained: Explained) -> TokenAttribution:
    generator = torch.Generator().manual_seed(int(explained.tokens.sum()))
    return TokenAttribution(torch.randn(explained.tokens.shape, generator=generator))


def _phrase_scores(explained: Explained) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Score phrases, given by text, start and stop, by contextual decomposition."""
    model, vectors, lstm = explained.model, explained.vectors, one_way_lstm(explained.model.encoder)

    @torch.no_grad()
    def score(texts: Tensor, starts: Tensor, stops: Tensor) -> Tensor:
        found = torch.zeros(len(texts), dtype=torch.float64)
        for which in torch.arange(len(texts)).split(_COPIES_AT_ONCE):
            rows = texts[which]
            inputs = vectors[rows].transpose(0, 1)
            of_phrase, _ = contextual_decomposition(lstm, inputs, starts[which], stops[which])
            few = explained.copies(explained.tokens[rows], explained.lengths[rows], rows)
            pooled = model.pooling(of_phrase.transpose(0, 1), few.lengths)
            bias = few.target(model.head(torch.zeros_like(pooled)))
            found[which] = (few.target(model.head(pooled)) - bias).double()
        return found

    return score


def _decomposition(explained: Explained) -> TokenAttribution:
    """Contextual decomposition with each word as the phrase."""
    text, place = explained.inside.nonzero().unbind(dim=1)
    values = torch.zeros(explained.tokens.shape, dtype=torch.float64)
    values[text, place] = _phrase_scores(explained)(text, place, place + 1)
    return TokenAttribution(values)


_PLAIN: dict[str, Attributor] = {
    "gradient x input": _gradient,
    "occlusion": partial(_occlusion, blank=False),
    "occlusion by <unk>": partial(_occlusion, blank=True),
    "random": _random,
    "contextual decomposition": _decomposition,
    "agglomerative contextual decomposition": lambda explained: TokenAttribution(
        agglomerate(_phrase_scores(explained), explained.lengths)
    ),
    "LRP": lambda explained: TokenAttribution(relevance(explained), torch.zeros(len(explained.tokens))),
    "DeepLift": lambda explained: TokenAttribution(*deep_lift(explained)),
    "kernel SHAP, 2M + 2048": lambda explained: TokenAttribution(*kernel_shap(explained, 2048, of_each_word=2)),
}
_METHODS_WITH_A_NUMBER: dict[str, Callable[[int], Attributor]] = {
    "integrated gradients": _integrated_gradients,
    "Shapley sampling": lambda samples: lambda explained: TokenAttribution(*shapley_sampling(explained, samples)),
    "kernel SHAP": lambda samples: lambda explained: TokenAttribution(*kernel_shap(explained, samples)),
    "LIME": lambda samples: lambda explained: TokenAttribution(lime(explained, samples)),
}
"""Methods whose name is followed by a number, as in ``"integrated gradients, 32"``: points, or samples."""
