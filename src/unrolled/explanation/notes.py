"""Notes beside an explanation or an account: where it must not be trusted, why, and what to do.

One rule for both. The movement is the output less biases and constants: what inputs and initial states account for. A
remainder above 1e-3 of it is noted, and so is a held result that contributes more than that by itself. Contributions
are noted if they are more than 10 times as large as their sum.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from torch import Tensor

from unrolled.decomposition.attribution.number_notes import NOTED_RESIDUAL, finer_type, is_coarse, number_notes
from unrolled.errors import ConvergenceError, StrictError, UnrolledError
from unrolled.expansions.base import Expansion
from unrolled.explanation.explanation import Explanation
from unrolled.held_forward.tensor_facts.rows import CONSTANTS, Row

__all__ = [
    "NOTED",
    "above_movement",
    "bias_notes",
    "constants_note",
    "failure_notes",
    "initial_notes",
    "ray_notes",
    "refuse_notes",
    "with_limits",
]

NOTED = 1e-3
"""Above this share of the movement, what a remainder or a held result contributes is noted."""
_NOTHING = 1e-12
"""Below this share of what the initial state contributes, a token adds nothing."""
_ALL_INITIAL = (
    "the initial state holds all that the network contributes: n-grams are what tokens add to a state, and these add "
    "nothing, as where they only multiply it"
)
_DIVIDED = "; the expansion shares and unrolled.account divide such products"
_HELD_IN_SHARES = " by factors that are held; change them and run the model to see the effect"
_NUMBERS_PAST = (
    "the bias contains constants that are made of numbers which the model reads past its recurrent network: "
    "unrolled.account says what each contributes"
)


def with_limits(found: Explanation, expansion: Expansion, failures: Sequence[str], no_order: bool) -> Explanation:
    """Return an explanation with notes on what limits it.

    Args:
        found: The explanation; it is exact if its terms are.
        expansion: The expansion that was asked for.
        failures: Why the expansion is not to be trusted.
        no_order: Whether a limit to the length of n-grams is neither the user's nor the network's.
    """
    notes = [*found.notes]
    if found.max_order is not None and no_order:
        notes.append(
            f"the text has {len(found):,} tokens: n-grams of more than {found.max_order} are not told apart; max_order "
            "sets another limit"
        )
    notes += failures
    if expansion.exact and not failures and found.residual > NOTED_RESIDUAL:
        missed = f"the terms miss the states by {found.residual:.1g} of their size"
        if _is_of_a_user(expansion):
            advice = "unrolled.testing.check_expansion tells whether it is"
            notes.append(f"{missed}, though the expansion {expansion} says that it is exact: {advice}")
        elif is_coarse(found):
            notes.append(f"{missed}: the model computes them in a coarse type; {finer_type(found)}")
        else:
            why = "terms far larger than their sum cancel, which leaves rounding errors"
            notes.append(f"{missed}: {why}; {finer_type(found)}")
    return replace(found, notes=(*notes, *number_notes(found)))


def _is_of_a_user(expansion: Expansion) -> bool:
    """Tell whether a linearisation is none of this package, whose tests show which of its own are exact."""
    return any(not type(member).__module__.startswith("unrolled.") for member in expansion.members())


def failure_notes(failures: Iterable[UnrolledError | None]) -> tuple[str, ...]:
    """Say why expansions are not to be trusted: of quadratures the worst of each kind."""
    worst: dict[str, UnrolledError] = {}
    for failure in failures:
        kind = failure.why if isinstance(failure, ConvergenceError) else str(failure)
        if failure is not None and (kind not in worst or _error(failure) > _error(worst[kind])):
            worst[kind] = failure
    return tuple(map(str, worst.values()))


def _error(failure: UnrolledError) -> float:
    return failure.error if isinstance(failure, ConvergenceError) else 0.0


def bias_notes(
    biases: Mapping[str, Tensor],
    of_rows: Sequence[tuple[Row, Tensor | None]],
    tables: Collection[str],
    from_states: Tensor,
) -> tuple[str, ...]:
    """Note what is more than a bias: results that depend on the states, vectors and numbers read past the networks.

    Args:
        biases: The parts of the bias, by name.
        of_rows: What each row contributes past the networks, None for nothing.
        tables: The names of tables of vectors.
        from_states: What the states contribute.
    """
    held = {row.name for row, _ in of_rows if row.kind == "held"}
    numbers = [
        part.detach().to(from_states.device) for row, part in of_rows if part is not None and row.is_of_arguments
    ]
    large = above_movement(biases, from_states)
    results, vectors = ([name for name in large if name in names] for names in (held, tables))
    notes = (
        [f"the bias contains results that depend on the states and are held: {', '.join(results)}"] if results else []
    )
    if vectors:
        notes.append(
            "the bias contains vectors that the model reads past its recurrent network: "
            f"{', '.join(vectors)}; unrolled.account says what each token contributes"
        )
    past = above_movement({str(place): part for place, part in enumerate(numbers)}, from_states)
    return (*notes, *([_NUMBERS_PAST] if past else []))


def constants_note(found: Explanation, read_past: Callable[[], bool]) -> tuple[str, ...]:
    """Note that constants may be numbers of the arguments, if the model reads some past its networks."""
    constants = found.biases.get(CONSTANTS, 0.0)
    if (
        _NUMBERS_PAST in found.notes
        or abs(constants) <= NOTED * abs(found.ledger.logit - found.ledger.bias)
        or not read_past()
    ):
        return ()
    return (
        f"the bias contains constants of {constants:+.2g}, and the model reads numbers past its recurrent network: "
        "unrolled.account says what each contributes",
    )


def ray_notes(found: Explanation, read_at_zero: Callable[[], tuple[bool, list[str]]]) -> tuple[str, ...]:
    """Note that the bias of a ray, the output at states of zero, is made of words or numbers, where it is."""
    bias = found.ledger.bias
    if found.biases or abs(bias) <= NOTED * abs(found.ledger.logit - bias):
        return ()
    numbers, tables = read_at_zero()
    return tuple(
        f"the bias of {bias:+.2g}, the output at states of zero, is made of {what} which the model reads past its "
        f"recurrent network: unrolled.account says what each {each} contributes"
        for what, each in _read_parts(numbers, tables)
    )


def initial_notes(found: Explanation, first_states_read: Callable[[], tuple[bool, list[str]]]) -> tuple[str, ...]:
    """Note that the initial state holds all, and that it holds words or numbers, where the model makes it of them."""
    if abs(found.ledger.initial) <= NOTED * abs(found.ledger.logit - found.ledger.bias):
        return ()
    numbers, tables = first_states_read()
    adds = bool((found.token_scores.abs() > _NOTHING * abs(found.ledger.initial)).any())
    read = (
        f"the initial state is computed from {what}: unrolled.account says what each {each} contributes"
        for what, each in _read_parts(numbers, tables)
    )
    by_shares = found.expansion.startswith("shares")
    all_initial = f"{_ALL_INITIAL}{_HELD_IN_SHARES if by_shares else _DIVIDED}"
    return (*(() if adds else (all_initial,)), *read)


def _read_parts(numbers: bool, tables: Sequence[str]) -> list[tuple[str, str]]:
    """Say what is read, and what an account has a row for."""
    parts = [(f"vectors of {', '.join(tables)}", "token")] if tables else []
    return parts + ([("numbers of the arguments", "number")] if numbers else [])


def above_movement(parts: Mapping[str, Tensor], movement: Tensor) -> list[str]:
    """Return the names of the parts of a sum that are large enough to be noted, beside what inputs account for."""
    return [name for name in sorted(parts) if bool((parts[name].abs() > NOTED * movement.abs()).any())]


def refuse_notes(notes: Iterable[str], strict: bool) -> None:
    """Refuse a result that has notes, if ``strict``."""
    found = list(dict.fromkeys(notes))
    if strict and found:
        raise StrictError(f"the result has notes, and strict=True was asked for: {'; '.join(found)}")
