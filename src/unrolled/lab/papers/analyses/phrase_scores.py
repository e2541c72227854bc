"""Scores of phrases inside sentences, by n-gram terms and by the methods that they are compared with.

Every method scores all phrases of all sentences at once and answers in the unit of the polarity: the logit of
"positive" less that of "negative". What a method that looks at a sentence as a whole reads is open: the sentence's own
logit, which knows what follows the phrase, or, as n-grams do, the state at the phrase's last word. Gradients are taken
of either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from unrolled.decomposition.decomposition import decompose
from unrolled.decomposition.open_network import Network
from unrolled.errors import UsageError
from unrolled.lab.data.batching import EncodedTexts
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.run_encoder import run_padded_encoder
from unrolled.lab.papers.analyses.contextual_decomposition import contextual_decomposition
from unrolled.lab.papers.analyses.phrases import Phrases

__all__ = [
    "Reader",
    "alone",
    "by_contextual_decomposition",
    "by_expansion",
    "by_gradients",
    "error_at_the_end",
    "gradient_times_input",
    "integrated_gradients",
]

_BATCH = 64
Attribution = Callable[[Callable[[Tensor, Tensor], Tensor], Tensor, Tensor], Tensor]
"""What attributes a function of token vectors and lengths to the tokens: shape (batch, time)."""


@dataclass(frozen=True)
class Reader:
    """A classifier of two classes that reads its last state through a linear head, and its words."""

    model: Classifier
    vocabulary: Vocabulary

    @property
    def weight(self) -> Tensor:
        """What makes the polarity of a state, shape (hidden,)."""
        negative, positive = cast("nn.Linear", self.model.head).weight.detach()
        return positive - negative

    def batches(self, texts: Sequence[Sequence[str]], size: int = _BATCH) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Lay texts of like length side by side.

        Args:
            texts: their tokens.
            size: how many a batch holds at most.

        Yields:
            The texts' numbers and lengths, shape (batch,), and their token vectors, shape (batch, time, input).
        """
        encoded = EncodedTexts.encode(texts, [0] * len(texts), self.vocabulary)
        for which in encoded.plan(size):
            batch = encoded.select(which)
            yield which, batch.lengths, self.model.embedding(batch.tokens).detach()

    def polarity(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Run the classifier from its token vectors on.

        Args:
            vectors: shape (batch, time, input).
            lengths: shape (batch,).

        Returns:
            The polarity, shape (batch,).
        """
        states = run_padded_encoder(self.model.encoder, vectors, lengths)
        negative, positive = self.model.head(self.model.pooling(states, lengths)).unbind(dim=-1)
        return positive - negative

    @torch.no_grad()
    def polarities(self, texts: Sequence[Sequence[str]]) -> Tensor:
        """Run the classifier over texts.

        Args:
            texts: their tokens.

        Returns:
            The polarities, shape (texts,), float64.
        """
        found = torch.empty(len(texts), dtype=torch.float64)
        for which, lengths, vectors in self.batches(texts):
            found[which] = self.polarity(vectors, lengths).double()
        return found


@torch.no_grad()
def by_expansion(reader: Reader, phrases: Phrases, expansion: str) -> tuple[Tensor, Tensor]:
    """Score phrases by n-gram terms, read at their last word.

    Args:
        reader: the classifier.
        phrases: in their sentences.
        expansion: as ``decompose`` takes it.

    Returns:
        For each phrase i … t the sum of the scores of v_{a:t}, a in i … t, and the score of v_{i:t} alone, both of
        shape (phrases,), float64.
    """
    sentence, start, stop = phrases.places.unbind(dim=1)
    ngram, phrase = torch.empty(2, len(phrases), dtype=torch.float64)
    for which, lengths, vectors in reader.batches(phrases.sentences):
        found = decompose(cast("Network", reader.model.encoder), vectors, lengths, expansion=expansion)
        scores = found.scores(reader.weight)[..., 0].double()  # (batch, end, start)
        inside = scores.flip(-1).cumsum(dim=-1).flip(-1)  # of all n-grams that begin there or later
        row = torch.full((len(phrases.sentences),), -1)
        row[which] = torch.arange(len(which))
        mine = (row[sentence] >= 0).nonzero()[:, 0]
        place = (row[sentence[mine]], stop[mine] - 1, start[mine])
        ngram[mine], phrase[mine] = scores[place], inside[place]
    return phrase, ngram


@torch.no_grad()
def error_at_the_end(reader: Reader, texts: Sequence[Sequence[str]], expansion: str) -> Tensor:
    """Measure how far an expansion's terms are from adding up to the last state: ‖Σ v - h‖ / ‖h‖.

    Args:
        reader: the classifier.
        texts: their tokens.
        expansion: as ``decompose`` takes it.

    Returns:
        Relative errors, shape (texts,), float64.
    """
    error = torch.empty(len(texts), dtype=torch.float64)
    for which, lengths, vectors in reader.batches(texts):
        found = decompose(cast("Network", reader.model.encoder), vectors, lengths, expansion=expansion)
        error[which] = found.residual()[torch.arange(len(which)), lengths - 1].double()
    return error


def alone(reader: Reader, phrases: Phrases) -> Tensor:
    """Score each phrase by running the classifier on it alone.

    Args:
        reader: the classifier.
        phrases: in their sentences.

    Returns:
        Scores, shape (phrases,).
    """
    return reader.polarities(phrases.texts)


def by_gradients(reader: Reader, phrases: Phrases, attribute: Attribution, *, to_the_end: bool, size: int) -> Tensor:
    """Score phrases by adding up what is attributed to their tokens.

    Args:
        reader: the classifier.
        phrases: in their sentences.
        attribute: what attributes a polarity to tokens.
        to_the_end: whether the polarity is that of the whole sentence, or of the sentence up to the phrase's end.
        size: how many texts a batch holds.

    Returns:
        Scores, shape (phrases,).
    """
    texts, text_of = (phrases.sentences, phrases.places[:, 0]) if to_the_end else phrases.prefixes()
    longest = max(map(len, texts))
    sums = torch.zeros(len(texts), longest + 1, dtype=torch.float64)  # of all tokens before each place
    for which, lengths, vectors in reader.batches(texts, size):
        found = attribute(reader.polarity, vectors, lengths).double().cumsum(dim=1)
        sums[which, 1 : found.shape[1] + 1] = found
    return sums[text_of, phrases.places[:, 2]] - sums[text_of, phrases.places[:, 1]]


def gradient_times_input(polarity: Callable[[Tensor, Tensor], Tensor], vectors: Tensor, lengths: Tensor) -> Tensor:
    """Attribute by the gradient at the tokens' vectors.

    Args:
        polarity: a function of vectors and lengths.
        vectors: shape (batch, time, input).
        lengths: shape (batch,).

    Returns:
        x ᵀ ∂F/∂x of each token, shape (batch, time).
    """
    leaf = vectors.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(polarity(leaf, lengths).sum(), leaf)
    return (gradient * vectors).sum(dim=-1)


def integrated_gradients(steps: int) -> Attribution:
    """Make an attribution by gradients averaged along the line from zero vectors, as captum has it.

    Args:
        steps: of the average; each is a pass forward and one backward.

    Returns:
        The attribution.

    Raises:
        UsageError: when captum is missing.

    Source:
        Sundararajan, Taly and Yan (2017), arXiv:1703.01365.
    """
    try:
        from captum.attr import IntegratedGradients  # type: ignore[import-untyped]  # no stubs
    except ImportError as error:
        raise UsageError(
            'integrated gradients need captum; install it with: pip install "unrolled[compare]"'
        ) from error

    def attribute(polarity: Callable[[Tensor, Tensor], Tensor], vectors: Tensor, lengths: Tensor) -> Tensor:
        whole = IntegratedGradients(polarity)
        found = whole.attribute(vectors, n_steps=steps, additional_forward_args=(lengths,))
        return cast("Tensor", found).detach().sum(dim=-1)

    return attribute


def by_contextual_decomposition(reader: Reader, phrases: Phrases, *, to_the_end: bool) -> Tensor:
    """Score phrases by what of the state is theirs alone.

    Args:
        reader: a classifier that reads with an LSTM.
        phrases: in their sentences.
        to_the_end: whether it is read at the sentence's end, as its authors do, or at the phrase's.

    Returns:
        Scores, shape (phrases,).

    Raises:
        UsageError: when the classifier reads with anything else.
    """
    lstm = reader.model.encoder
    if not isinstance(lstm, nn.LSTM):
        raise UsageError(f"contextual decomposition came for a {type(lstm).__name__}; expected an nn.LSTM")
    sentence, start, stop = phrases.places.unbind(dim=1)
    texts = [phrases.sentences[number] for number in sentence.tolist()]
    found = torch.empty(len(phrases), dtype=torch.float64)
    for which, lengths, vectors in reader.batches(texts, 8 * _BATCH):
        ours, _ = contextual_decomposition(lstm, vectors.transpose(0, 1), start[which], stop[which])
        read = (lengths if to_the_end else stop[which]) - 1
        found[which] = (ours[read, torch.arange(len(which))] @ reader.weight).double()
    return found
