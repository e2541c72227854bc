r"""Scores of pairs of words i < j inside a text, by the expansions and by methods that they are compared with.

An expansion gives three. Its *own term* is the score of the n-gram i … j. Its *change* is what word j makes of the
term that begins at i: the score of i … j less that of i … j-1. In a model that reads its last state the terms of single
words and the changes sum to the logit, less its bias. Its *sum* is that of the scores of all n-grams that hold both.

A method that scores phrases gives a pair what the phrase i … j has more than its parts:
P(i … j) - P(i+1 … j) - P(i … j-1) + P(i+1 … j-1). For an expansion's phrase scores this is the change.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from unrolled.errors import UsageError
from unrolled.explanation.api import explain_batch
from unrolled.lab.papers.analyses.attribution_methods.contextual_decomposition import (
    contextual_decomposition,
    one_way_lstm,
)
from unrolled.lab.papers.analyses.attribution_methods.explained_texts import Explained
from unrolled.lab.papers.analyses.attribution_methods.interaction_index import without_words

__all__ = ["READINGS", "RIVALS", "expansion_pairs", "rival_pairs"]

READINGS = ("own term", "change", "sum")
"""What an expansion says of a pair."""


def _terms(explained: Explained, expansion: str) -> Tensor:
    """Score all n-grams of texts of one length, shape (batch, first word, last word); zero below the diagonal."""
    if isinstance(explained.model.encoder, nn.RNNBase) and explained.model.encoder.bidirectional:
        raise UsageError("pairs are scored in networks of one direction: an n-gram ends where it is read")
    found = explain_batch(
        explained.model, explained.tokens, explained.lengths, target=explained.target, expansion=expansion
    )
    return torch.stack([each.triangle.scores[0].mT for each in found]).double()


def expansion_pairs(explained: Explained, expansion: str) -> dict[str, Tensor]:
    """Score pairs of words of texts of one length by each of :data:`READINGS`, shape (batch, time, time).

    Raises:
        UsageError: If the network reads backward.
    """
    terms = _terms(explained, expansion)
    shorter = torch.cat((torch.zeros_like(terms[:, :, :1]), terms[:, :, :-1]), dim=2)
    around = terms.cumsum(dim=1).flip(2).cumsum(dim=2).flip(2)
    return dict(zip(READINGS, (terms, terms - shorter, around), strict=True))


def _beyond_parts(explained: Explained, scores: Tensor) -> Tensor:
    """Take from the score of each phrase of :func:`_spans` what its two parts have, less what both of these have."""
    phrases = torch.zeros(*explained.tokens.shape, explained.tokens.shape[1], dtype=torch.float64)
    phrases[_spans(explained)] = scores
    first = torch.cat((phrases[:, 1:], torch.zeros_like(phrases[:, :1])), dim=1)
    inner = torch.cat((torch.zeros_like(first[:, :, :1]), first[:, :, :-1]), dim=2)
    shorter = torch.cat((torch.zeros_like(phrases[:, :, :1]), phrases[:, :, :-1]), dim=2)
    return phrases - first - shorter + inner


def _spans(explained: Explained) -> tuple[Tensor, Tensor, Tensor]:
    """List the phrases of all texts: text, first word and last word."""
    time = explained.tokens.shape[1]
    text, first, last = torch.ones(len(explained.tokens), time, time).triu().nonzero().unbind(dim=1)
    return text, first, last


@torch.no_grad()
def _alone(explained: Explained) -> Tensor:
    """Run the model on each phrase without its text."""
    text, first, last = _spans(explained)
    place = torch.arange(explained.tokens.shape[1])
    copies = explained.copies(explained.tokens[text], explained.lengths[text], text)
    runs = copies.without((place < first[:, None]) | (place > last[:, None])).margins().double()
    return _beyond_parts(explained, runs - without_words(copies))


@torch.no_grad()
def _decomposition(explained: Explained) -> Tensor:
    """Take the part of each phrase in the last state, by contextual decomposition."""
    model = explained.model
    lstm = one_way_lstm(model.encoder)
    text, first, last = _spans(explained)
    ours, _ = contextual_decomposition(lstm, explained.vectors[text].transpose(0, 1), first, last + 1)
    copies = explained.copies(explained.tokens[text], explained.lengths[text], text)
    read = copies.target(model.head(model.pooling(ours.transpose(0, 1), copies.lengths))).double()
    return _beyond_parts(explained, read - without_words(copies))


def _hessian(explained: Explained) -> Tensor:
    """Take x_iᵀ ∂²F/∂x_i∂x_j x_j: the second derivatives by factors of the words' vectors, at factors of 1."""
    factors = torch.ones(explained.tokens.shape, requires_grad=True)
    margins = explained.target_of_vectors(explained.vectors * factors[..., None], explained.lengths)
    (slopes,) = torch.autograd.grad(margins.sum(), factors, create_graph=True)
    rows = [torch.autograd.grad(slope.sum(), factors, retain_graph=True)[0] for slope in slopes.unbind(dim=1)]
    return torch.stack(rows, dim=1).double()


def _words(explained: Explained) -> tuple[Tensor, Tensor]:
    """Give the terms of single words, that of the first word of each pair and that of the second."""
    words = _terms(explained, "secant").diagonal(dim1=1, dim2=2)
    pairs = words[:, :, None].expand(-1, -1, words.shape[1])
    return pairs, pairs.mT


def _products(explained: Explained) -> Tensor:
    first, second = _words(explained)
    return first * second


def _forgotten(explained: Explained) -> Tensor:
    """Score as if every word took an equal share from what was before it, whatever the two words are."""
    return -_words(explained)[0]


def _saturated(explained: Explained) -> Tensor:
    """Score as if two words together had an equal share less than both alone."""
    first, second = _words(explained)
    return -(first + second)


def _random(explained: Explained) -> Tensor:
    generator = torch.Generator().manual_seed(int(explained.tokens.sum()))
    return torch.randn(*explained.tokens.shape, explained.tokens.shape[1], generator=generator, dtype=torch.float64)


RIVALS: dict[str, Callable[[Explained], Tensor]] = {
    "the phrase alone": _alone,
    "contextual decomposition": _decomposition,
    "Hessian x input": _hessian,
    "product of the words' terms": _products,
    "minus the first word's term": _forgotten,
    "minus both words' terms": _saturated,
    "random": _random,
}


def rival_pairs(explained: Explained, method: str) -> Tensor:
    """Score pairs of words of texts of one length by one of :data:`RIVALS`, shape (batch, time, time).

    Raises:
        UsageError: If the method does not exist for the network.
    """
    return RIVALS[method](explained)
