"""What page, figure and terminal say of an attribution: panel names, the bars of the ledger, whether it is exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.decomposition.attribution.ledger import Ledger
from unrolled.decomposition.attribution.number_notes import NOISY, NOTED_RESIDUAL
from unrolled.report.formatting import clip, magnitude, minus, share_of, visible

__all__ = [
    "LedgerBar",
    "cancellation_words",
    "ledger_parts",
    "panel_labels",
    "sum_of_ngrams",
    "unit_before",
    "waterfall",
    "waterfall_of_ledger",
]

_SEQUENCE = 40
"""Characters that are shown of a sequence's name."""


@dataclass(frozen=True)
class LedgerBar:
    """One entry of the ledger, drawn from where the entry before it ends."""

    name: str
    value: float
    left: float
    """Left end, from 0 at the left edge to 1000 at the right edge."""
    width: float
    zero: float
    """Position of zero, the same for all bars of a ledger."""


def ledger_parts(ledger: Ledger, sequence: str = "") -> list[tuple[str, float]]:
    """List the parts of a logit by the names that a reader sees, the n-grams first: those of a named sequence."""
    ngrams = f"n-grams of {clip(visible(sequence), _SEQUENCE)}" if sequence else "n-grams"
    names = {"ngrams": ngrams, "initial": "initial state"}
    return [(names.get(key, key), value) for key, value in ledger.items() if key != "logit"]


def waterfall_of_ledger(ledger: Ledger, unit: str = "logit", sequence: str = "") -> list[LedgerBar]:
    """Lay out the ledger of a logit as five bars."""
    return waterfall(ledger_parts(ledger, sequence), (unit, ledger.logit))


def waterfall(entries: Sequence[tuple[str, float]], total: tuple[str, float]) -> list[LedgerBar]:
    """Lay out a sum as bars: each entry starts where the one before it ends, the total at zero."""
    spans, reached = [], 0.0
    for name, value in entries:
        spans.append((name, value, reached, reached + value))
        reached += value
    spans.append((*total, 0.0, total[1]))
    ends = [0.0, *(end for _, _, start, stop in spans for end in (start, stop))]
    low, high = min(ends), max(ends)
    scale = 1000 / (high - low) if high > low else 0.0
    return [
        LedgerBar(
            name=name,
            value=value,
            left=round((min(start, stop) - low) * scale, 2),
            width=round(abs(stop - start) * scale, 2),
            zero=round(-low * scale, 2),
        )
        for name, value, start, stop in spans
    ]


def panel_labels(attributions: Sequence[Attribution]) -> list[str]:
    """Name each attribution by its expansion, or by its sequence if these differ; else by target and number as well."""
    several = len({attribution.target for attribution in attributions}) > 1
    sequences = len({attribution.name for attribution in attributions}) > 1
    names = [a.name if sequences and a.name else a.expansion for a in attributions]
    plain = [f"{name}, {a.target}" if several else name for name, a in zip(names, attributions, strict=True)]
    return [f"{name} ({k + 1})" if plain.count(name) > 1 else name for k, name in enumerate(plain)]


def unit_before(attribution: Attribution) -> str:
    """Write what the explained number is called before it; nothing for an output that has no other name."""
    return "" if attribution.unit == "output" else f"{attribution.unit} "


def cancellation_words(cancellation: float) -> str:
    """Say how far contributions cancel, from 2 on; empty below, and above where a note says it."""
    if not 2 <= cancellation <= NOISY:
        return ""
    return f"contributions are {magnitude(cancellation)} times as large as their sum"


def sum_of_ngrams(attribution: Attribution) -> str:
    """Say whether the n-grams sum to the state and the account closes and, if not, by how much they miss it."""
    if not attribution.exact and attribution.residual > NOTED_RESIDUAL:
        return f"not exact: its n-grams miss the state by {minus(share_of(attribution.residual, 'its size'))}"
    if not attribution.closes:
        movement = abs(attribution.movement)
        share = abs(attribution.ledger.remainder) / movement if movement else float("inf")
        size = minus(share_of(share, f"the {attribution.unit} less the bias"))
        return f"not exact here: the remainder is {size}"
    if not attribution.exact:
        return "not exact: see the notes"
    if attribution.residual > NOTED_RESIDUAL:
        return f"exact, but rounding is {minus(magnitude(attribution.residual))} of the state"
    return "exact: its n-grams sum to the state"
