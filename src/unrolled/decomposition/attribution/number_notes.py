"""Notes that belong to one number, an output or the difference of two: its remainder and its cancellation."""

from __future__ import annotations

import math

from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.decomposition.opening.parity import FINER

__all__ = [
    "COARSE",
    "HIDING",
    "HIDING_COARSE",
    "NOISY",
    "NOTED_RESIDUAL",
    "cancellation_note",
    "finer_type",
    "is_coarse",
    "number_notes",
]

NOISY = 10.0
"""Above this cancellation, contributions are large against their sum."""
NOTED_RESIDUAL = 1e-3
"""Above this, the residual of an exact expansion is more than ordinary rounding."""
_DOUBLE = 1e-12
"""Rounding of a type below this is that of float64."""
_ROUNDINGS = 32.0
"""The most roundings of Σ|c| that an exact account has missed by; readouts in float16 missed by 3."""
HIDING, HIDING_COARSE = 1e-2, 0.1
"""Rounding of the logit above this share of Σ|c| hides what the contributions sum to; the second in a coarse type."""
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
    return (*notes, *_hidden_note(found), *cancellation_note(found.cancellation, found.expansion))


def _hidden_note(found: Attribution) -> tuple[str, ...]:
    """Note that the rounding of the logit is so large beside contributions that their sum may equal it by chance."""
    rounding, sizes = found.rounding * abs(found.ledger.logit), _sizes(found)
    limit = HIDING_COARSE if is_coarse(found) else HIDING
    if not found.closes or not math.isfinite(sizes) or rounding <= limit * sizes:
        return ()
    share = rounding / sizes
    advice = finer_type(found)
    if found.rounding < _DOUBLE:
        advice = f"explain a target without the constants in the {found.unit}"
    return (
        f"rounding of the {found.unit}, {found.ledger.logit:+.2g}, is up to {rounding:.2g}, {share:.2g} "
        f"{'of' if share < 1 else 'times'} the contributions: the remainder does not show whether they are right; "
        f"{advice}",
    )


def _sizes(found: Attribution) -> float:
    """Return Σ|c|; infinity where the contributions sum to zero."""
    net = abs(found.ledger.ngrams + found.ledger.initial)
    return net * found.cancellation if net else math.inf


def _may_round(found: Attribution) -> bool:
    """Whether contributions of this size, and states that are missed so far, round to this remainder."""
    sizes = _sizes(found)
    relative = _ROUNDINGS * found.rounding + found.residual
    return abs(found.ledger.remainder) <= relative * (sizes + abs(found.ledger.bias) + abs(found.ledger.logit))


def is_coarse(found: Attribution) -> bool:
    """Tell whether the model computes in a type whose rounding alone is worth a note."""
    return found.rounding > COARSE


def finer_type(found: Attribution) -> str:
    """Say what reduces rounding."""
    if is_coarse(found):
        return FINER
    return "use the expansion operating" if found.rounding < _DOUBLE else "use float64: model.double()"
