r"""Polarity scores: the contribution of an n-gram, or of a context, to the readout of a trained classifier.

.. math:: s_{i:t} = w^\top v_{i:t}, \qquad \sum_{i \le t} s_{i:t}

w is the head's weight: that of "positive" minus that of "negative", or that of a rating. Composition models and affine
recurrences have n-grams of their own; those of a recurrent network depend on the expansion.

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
from unrolled.decomposition.decomposition import decompose
from unrolled.decomposition.opening.network_cells import Network
from unrolled.decomposition.result import Decomposition
from unrolled.errors import UsageError
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.run_encoder import run_encoder
from unrolled.lab.training.run_folder import Run
from unrolled.lab.training.text_tasks import TextTask

__all__ = ["context_scores", "context_vectors", "ngram_scores", "open_phrases", "polarity_weight", "triangle_scores"]


def polarity_weight(run: Run) -> Tensor:
    """Give w, shape (hidden,), of a regression, or of a classifier whose second class is the positive one."""
    head = cast("Classifier", run.model).head
    if not isinstance(head, nn.Linear) or head.out_features > 2:
        raise UsageError(f"polarity scores need a linear head with one output or two; the head is {head}")
    weight = head.weight.detach()
    return weight[-1] - weight[0] if len(weight) == 2 else weight[0]


def open_phrases(run: Run, phrases: Sequence[str], expansion: str) -> Decomposition:
    """Decompose a uni-directional network on phrases, words separated by spaces, one phrase a row."""
    encoder = _encoder(run)
    if not isinstance(encoder, Network) or encoder.bidirectional:
        raise UsageError(
            f"{run.task.architecture.encoder} has no n-grams that end at the last word; use a composition model or a "
            "recurrent network that reads one way"
        )
    vectors, lengths = _vectors(run, phrases)
    return decompose(encoder, vectors, lengths, expansion=expansion)


def ngram_scores(run: Run, phrases: Sequence[str], expansion: str = "zero") -> Tensor:
    """Score of each phrase the one n-gram that is the whole phrase, wᵀ v_{1:T}, shape (phrases,).

    Composition models ignore the expansion.
    """
    if isinstance(_encoder(run), CompositionEncoder):
        table, lengths = _composition_scores(run, phrases)
        return table[torch.arange(len(phrases)), lengths - 1, 0]
    return open_phrases(run, phrases, expansion).final_scores(polarity_weight(run))[:, 0, 0]


def context_scores(run: Run, phrases: Sequence[str], expansion: str | None = None) -> Tensor:
    """Score the context at the end of each phrase, the sum of its n-grams' scores, shape (phrases,).

    ``expansion`` is that of :func:`context_vectors`.
    """
    return context_vectors(run, phrases, expansion) @ polarity_weight(run)


@torch.no_grad()
def context_vectors(run: Run, phrases: Sequence[str], expansion: str | None = None) -> Tensor:
    """Give the context at the end of each phrase, shape (phrases, hidden).

    It is the sum of the expansion's terms; without an expansion it is the model's own context h_T, of any encoder.
    """
    vectors, lengths = _vectors(run, phrases)
    if expansion is None or not isinstance(_encoder(run), Network):
        found = run_encoder(_encoder(run), vectors, lengths)
    else:
        found = open_phrases(run, phrases, expansion).context()
    return found[torch.arange(len(phrases)), lengths - 1]


def triangle_scores(run: Run, phrase: str, expansion: str = "zero") -> Tensor:
    """Score every n-gram of a phrase, shape (end, start); zero where the start is after the end."""
    if isinstance(_encoder(run), CompositionEncoder):
        return _composition_scores(run, [phrase])[0][0]
    return open_phrases(run, [phrase], expansion).scores(polarity_weight(run))[0, :, :, 0]


def _encoder(run: Run) -> nn.Module:
    return cast("Classifier", run.model).encoder


@torch.no_grad()
def _vectors(run: Run, phrases: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Embed the phrases, shape (batch, time, input), and give their lengths, shape (batch,)."""
    vocabulary = cast("TextTask", run.task).vocabulary  # type: ignore[type-arg]  # of any corpus
    rows = [torch.tensor(vocabulary.encode(phrase.split(" "))) for phrase in phrases]
    lengths = torch.tensor([len(row) for row in rows])
    return cast("Classifier", run.model).embedding(pad_sequence(rows, batch_first=True)), lengths


@torch.no_grad()
def _composition_scores(run: Run, phrases: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Score all n-grams of a composition model, shape (batch, end, start); also give the lengths."""
    vectors, lengths = _vectors(run, phrases)
    return cast("CompositionEncoder", _encoder(run)).ngrams(vectors, lengths) @ polarity_weight(run), lengths
