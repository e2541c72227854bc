"""Numbers without a contribution in an explanation, though its output depends on them: only through held factors."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from unrolled.decomposition.held_networks.held_model import HeldModel
from unrolled.decomposition.held_networks.recurrent_rules import networks_as_operations
from unrolled.decomposition.own_steps.step_calls import steps_as_operations
from unrolled.expansions.base import Linearisation
from unrolled.expansions.secant import Secant
from unrolled.explanation.behind_held import (
    BehindHeld,
    behind_held,
    opened_arguments,
    read_arguments,
    unread_numbers,
    weighed_gradients,
)
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.networks.find_network import FoundNetworks
from unrolled.explanation.request import Request
from unrolled.explanation.sources import Sources, is_mask
from unrolled.explanation.targets.select_target import select_target
from unrolled.held_forward.held_only import HeldOnlyError, follow_if_held_only
from unrolled.held_forward.linear_output import LinearOutput
from unrolled.held_forward.tensor_facts.rows import Rows
from unrolled.model_runs.eval_mode import without_autocast
from unrolled.model_runs.nested_tensors import tensors_in
from unrolled.model_runs.preserve_model import preserved

__all__ = ["features_behind_held", "lacks_numbers"]


def lacks_numbers(found: Explanation, asked: Request, examples: int) -> bool:
    """Tell whether a number contributes nothing at a step where others do, or steps have more numbers than are shown.

    Args:
        found: The explanation of one of the examples.
        asked: What the user asks for, with the arguments.
        examples: The number of all examples.
    """
    features = found.features
    if features is None:
        return False
    nothing = features.scores == 0
    if bool((nothing & (features.values != 0) & ~nothing.all(dim=1, keepdim=True)).any()):
        return True
    steps = len(found)
    series = [
        each
        for each in tensors_in(asked.arguments)
        if each.is_floating_point() and each.dim() > 1 and steps in each.shape and not is_mask(each)
    ]
    return sum(each.numel() // (steps * examples) for each in series) > features.scores.shape[1]


def features_behind_held(
    model: nn.Module,
    networks: FoundNetworks,
    asked: Request,
    seed: int | None,
    run: Callable[[], object],
    examples: int,
) -> BehindHeld:
    """Return what the explained output depends on only through held factors; nothing where that cannot be told.

    What a held run of the whole model reads counts, also past its networks and by their first states.

    Args:
        model: The model.
        networks: Its networks.
        asked: What the user asks for, with the arguments.
        seed: Every run starts all generators of random numbers from it.
        run: Runs the model as it is.
        examples: The number of examples.
    """
    members = asked.expansion.members()
    if not asked.expansion.exact:  # it may leave out what is not held
        members = (*members, Secant())
    try:
        target = replace(asked.wanted, every=False).choose(run(), examples).targets[0]
        select = partial(select_target, target=target, batch=examples)
        found = [_not_read(model, networks, asked, seed, select, member) for member in members]
    except Exception:  # a model may fail in any way where its operations are held
        return BehindHeld()
    arguments = frozenset.intersection(*(each.arguments for each in found))
    known = [name for name in found[0].numbers if all(name in each.numbers for each in found)]
    unread = {name: torch.stack([each.numbers[name] for each in found]).all(dim=0) for name in known}
    with preserved(model, seed), without_autocast():
        return behind_held(model, asked.args, asked.kwargs, select, arguments, unread)


@dataclass(frozen=True)
class _HeldRun:
    """One held run of the whole model."""

    mode: HeldModel
    sources: Sources
    output: Tensor


@dataclass(frozen=True)
class _NotRead:
    """What a held run does not read."""

    arguments: frozenset[str]
    """Those of which it reads no number."""
    numbers: dict[str, Tensor]
    """Which numbers of the others it does not read."""
    held: frozenset[int]
    """Numbers of the held results that the output reads by themselves."""


def _not_read(
    model: nn.Module,
    networks: FoundNetworks,
    asked: Request,
    seed: int | None,
    select: Callable[[object], Tensor],
    member: Linearisation,
) -> _NotRead:
    """Return what a held run does not read; where the output is held itself, what it is made of is followed."""

    def run(follows: Container[int]) -> _HeldRun:
        mode = HeldModel(Rows(model), member)
        mode.follows = follows
        sources = Sources(mode, opens=True)
        given, named = sources.open_call(asked.args, asked.kwargs)
        with (
            preserved(model, seed),
            torch.enable_grad(),
            without_autocast(),
            networks_as_operations(model),
            steps_as_operations(model, networks.steps),
            mode,
        ):
            return _HeldRun(mode, sources, select(model(*given, **named)))

    return follow_if_held_only(run, _read)[0]


def _read(run: _HeldRun) -> _NotRead:
    """Return what a held run does not read."""
    rows, sources = run.mode.rows.rows, run.sources
    linear = LinearOutput(run.output, [row.leaf for row in rows], keeps=True)
    gradients = weighed_gradients(run.output, rows)
    read = read_arguments(rows, gradients, sources)
    if not read:
        raise HeldOnlyError("the output reads no argument but by held results")
    arguments = opened_arguments(rows, sources) - sources.masks - read
    return _NotRead(arguments, unread_numbers(rows, gradients, sources), linear.held_by_themselves(rows))
