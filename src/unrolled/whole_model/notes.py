"""Notes beside an account: where it must not be trusted, and what to do."""

from __future__ import annotations

import torch

from unrolled.decomposition.attribution.number_notes import COARSE, HIDING, HIDING_COARSE
from unrolled.explanation.further_runs.behind_held import BehindHeld, arguments_named
from unrolled.explanation.notes import NOTED, above_movement
from unrolled.held_forward.tensor_facts.rows import CONSTANTS, MASKS
from unrolled.whole_model.accounted_output import AccountedOutput
from unrolled.whole_model.contributions import Contributions

__all__ = ["notes_of"]

_ROUNDINGS_OF_NOTHING = 32.0
"""Below so many roundings of the largest contributions in its batch, an example contributes nothing."""


def notes_of(result: AccountedOutput, found: Contributions, behind: BehindHeld) -> tuple[str, ...]:
    """Say what limits an account.

    Args:
        result: The account.
        found: What it was made of.
        behind: The arguments and numbers that reach the output only through factors that are held.
    """
    notes = [*_remainder_notes(result), *result.cancellation_notes]
    if found.computed:
        notes.append(
            "the model makes ids or numbers of tokens' ids that cannot be followed to single tokens: what they "
            f"contribute is among the constants: {', '.join(sorted(found.computed))}"
        )
    if found.python_tables:
        tables = ", ".join(sorted(found.python_tables))
        notes.append(
            f"the model makes ids numbers of Python and reads {tables} at such numbers: if these are ids, what their "
            "rows contribute is among the biases and not at their tokens; index the table with a tensor"
        )
    if found.turning:
        notes.append(
            f"the zeros and ones of {arguments_named(found.turning)} turn ids of tokens into other ids: what that "
            "changes is credited to these tokens; change them and run the model to see the effect"
        )
    notes += behind.notes()
    held = {name: value for name, value in result.constants.items() if name not in (CONSTANTS, *found.computed)}
    large = above_movement(held, result.movement)
    if results := [name for name in large if name != MASKS]:
        notes.append(f"results that are held contribute to the output by themselves: {', '.join(results)}")
    if MASKS in large:
        notes.append(
            f"{MASKS} contribute to the output by themselves: answers about tokens, or arguments of zeros and ones; "
            "if these are features, pass them as floating-point numbers, and each has its contribution"
        )
    return tuple(notes)


def _remainder_notes(result: AccountedOutput) -> tuple[str, ...]:
    """Say what the account leaves over, or by how much rounding may be off where nothing is."""
    remedy, coarse, worst = _remedy(result), _is_coarse(result), float(result.remainder.abs().max())
    if not result.exact:
        return (f"the expansion {result.expansion} is not exact: what it leaves out is the remainder, {worst:.2g}",)
    if result.overgrown:
        return (
            "the account is not exact: contributions are so large against their sum that rounding hides what each of "
            f"them is{remedy}",
        )
    if not result.closes and not result.rounds:
        return (
            f"the contributions miss the output by up to {worst:.2g}, which is more than rounding: a part of the model "
            "is not accounted for; please report the model, and account for a part of it with of=",
        )
    if not result.closes:
        why = "they are far larger than their sum, so rounding remains"
        if result.by_quadrature:
            why = "a quadrature expands a recurrent network, so its error and rounding remain"
        elif coarse and not result.cancellation_notes:
            why = f"the model computes in {result.coarsest}, whose rounding remains"
        return (f"the contributions miss the output by up to {worst:.2g}: {why}{remedy}",)
    if coarse and bool((result.rounding > NOTED * result.movement.abs()).any()):
        return (
            f"the model computes in {result.coarsest}: contributions are exact to its rounding, up to "
            f"{float(result.rounding.max()):.1g}{remedy}",
        )
    return _hidden_note(result)


def _hidden_note(result: AccountedOutput) -> tuple[str, ...]:
    """Note that rounding is so large beside what inputs contribute that their sum may equal the movement by chance."""
    eps = torch.finfo(result.output.dtype).eps
    # an example of padding alone, or of zeros, contributes nothing: what it has is rounding of what others contribute
    contributes = result.moved > _ROUNDINGS_OF_NOTHING * eps * result.moved.max()
    shares = torch.where(contributes, result.rounding / result.moved, 0.0)
    worst = int(shares.argmax())
    share = float(shares[worst])
    if share <= (HIDING_COARSE if eps > COARSE else HIDING):
        return ()
    finer = "account for a target without the constants in the output"
    if result.output.dtype != torch.float64:
        finer = "use float64: model.double()"
    return (
        f"rounding of the output, {float(result.output[worst]):+.2g}, is up to {float(result.rounding[worst]):.2g}, "
        f"{share:.2g} {'of' if share < 1 else 'times'} what inputs and initial states contribute: the remainder does "
        f"not show whether they are right; {finer}",
    )


def _remedy(result: AccountedOutput) -> str:
    """Say what leaves less rounding; empty if nothing does."""
    if _is_coarse(result):
        finer = f"a finer type where the model computes in {result.coarsest}"
    else:
        finer = "" if result.output.dtype == torch.float64 else "float64 (model.double())"
    if result.recurrent:
        finer = f"{finer} or the expansion operating" if finer else "the expansion operating"
    return f"; use {finer}" if finer else ""


def _is_coarse(result: AccountedOutput) -> bool:
    """Tell whether the model computes in a coarser type than that of its output."""
    return torch.finfo(result.coarsest).eps > torch.finfo(result.output.dtype).eps
