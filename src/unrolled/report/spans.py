"""The triangle by spans: row k - 1 holds the n-grams, or the phrases, of k tokens by their first token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.decomposition.attribution.bands import by_first
from unrolled.report.formatting import visible

__all__ = ["Phrase", "Quantity", "by_span", "largest_phrases", "largest_phrases_of", "rows_by_order", "values_of"]

Quantity = Literal["phrase", "score", "contribution"]
"""Score of the phrase; score of the n-gram's own term; contribution of the n-gram."""

_ALIKE = 0.6
"""Two nested n-grams are near-copies if they share this part of their tokens."""


def rows_by_order(band: Tensor, direction: str, longest: int) -> list[list[float]]:
    """Lay out one direction's band, shape (time, lengths), by length and first token."""
    time, held = band.shape
    return [
        (band[k:, k] if direction == "forward" else band[: time - k, k]).tolist() for k in range(min(longest, held))
    ]


def values_of(attribution: Attribution, quantity: Quantity) -> Tensor:
    """Return one quantity of every span, a band for each direction, as in a triangle."""
    if quantity == "contribution":
        return attribution.triangle.contribution_band
    scores = attribution.triangle.score_band
    # a phrase is the sum over the n-grams inside it that end at its end, where it is read
    return scores if quantity == "score" else scores.cumsum(-1)


def by_span(attribution: Attribution, quantity: Quantity) -> Tensor:
    """Return the sum over directions of one quantity by first token and length - 1, shape (time, longest)."""
    bands = values_of(attribution, quantity)
    total = torch.zeros(bands.shape[1:], dtype=torch.float64, device="cpu")
    for band, direction in zip(bands, attribution.directions, strict=True):
        total += by_first(band, direction == "backward")
    return total


@dataclass(frozen=True)
class Phrase:
    """An n-gram with its near-copies: nested n-grams of almost the same tokens, which contribute with the same sign."""

    start: int
    stop: int
    text: str
    """Its tokens as they are shown: a blank among them is read."""
    copies: int
    """Number of near-copies beside the n-gram itself."""
    contribution: float
    """Of the n-gram and its near-copies together, in all directions."""
    score: float
    """The phrase score of the n-gram's tokens."""


def largest_phrases(attribution: Attribution, count: int) -> list[Phrase]:
    """Return the n-grams with the largest contributions, with near-copies in one row."""
    contributions, scores = by_span(attribution, "contribution"), by_span(attribution, "phrase")
    sizes = contributions.abs().flatten()
    looked_at = sizes.topk(min(max(8 * count, 64), sizes.numel()))
    rows: list[tuple[int, int, list[float]]] = []
    for size, place in zip(looked_at.values.tolist(), looked_at.indices.tolist(), strict=True):
        if size == 0:
            break
        start, further = divmod(place, contributions.shape[1])
        stop = start + further + 1
        value = float(contributions[start, further])
        for first, last, members in rows:
            if value * members[0] > 0 and _near_copies((start, stop), (first, last)):
                members.append(value)
                break
        else:
            rows.append((start, stop, [value]))
    rows.sort(key=lambda row: -abs(sum(row[2])))
    return [
        Phrase(
            start=start,
            stop=stop,
            text=" ".join(map(visible, attribution.tokens[start:stop])),
            copies=len(members) - 1,
            contribution=sum(members),
            score=float(scores[start, stop - start - 1]),
        )
        for start, stop, members in rows[:count]
    ]


def largest_phrases_of(attributions: Sequence[Attribution], count: int) -> list[tuple[Attribution, Phrase]]:
    """Return the n-grams of several sequences with the largest contributions, each with its sequence."""
    found = [(each, phrase) for each in attributions for phrase in largest_phrases(each, count)]
    return sorted(found, key=lambda pair: -abs(pair[1].contribution))[:count]


def _near_copies(one: Sequence[int], other: Sequence[int]) -> bool:
    short, long = sorted((one, other), key=lambda span: span[1] - span[0])
    nested = long[0] <= short[0] and short[1] <= long[1]
    return nested and (short[1] - short[0]) >= _ALIKE * (long[1] - long[0])
