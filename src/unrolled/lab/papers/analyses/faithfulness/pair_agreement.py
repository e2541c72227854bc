"""Agreement of scores of pairs of words with exact interaction indices, over texts of different lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unrolled.lab.models.classifier import Classifier
from unrolled.lab.papers.analyses.attribution_methods.explained_texts import Explained, predict
from unrolled.lab.papers.analyses.sentences.negated_pairs import PlantedPair
from unrolled.lab.papers.framework.bootstrap import correlate, interval

__all__ = ["Matrices", "of_one_length", "rank_agreement", "score_pairs", "sign_agreement"]

Matrices = list[Tensor]
"""Numbers of the pairs of words of each text, shape (words, words) each; those above the diagonal count."""
_AT_ONCE = 32


@dataclass(frozen=True)
class _Pairs:
    """The pairs of all texts in one row."""

    values: Tensor
    text: Tensor
    neighbours: Tensor


def _pairs(matrices: Matrices) -> _Pairs:
    rows = [torch.triu_indices(len(each), len(each), offset=1) for each in matrices]
    values = torch.cat([each[first, second] for each, (first, second) in zip(matrices, rows, strict=True)])
    text = torch.cat([torch.full((row.shape[1],), number) for number, row in enumerate(rows)])
    return _Pairs(values, text, torch.cat([second - first == 1 for first, second in rows]))


def of_one_length(model: Classifier, texts: Sequence[Sequence[int]]) -> list[tuple[list[int], Explained]]:
    """Batch texts of equal length, so that none is padded; what is explained is the margin of the second class."""
    found = []
    for length in sorted({len(text) for text in texts}):
        which = [number for number, text in enumerate(texts) if len(text) == length]
        for start in range(0, len(which), _AT_ONCE):
            some = which[start : start + _AT_ONCE]
            tokens = torch.tensor([list(texts[number]) for number in some])
            explained = predict(model, tokens, torch.full((len(some),), length))
            found.append((some, replace(explained, classes=torch.ones_like(explained.classes))))
    return found


def score_pairs(
    batches: Sequence[tuple[list[int], Explained]], score: Callable[[Explained], dict[str, Tensor]]
) -> dict[str, Matrices]:
    """Score the pairs of all texts; the matrices are in the order of the texts."""
    count = sum(len(which) for which, _ in batches)
    found: dict[str, Matrices] = {}
    for which, explained in batches:
        for name, values in score(explained).items():
            for number, matrix in zip(which, values, strict=True):
                found.setdefault(name, [torch.empty(0)] * count)[number] = matrix.detach().double()
    return found


def rank_agreement(scores: Matrices, index: Matrices, draws: int) -> dict[str, list[float]]:
    """Correlate ranks of scores and indices over neighbours and over all pairs; resamples draw whole texts.

    Each correlation is followed by its 95% interval.
    """
    ours, theirs = _pairs(scores), _pairs(index)
    found = {}
    for name, which in (("neighbours", ours.neighbours), ("all pairs", torch.ones_like(ours.neighbours))):
        each = correlate(ours.values[which], theirs.values[which], ours.text[which], ranked=True, draws=draws)
        found[name] = [round(value, 4) for value in (each.value, *each.interval)]
    return found


def sign_agreement(
    scores: Matrices, index: Matrices, planted: Sequence[PlantedPair], draws: int
) -> dict[str, list[float]]:
    """Compare signs at the planted pairs: shares of the texts, each followed by its 95% interval.

    ``negators`` and ``intensifiers`` are the texts in which such a pair has the sign of the index. Of the texts with a
    negated pair, ``expected`` are those in which it has the sign that a unit would have, and ``strongest`` those in
    which it is the largest of all neighbours. Texts of one pair resemble each other, so resamples draw pairs.
    """
    here = torch.tensor([float(each[p.place, p.place + 1]) for each, p in zip(scores, planted, strict=True)])
    there = torch.tensor([float(each[p.place, p.place + 1]) for each, p in zip(index, planted, strict=True)])
    largest = torch.tensor([float(each.diagonal(1).abs().max()) for each in scores])
    negated = torch.tensor([each.negated for each in planted])
    expected = torch.tensor([each.expected for each in planted])
    names = {pair: number for number, pair in enumerate(dict.fromkeys(each.pair for each in planted))}
    group = torch.tensor([names[each.pair] for each in planted])
    agree = here.sign() == there.sign()
    measured = {
        "negators": (agree, negated),
        "intensifiers": (agree, ~negated),
        "expected": (here.sign() == expected, negated),
        "strongest": (here.abs() >= largest, negated),
    }
    return {name: _share(holds[which], group[which], draws) for name, (holds, which) in measured.items()}


def _share(holds: Tensor, group: Tensor, draws: int) -> list[float]:
    """Give the share of texts, and its interval from resamples of the groups."""
    group = group.unique(return_inverse=True)[1]
    count = int(group.max()) + 1
    hits, sizes = (torch.zeros(count).index_add_(0, group, each.float()) for each in (holds, torch.ones_like(holds)))
    drawn = torch.randint(count, (draws, count), generator=torch.Generator().manual_seed(0))
    shares = hits[drawn].sum(dim=1) / sizes[drawn].sum(dim=1)
    return [round(value, 4) for value in (float(holds.float().mean()), *interval(shares.tolist()))]
