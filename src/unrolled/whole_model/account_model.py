"""Account for a model of Python modules: one plain run, and a held run for each member of the expansion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from unrolled.decomposition.arguments import place_of_infinite_number
from unrolled.decomposition.opening.parity import FINER, PARITY
from unrolled.errors import NonFiniteError, UnrolledError, UnsupportedOperationError, UsageError
from unrolled.expansions.secant import Secant
from unrolled.explanation.examples import refuse_no_examples
from unrolled.explanation.further_runs.behind_held import BehindHeld, behind_held
from unrolled.explanation.further_runs.not_read import HeldReads
from unrolled.explanation.infinite_weights import find_infinite_weight, infinite_weights_named
from unrolled.explanation.model_arguments import named_arguments, names_of_places
from unrolled.explanation.model_run import ModelRun
from unrolled.explanation.networks.scripted_modules import python_form, script_kind
from unrolled.explanation.plain_run import PlainRun
from unrolled.explanation.targets.arguments_beside import note_arguments_beside
from unrolled.explanation.targets.wanted import no_classes
from unrolled.explanation.thread_count import one_thread_if_small
from unrolled.held_forward.held_only import follow_if_held_only
from unrolled.linalg.freed_memory import keep_freed_memory
from unrolled.model_runs.eval_mode import without_autocast
from unrolled.model_runs.preserve_model import preserved
from unrolled.user_models.torch_script import is_scripted
from unrolled.whole_model.account_request import AccountRequest
from unrolled.whole_model.contributions import Contributions, collect
from unrolled.whole_model.held_run import HeldRun, HeldRuns
from unrolled.whole_model.notes import notes_of
from unrolled.whole_model.one_of_the_examples import one_of_the_examples
from unrolled.whole_model.result import Account
from unrolled.whole_model.text_words import words_of_texts

__all__ = ["account_model"]


def account_model(model: nn.Module, asked: AccountRequest) -> Account:
    """Account for an output of a model, all of whose modules are Python's."""
    _refuse_scripted_or_coarse(model)
    keep_freed_memory()
    args, kwargs = asked.args, asked.kwargs
    one_thread, run = one_thread_if_small(model, (args, kwargs)), ModelRun.of(model, args, kwargs)
    with infinite_weights_named(model), preserved(model, asked.seed) as generators, without_autocast(), one_thread:
        plain = PlainRun.of(run, generators, asked.seed is not None)
        target = asked.wanted.select(plain.output, (args, kwargs))
        expected = _checked(target.select(plain.output).detach(), args, kwargs)
        drawn = plain.runs.second(expected, target.select) if plain.runs.draws else ()  # else the held run tells
        held = HeldRuns(plain, asked, target.select, expected)
        means, of_target = _mean_of_members(held)
        if target.guessed and means.shared:
            raise no_classes(plain.output)
        exact = asked.expansion.exact or not means.recurrent
        behind = _behind_held(held, means, exact)
    result = Account(
        target=target.name,
        target_of_example=target.names,
        expansion=str(asked.expansion),
        exact=exact,
        texts=means.texts,
        features=means.features,
        initial=means.initial + torch.zeros_like(expected),
        biases=means.biases,
        constants=means.constants,
        output=expected,
        passed=means.passed + torch.zeros_like(expected),
        coarsest=means.coarsest,
        recurrent=means.recurrent,
        by_quadrature=means.by_quadrature,
        axes=means.axes,
        argument_names=names_of_places(model, len(args)) if asked.of is None else {},
        words=words_of_texts(asked.tokens, args, kwargs, means, len(expected)),
        deterministic=plain.runs.drew_nothing(drawn),
    )
    if not torch.isfinite(result.remainder).all():
        raise _not_finite(model, result)
    told = (*notes_of(result, means, behind), *one_of_the_examples(plain.output, target.index, result))
    beside = note_arguments_beside(asked.wanted.target, lambda: plain.output, args, kwargs)
    return replace(result, exact=result.exact and result.closes, notes=(*drawn, *of_target, *beside, *told))


def _mean_of_members(held: HeldRuns) -> tuple[Contributions, tuple[str, ...]]:
    """Average the contributions of a held run for each member of the expansion; return notes on the target as well."""
    found: list[Contributions] = []
    notes: tuple[str, ...] = ()
    for member in held.asked.expansion.members():
        parts, _, of_held = follow_if_held_only(partial(held.run, member), _collected)
        found.append(parts)
        notes = (*parts.of_run, *of_held)
    return Contributions.mean(found), notes


def _behind_held(held: HeldRuns, means: Contributions, exact: bool) -> BehindHeld:
    """Find what the output depends on only through results that are held, not what an expansion leaves out."""
    asked = held.asked
    unread = means if exact or not (means.unread or means.unread_numbers) else _unread_by_all_terms(held, means)
    members = asked.expansion.members() if exact else (*asked.expansion.members(), Secant())
    reads = HeldReads(held.plain.model, asked.args, asked.kwargs, held.select, members, asked.seed, asked.share)
    return behind_held(reads, unread.unread, unread.unread_numbers)


def _unread_by_all_terms(held: HeldRuns, means: Contributions) -> Contributions:
    """Return what is not read by an exact expansion either: another one may leave out what is not held."""
    try:
        exact, _, _ = follow_if_held_only(partial(held.run, Secant()), _collected)
    except UnrolledError:  # a cell that has no such expansion
        return replace(means, unread=frozenset(), unread_numbers={})
    return Contributions.mean([means, exact])


def _not_finite(model: nn.Module, found: Account) -> NonFiniteError:
    """Say why contributions are not finite while the output is: a weight that the output does not read, or overflow."""
    name = find_infinite_weight(model)
    if name is None:
        expansion = found.expansion if found.recurrent else None
        return NonFiniteError.overflow(
            "the contributions", found.output.dtype == found.coarsest == torch.float64, expansion
        )
    return NonFiniteError(f"weights {name} hold NaN or infinity; expected finite numbers")


def _checked(output: Tensor, args: Sequence[object], kwargs: Mapping[str, object]) -> Tensor:
    """Return an output that can be accounted for, and refuse any other."""
    if output.dtype not in PARITY:
        raise UsageError(
            f"the output is {output.dtype}, too coarse for an account, and the weights are not: leave out .half() "
            "and .bfloat16() in its forward, and switch off torch.autocast where its forward switches it on, or "
            "convert the output: target=lambda out: out.float()[:, 0]"
        )
    refuse_no_examples(output)
    if not torch.isfinite(output).all():
        place = place_of_infinite_number(named_arguments(args, kwargs))
        raise NonFiniteError(f"the output is {output.tolist()}; expected finite numbers{place}")
    return output


def _collected(run: HeldRun) -> Contributions:
    parts = collect(run.output, run.mode.rows.rows, run.sources)
    mode = run.mode
    return replace(
        parts,
        coarsest=mode.coarsest,
        recurrent=mode.ran_networks,
        by_quadrature=mode.by_quadrature,
        of_run=run.notes,
    )


def _refuse_scripted_or_coarse(model: nn.Module) -> None:
    """Refuse, before it runs, a model with scripted modules or with weights of a coarse type."""
    for name, part in model.named_modules():
        if is_scripted(part):
            raise UnsupportedOperationError(
                f"{name or 'the model'} is a {script_kind(part)} module, whose operations no rule can meet; "
                f"{python_form(part, part=True)}"
            )
    for name, weight in model.named_parameters():
        if weight.dtype in (torch.bfloat16, torch.float16, torch.complex32):
            raise UsageError(f"{name} is {weight.dtype}, too coarse for an account; {FINER}")
