r"""Polarity scores: what a trained classifier makes of an n-gram or of a context.

.. math:: s_{i:t} = w^\top v_{i:t}, \qquad \sum_{i \le t} s_{i:t}

w is the head's weight: that of "positive" less that of "negative", or that of a rating. Composition encoders and the
cells of affine recurrences have n-grams of their own; a recurrent network's depend on the expansion that opens it.

Source:
    Implicit n-grams, eq. 14; Sequence-level features, eq. 19 and 20.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from unrolled.composition.base import CompositionEncoder
from unrolled.decomposition.decomposition import Decomposition, decompose
from unrolled.decomposition.open_network import Network
from unrolled.errors import UsageError
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.run_encoder import run_encoder
from unrolled.lab.training.run_folder import Run
from unrolled.lab.training.text_tasks import WholeText

__all__ = ["context_scores", "context_vectors", "ngram_scores", "open_phrases", "polarity_weight", "triangle_scores"]


def polarity_weight(run: Run) -> Tensor:
    """Give w: the direction in which a state says "positive", or rates higher.

    Args:
        run: a classifier of two classes, the positive one second, or a regression.

    Returns:
        Shape (hidden,).

    Raises:
        UsageError: when its head is not linear, or gives more than two numbers.
    """
    head = cast("Classifier", run.model).head
    if not isinstance(head, nn.Linear) or head.out_features > 2:
        raise UsageError(f"polarity scores need a linear head with one output or two; found {head}")
    weight = head.weight.detach()
    return weight[-1] - weight[0] if len(weight) == 2 else weight[0]


def open_phrases(run: Run, phrases: Sequence[str], expansion: str) -> Decomposition:
    """Open the network on some phrases.

    Args:
        run: a trained model, uni-directional.
        phrases: words with spaces between them.
        expansion: how its states are rewritten.

    Returns:
        The decomposition of all these phrases, one a row.

    Raises:
        UsageError: when its encoder is no recurrent network, or reads both ways.
    """
    encoder = _encoder(run)
    if not isinstance(encoder, Network) or encoder.bidirectional:
        raise UsageError(
            f"{run.task.architecture.encoder} has no n-grams that end where it has read all; expected a composition "
            "model or a recurrent network that reads one way"
        )
    vectors, lengths = _vectors(run, phrases)
    return decompose(encoder, vectors, lengths, expansion=expansion)


def ngram_scores(run: Run, phrases: Sequence[str], expansion: str = "zero") -> Tensor:
    """Score of each phrase the one n-gram that is the whole of it, wᵀ v_{1:T}.

    Args:
        run: a trained model, uni-directional.
        phrases: words with spaces between them.
        expansion: how a recurrent network is opened; composition models do without.

    Returns:
        Shape (phrases,).
    """
    if isinstance(_encoder(run), CompositionEncoder):
        table, lengths = _table(run, phrases)
        return table[torch.arange(len(phrases)), lengths - 1, 0]
    return open_phrases(run, phrases, expansion).final_scores(polarity_weight(run))[:, 0, 0]


def context_scores(run: Run, phrases: Sequence[str], expansion: str | None = None) -> Tensor:
    """Score the context at each phrase's end: the sum of its n-grams' scores.

    Args:
        run: a trained model, uni-directional; any encoder will do where there is no expansion.
        phrases: words with spaces between them.
        expansion: as :func:`context_vectors` takes it.

    Returns:
        Shape (phrases,).
    """
    return context_vectors(run, phrases, expansion) @ polarity_weight(run)


@torch.no_grad()
def context_vectors(run: Run, phrases: Sequence[str], expansion: str | None = None) -> Tensor:
    """Give the context at each phrase's end.

    Args:
        run: a trained model, uni-directional; any encoder will do where there is no expansion.
        phrases: words with spaces between them.
        expansion: how a recurrent network is opened, so that the context is the sum of the expansion's terms; the
            model's own context, h_T, when left out.

    Returns:
        Shape (phrases, hidden).
    """
    vectors, lengths = _vectors(run, phrases)
    if expansion is None or not isinstance(_encoder(run), Network):
        found = run_encoder(_encoder(run), vectors, lengths)
    else:
        found = open_phrases(run, phrases, expansion).context()
    return found[torch.arange(len(phrases)), lengths - 1]


def triangle_scores(run: Run, phrase: str, expansion: str = "zero") -> Tensor:
    """Score every n-gram of a phrase.

    Args:
        run: a trained model, uni-directional.
        phrase: words with spaces between them.
        expansion: how a recurrent network is opened.

    Returns:
        Shape (end, start), zero where the start is behind the end.
    """
    if isinstance(_encoder(run), CompositionEncoder):
        return _table(run, [phrase])[0][0]
    return open_phrases(run, [phrase], expansion).scores(polarity_weight(run))[0, :, :, 0]


def _encoder(run: Run) -> nn.Module:
    return cast("Classifier", run.model).encoder


@torch.no_grad()
def _vectors(run: Run, phrases: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Look the phrases up, shapes (batch, time, input) and (batch,)."""
    vocabulary = cast("WholeText", run.task).vocabulary  # type: ignore[type-arg]  # whatever its corpus
    rows = [torch.tensor(vocabulary.encode(phrase.split(" "))) for phrase in phrases]
    lengths = torch.tensor([len(row) for row in rows])
    return cast("Classifier", run.model).embedding(pad_sequence(rows, batch_first=True)), lengths


@torch.no_grad()
def _table(run: Run, phrases: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Score all n-grams of a composition model, shape (batch, end, start); and the phrases' lengths."""
    vectors, lengths = _vectors(run, phrases)
    return cast("CompositionEncoder", _encoder(run)).ngrams(vectors, lengths) @ polarity_weight(run), lengths
