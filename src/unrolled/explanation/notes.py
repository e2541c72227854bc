"""Notes beside an explanation or an account: where it must not be trusted, why, and what to do.

One rule for both: a remainder above 1e-3 of the movement is noted, and contributions above 10 times the movement are.
The movement is the output less biases and constants, which is what inputs and initial states account for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache

import torch
from torch import Tensor

from unrolled.decomposition.attribution import Attribution
from unrolled.decomposition.score_ngrams import NGramScores
from unrolled.errors import StrictError, UnrolledError
from unrolled.expansions import resolve
from unrolled.expansions.base import Expansion

__all__ = [
    "NOISY",
    "NOTED_RESIDUAL",
    "cancellations",
    "explanation_notes",
    "growth_note",
    "held_notes",
    "measured_growth",
    "refuse_notes",
]

NOISY = 10.0
"""Above this cancellation, contributions are large against their sum."""
NOTED_RESIDUAL = 1e-3
"""Above this, the residual of an exact expansion is more than ordinary rounding."""
QUIETER = ("gates", "operating")
"""The expansions whose contributions are often smaller."""
MEASURED = 512
"""Up to so many tokens, the quieter expansions are measured; above, they are named."""

Growth = Callable[[int], dict[str, float]]
"""From the row of an example to the cancellation by each quieter expansion."""


def growth_note(cancellation: float, expansion: str, measured: dict[str, float] | None = None) -> tuple[str, ...]:
    """Note a cancellation above :data:`NOISY`, with expansions that are quieter.

    Args:
        cancellation: Σ|c| / |Σc|.
        expansion: Its name.
        measured: The cancellation by other expansions; None if it was not measured.
    """
    if cancellation <= NOISY:
        return ()
    size = f"contributions are {cancellation:.3g} times as large as their sum"
    if measured is None:
        return (f"{size}; another expansion may be quieter: {' or '.join(e for e in QUIETER if e != expansion)}",)
    quieter = sorted((value, name) for name, value in measured.items() if value < 0.9 * cancellation)
    if not quieter:
        return (f"{size}; {' and '.join(measured) or 'no other expansion'} measured no quieter",)
    return (f"{size}; quieter are {', '.join(f'{name} ({value:.3g} times)' for value, name in quieter)}",)


def measured_growth(expansion: Expansion, cancel: Callable[[Expansion], Tensor], time: int) -> Growth | None:
    """Return what measures the cancellation by each quieter expansion; None where that would take long.

    Args:
        expansion: The expansion that was asked for.
        cancel: Computes the cancellation of every row by another expansion.
        time: Number of tokens.
    """
    if time > MEASURED:
        return None

    @cache
    def cancelled(name: str) -> Tensor | None:
        try:
            with torch.no_grad():
                return cancel(resolve(name))
        except UnrolledError:  # a cell without gates
            return None

    def measure(row: int) -> dict[str, float]:
        found = {name: cancelled(name) for name in QUIETER if name != str(expansion)}
        return {name: float(each[row]) for name, each in found.items() if each is not None}

    return measure


def cancellations(found: NGramScores) -> Tensor:
    """Return Σ|c| / |Σc| over all n-grams and the initial state, shape (batch,)."""
    sizes = found.contributions.abs().sum(dim=(1, 2, 3)) + found.initial.abs()
    net = (found.tokens.sum(dim=1) + found.initial).abs()
    return torch.where(sizes > 0, sizes / net, torch.ones_like(sizes))


def limit_note(found: Attribution, asked: int | None) -> tuple[str, ...]:
    """Note that longer n-grams are not told apart, where nobody asked for that."""
    if asked is not None or found.max_order is None:
        return ()
    return (
        f"the text has {len(found):,} tokens: n-grams of more than {found.max_order} are not told apart; max_order "
        "sets another limit",
    )


def explanation_notes(
    found: Attribution,
    expansion: Expansion,
    failures: Iterable[str],
    dtype: torch.dtype,
    growth: Growth | None,
    row: int,
) -> tuple[str, ...]:
    """Note what limits an explanation.

    Args:
        found: The explanation.
        expansion: The expansion that was asked for.
        failures: Why a quadrature is not to be trusted.
        dtype: The type in which the model computed.
        growth: Measures quieter expansions.
        row: The example's row in the network's batch.
    """
    notes = [*failures]
    exact_terms = expansion.exact and not notes
    if exact_terms and found.residual > NOTED_RESIDUAL:
        notes.append(
            f"the terms miss the states by {found.residual:.1g} of their size: terms far larger than their sum cancel, "
            f"which leaves rounding errors; {_finer(dtype)}"
        )
    if not found.closes:
        movement = abs(found.movement)
        share = f"{abs(found.ledger.remainder) / movement:.2g} of" if movement else "beside"
        notes.append(f"the remainder {found.ledger.remainder:+.2g} is {share} the movement {found.movement:+.2g}")
        if not expansion.exact:
            notes[-1] += f": the expansion {expansion} is not exact; use secant"
        elif exact_terms and found.residual <= NOTED_RESIDUAL:
            notes[-1] += f", which is rounding or the readout's; {_finer(dtype)}"
    measured = growth(row) if growth is not None and found.cancellation > NOISY else None
    return (*notes, *growth_note(found.cancellation, str(expansion), measured))


def held_notes(biases: Mapping[str, Tensor], held: Collection[str], from_states: Tensor) -> tuple[str, ...]:
    """Note results that depend on the states, are held, and are added to the target."""
    large = [name for name in sorted(held) if bool((biases[name].abs() > 1e-3 * from_states.abs()).any())]
    if not large:
        return ()
    return (f"the bias contains results that depend on the states and are held: {', '.join(large)}",)


def _finer(dtype: torch.dtype) -> str:
    return "use the expansion operating" if dtype == torch.float64 else "use float64: model.double()"


def refuse_notes(notes: Iterable[str], strict: bool) -> None:
    """Refuse a result that has notes, if ``strict``."""
    found = list(dict.fromkeys(notes))
    if strict and found:
        raise StrictError(f"the result has notes, and strict=True was asked for: {'; '.join(found)}")
