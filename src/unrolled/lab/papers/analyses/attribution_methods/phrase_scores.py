"""Scores of phrases inside sentences, by n-gram terms and by the methods that they are compared with.

Every method scores all phrases of all sentences at once, in the unit of the polarity: the logit of "positive" minus
that of "negative". A method that looks at a whole sentence can read either the sentence's logit, which depends on the
words after the phrase, or the state at the phrase's last word, as n-gram terms do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from unrolled.decomposition.decomposition import decompose
from unrolled.decomposition.opening.network_cells import Network
from unrolled.decomposition.result import Decomposition
from unrolled.errors import UsageError, kind_of
from unrolled.lab.data.batches.base import EncodedTexts
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.run_encoder import run_padded_encoder
from unrolled.lab.papers.analyses.attribution_methods.captum_methods import load_captum
from unrolled.lab.papers.analyses.attribution_methods.contextual_decomposition import contextual_decomposition
from unrolled.lab.papers.analyses.attribution_methods.labelled_phrases import LabelledPhrases, Texts

__all__ = [
    "PolarityModel",
    "attribution_scores",
    "contextual_decomposition_scores",
    "expansion_error",
    "expansion_scores",
    "gradient_times_input",
    "integrated_gradients",
    "isolated_scores",
]

_BATCH = 64
AttributionMethod = Callable[[Callable[[Tensor, Tensor], Tensor], Tensor, Tensor], Tensor]
"""Attributes a function of token vectors and lengths to the tokens, shape (batch, time)."""


@dataclass(frozen=True)
class PolarityModel:
    """A classifier of "negative" and "positive" with a linear head over its last state, and its vocabulary."""

    model: Classifier
    vocabulary: Vocabulary

    @property
    def weight(self) -> Tensor:
        """The readout that turns a state into a polarity, shape (hidden,)."""
        negative, positive = cast("nn.Linear", self.model.head).weight.detach()
        return positive - negative

    def batches(self, texts: Sequence[Sequence[str]], size: int = _BATCH) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Batch texts of similar length: indices and lengths, shape (batch,), and vectors, (batch, time, input)."""
        encoded = EncodedTexts.encode(texts, [0] * len(texts), self.vocabulary)
        for which in encoded.plan(size):
            batch = encoded.select(which)
            yield which, batch.lengths, self.model.embedding(batch.tokens).detach()

    def decompositions(
        self, texts: Sequence[Sequence[str]], expansion: str
    ) -> Iterator[tuple[Tensor, Tensor, Decomposition]]:
        """Decompose the network batch by batch; also yield the texts' indices and lengths."""
        for which, lengths, vectors in self.batches(texts):
            yield which, lengths, decompose(cast("Network", self.model.encoder), vectors, lengths, expansion=expansion)

    def polarity(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Compute the polarity, shape (batch,), of token vectors of shape (batch, time, input)."""
        states = run_padded_encoder(self.model.encoder, vectors, lengths)
        negative, positive = self.model.head(self.model.pooling(states, lengths)).unbind(dim=-1)
        return positive - negative

    @torch.no_grad()
    def polarities(self, texts: Sequence[Sequence[str]]) -> Tensor:
        """Compute the polarity of each text, shape (texts,), float64."""
        found = torch.empty(len(texts), dtype=torch.float64)
        for which, lengths, vectors in self.batches(texts):
            found[which] = self.polarity(vectors, lengths).double()
        return found


@torch.no_grad()
def expansion_scores(reader: PolarityModel, phrases: LabelledPhrases, expansion: str) -> tuple[Tensor, Tensor]:
    """Score each phrase i … t by n-gram terms, read at its last word.

    Returns the sum of the scores of v_{a:t} for a in i … t, and the score of v_{i:t} alone, both of shape (phrases,).
    """
    sentence, start, stop = phrases.places.unbind(dim=1)
    ngram, phrase = torch.empty(2, len(phrases), dtype=torch.float64)
    for which, _, found in reader.decompositions(phrases.sentences, expansion):
        scores = found.scores(reader.weight)[..., 0].double()  # (batch, end, start)
        inside = scores.flip(-1).cumsum(dim=-1).flip(-1)  # over all n-grams that begin there or later
        row = torch.full((len(phrases.sentences),), -1)
        row[which] = torch.arange(len(which))
        here = (row[sentence] >= 0).nonzero()[:, 0]
        place = (row[sentence[here]], stop[here] - 1, start[here])
        ngram[here], phrase[here] = scores[place], inside[place]
    return phrase, ngram


@torch.no_grad()
def expansion_error(reader: PolarityModel, texts: Sequence[Sequence[str]], expansion: str) -> Tensor:
    """Compute ‖Σ v - h‖ / ‖h‖ at the last state of each text, shape (texts,), float64."""
    error = torch.empty(len(texts), dtype=torch.float64)
    for which, lengths, found in reader.decompositions(texts, expansion):
        error[which] = found.residual()[torch.arange(len(which)), lengths - 1].double()
    return error


def isolated_scores(reader: PolarityModel, phrases: LabelledPhrases) -> Tensor:
    """Score each phrase by running the classifier on it without its sentence, shape (phrases,)."""
    return reader.polarities(phrases.texts)


def attribution_scores(
    reader: PolarityModel, phrases: LabelledPhrases, attribute: AttributionMethod, *, to_the_end: bool, size: int
) -> Tensor:
    """Score each phrase by the sum of its tokens' attributions, shape (phrases,).

    The polarity attributed is that of the whole sentence if ``to_the_end``, else of the sentence up to the phrase's
    end. ``size`` is the number of texts in a batch.
    """

    def attributions(texts: Texts) -> Iterator[tuple[Tensor, Tensor]]:
        for which, lengths, vectors in reader.batches(texts, size):
            yield which, attribute(reader.polarity, vectors, lengths)

    return phrases.sums(attributions, to_the_end=to_the_end)


def gradient_times_input(polarity: Callable[[Tensor, Tensor], Tensor], vectors: Tensor, lengths: Tensor) -> Tensor:
    """Attribute x ᵀ ∂F/∂x to each token, shape (batch, time)."""
    leaf = vectors.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(polarity(leaf, lengths).sum(), leaf)
    return (gradient * vectors).sum(dim=-1)


def integrated_gradients(steps: int) -> AttributionMethod:
    """Make captum's integrated gradients from a baseline of zero vectors, averaged over ``steps`` points.

    Source:
        Sundararajan, Taly and Yan (2017), arXiv:1703.01365.
    """
    kind = load_captum().IntegratedGradients

    def attribute(polarity: Callable[[Tensor, Tensor], Tensor], vectors: Tensor, lengths: Tensor) -> Tensor:
        found = kind(polarity).attribute(vectors, n_steps=steps, additional_forward_args=(lengths,))
        return cast("Tensor", found).detach().sum(dim=-1)

    return attribute


def contextual_decomposition_scores(reader: PolarityModel, phrases: LabelledPhrases, *, to_the_end: bool) -> Tensor:
    """Score each phrase by its part β of an LSTM's state, shape (phrases,).

    The state is that at the end of the sentence if ``to_the_end``, as the method's authors have it, else that at the
    end of the phrase.
    """
    lstm = reader.model.encoder
    if not isinstance(lstm, nn.LSTM):
        raise UsageError(f"contextual decomposition needs an nn.LSTM; the encoder is {kind_of(lstm)}")
    sentence, start, stop = phrases.places.unbind(dim=1)
    texts = [phrases.sentences[number] for number in sentence.tolist()]
    found = torch.empty(len(phrases), dtype=torch.float64)
    for which, lengths, vectors in reader.batches(texts, 8 * _BATCH):
        ours, _ = contextual_decomposition(lstm, vectors.transpose(0, 1), start[which], stop[which])
        read = (lengths if to_the_end else stop[which]) - 1
        found[which] = (ours[read, torch.arange(len(which))] @ reader.weight).double()
    return found
