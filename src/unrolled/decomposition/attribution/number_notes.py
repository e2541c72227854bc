"""Notes that belong to one number, an output or the difference of two: its remainder and its cancellation."""

from __future__ import annotations

import math

from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.decomposition.opening.parity import FINER

__all__ = ["NOISY", "NOTED_RESIDUAL", "cancellation_note", "finer_type", "is_coarse", "number_notes"]

NOISY = 10.0
"""Above this cancellation, contributions are large against their sum."""
NOTED_RESIDUAL = 1e-3
"""Above this, the residual of an exact expansion is more than ordinary rounding."""
DOUBLE = 1e-12
"""Rounding of a type below this is that of float64."""
ROUNDINGS = 32.0
"""The most roundings of Σ|c| that an exact account has missed by; readouts in float16 missed by 3."""
COARSE = 1e-4
"""Rounding of a type above this is that of float16 or bfloat16."""


def cancellation_note(cancellation: float, expansion: str | None) -> tuple[str, ...]:
    """Note a cancellation above :data:`NOISY`, and what to compare; see ``docs/mathematics.md``, "Which to prefer".

    Args:
        cancellation: Σ|c| / |Σc|.
        expansion: Its name; None where nothing was expanded.
    """
    if cancellation <= NOISY:
        return ()
    size = f"{cancellation:.3g}" if math.isfinite(cancellation) else "infinitely many"
    note = f"contributions are {size} times as large as their sum: "
    if expansion is None:
        return (f"{note}change the input and run the model to check",)
    other = "secant" if expansion == "shares" else "shares"
    return (
        f"{note}compare the expansion {other}, and change the input and run the model to check; an expansion with less "
        "cancellation is not nearer the truth",
    )


def number_notes(found: Attribution) -> tuple[str, ...]:
    """Note what limits the account of one number."""
    notes = []
    if not found.closes:
        movement = abs(found.movement)
        share = abs(found.ledger.remainder) / movement if movement else math.inf
        size = "beside" if not movement else f"{share:.2g} {'of' if share < 1 else 'times'}"
        whole = f"the {found.unit} less the bias, {found.movement:+.2g}"
        note = f"the remainder {found.ledger.remainder:+.2g} is {size} {whole}"
        if found.leaves_out:
            note += f": the expansion {found.expansion} is not exact; use secant"
        elif (found.exact or found.residual > NOTED_RESIDUAL) and not _may_round(found):
            note += (
                ", which is more than rounding: no gradient by the states shows it; change the input and run the model"
            )
        elif found.exact and found.residual <= NOTED_RESIDUAL:
            note += (
                f", which is rounding or the readout's; {finer_type(found)}. No gradient by the states shows what "
                "stays then: change the input and run the model"
            )
        notes.append(note)
    return (*notes, *cancellation_note(found.cancellation, found.expansion))


def _may_round(found: Attribution) -> bool:
    """Whether contributions of this size, and states that are missed so far, round to this remainder."""
    net = abs(found.ledger.ngrams + found.ledger.initial)
    sizes = net * found.cancellation if net else math.inf
    relative = ROUNDINGS * found.rounding + found.residual
    return abs(found.ledger.remainder) <= relative * (sizes + abs(found.ledger.bias) + abs(found.ledger.logit))


def is_coarse(found: Attribution) -> bool:
    """Whether the model computes in a type whose rounding alone is worth a note."""
    return found.rounding > COARSE


def finer_type(found: Attribution) -> str:
    """Say what reduces rounding."""
    if is_coarse(found):
        return FINER
    return "use the expansion operating" if found.rounding < DOUBLE else "use float64: model.double()"
