"""Calls of recurrent networks that an output depends on only through what is held: no n-gram of theirs is shown."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch

from unrolled.decomposition.held_networks.recurrent_rules import RECURRENT
from unrolled.decomposition.own_steps.own_step_rule import OWN_STEPS
from unrolled.explanation.calls.recorded_runs import RecordedRun
from unrolled.explanation.networks.find_network import FoundNetworks
from unrolled.explanation.plain_run import PlainRun
from unrolled.explanation.strands.lines import find_lines
from unrolled.explanation.strands.running_networks import RunningNetworks
from unrolled.held_forward.operations.operation_mode import OperationMode
from unrolled.held_forward.operations.operation_names import name_of
from unrolled.model_runs.determinism import agree
from unrolled.model_runs.eval_mode import without_autocast
from unrolled.model_runs.nested_tensors import leaves, rebuilt

__all__ = ["note_calls_behind_held"]

_OTHERS = (-1.0, 0.25)
"""What the results of a network's calls are multiplied by, one run each: one other sequence may lead to one choice."""
_NEARBY = (1.0 + 2.0**-6,)
"""The same for some calls of several: a maximum over all of them has the same winner."""
LOOP = 1000
"""A run that makes so many calls more than the plain one is in a loop that waits for other results."""


class _OtherResults(OperationMode):
    """Multiplies what some calls of recurrent networks return.

    Args:
        networks: Paths of the networks whose calls are counted.
        calls: Numbers of the calls, from 0 in the order of the run.
        multiple: What their results are multiplied by.
        most: Number of calls after which the run fails.
    """

    def __init__(self, networks: Collection[str], calls: Collection[int], multiple: float, most: int) -> None:
        super().__init__()
        self.networks, self.calls, self.multiple, self.most = frozenset(networks), frozenset(calls), multiple, most
        self.running = RunningNetworks()
        self._met = 0

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Run an operation as it is, and change what it returns if it is one of the calls."""
        result = func(*args, **options)
        if name_of(func).name not in RECURRENT | OWN_STEPS or self.running.now[0] not in self.networks:
            return result
        number, self._met = self._met, self._met + 1
        if self._met > self.most:
            raise RuntimeError("the model does not end with other states")
        if number not in self.calls:
            return result
        return rebuilt(
            result, {place: each * self.multiple for place, each in leaves(result) if each.is_floating_point()}
        )


def note_calls_behind_held(
    held: RecordedRun, read: Collection[int], plain: PlainRun, networks: FoundNetworks
) -> tuple[str, ...]:
    """Note which calls change the output, of those whose states it reads by no gradient of a held run.

    Further runs of the model tell, in which these calls return other numbers. Of a network that is read by other calls,
    those that lose a maximum are not noted.

    Args:
        held: The held run.
        read: Numbers of the first calls of the lines that an example reads.
        plain: The run of the model as it is.
        networks: Which of the model's networks are opened.
    """
    most, lines = LOOP + max(strand.call for strand in held.strands), find_lines(held.strands)
    others = {line.network for line in lines if line.first.call in read}
    unread: dict[str, set[int]] = {}
    for line in lines:
        if line.first.call not in read:
            unread.setdefault(line.network, set()).update(strand.call for strand in line.strands)
    notes = []
    for network, calls in unread.items():  # all of them at once, since each run takes as long as the model
        multiples = _NEARBY if network in others else _OTHERS
        modes = (_OtherResults(networks.opened, calls, multiple, most) for multiple in multiples)
        if any(_changes(mode, held, plain, networks) for mode in modes):
            name = network or "the model"
            name = f"some sequences of {name}" if network in others else name
            notes.append(
                f"the output reads {name} only through what is held, such as attention weights or a choice, so no "
                "n-grams of it are shown; change what it reads and run the model to see the effect"
            )
    return tuple(notes)


def _changes(mode: _OtherResults, held: RecordedRun, plain: PlainRun, networks: FoundNetworks) -> bool:
    """Tell whether the output is another one in a mode; a run that fails, as of a model that checks, tells nothing."""
    try:
        with (
            torch.no_grad(),
            without_autocast(),
            mode.running.noted(plain.model, networks.methods, networks.steps),
            mode,
        ):
            found = held.target_of(plain.run())
    except Exception:  # of any model
        return False
    return not agree([held.expected], [found])
