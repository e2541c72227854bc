"""Numbers on which an output depends through held factors only: an explanation gives them no contribution."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import nn

from unrolled.decomposition.own_steps.step_calls import steps_as_operations
from unrolled.expansions.secant import Secant
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.further_runs.behind_held import BehindHeld, behind_held
from unrolled.explanation.further_runs.not_read import HeldReads
from unrolled.explanation.networks.find_network import FoundNetworks
from unrolled.explanation.request import Request
from unrolled.explanation.sources import is_mask
from unrolled.explanation.targets.select_target import select_target
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
    run: Callable[[], object],
    examples: int,
) -> BehindHeld:
    """Return what the explained output depends on only through held factors; nothing where that cannot be told.

    What a held run of the whole model reads counts, also past its networks and by their first states.

    Args:
        model: The model.
        networks: Its networks.
        asked: What the user asks for, with the arguments.
        run: Runs the model as it is.
        examples: The number of examples.
    """
    members = asked.expansion.members()
    if not asked.expansion.exact:  # it may leave out what is not held
        members = (*members, Secant())
    try:
        target = asked.wanted.choose_one(run(), examples).targets[0]
        select = partial(select_target, target=target, batch=examples)
        steps = partial(steps_as_operations, model, networks.steps)
        held = HeldReads(model, asked.args, asked.kwargs, select, members, asked.seed, steps=steps)
        found = held.not_read()
    except Exception:  # a model may fail in any way where its operations are held
        return BehindHeld()
    with preserved(model, asked.seed), without_autocast():
        return behind_held(held, found.arguments, found.numbers)
