"""What a held run of a whole model does not read of its arguments, and whether that is so for other numbers too."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.decomposition.held_networks.held_model import HeldModel
from unrolled.decomposition.held_networks.recurrent_rules import networks_as_operations
from unrolled.expansions.base import Linearisation
from unrolled.explanation.arguments_read import (
    opened_arguments,
    read_arguments,
    unread_by_all,
    unread_numbers,
    weighed_gradients,
)
from unrolled.explanation.sources import Sources
from unrolled.held_forward.held_only import HeldOnlyError, follow_if_held_only
from unrolled.held_forward.linear_output import LinearOutput
from unrolled.held_forward.tensor_facts.gates import CONTENT_SHARE
from unrolled.held_forward.tensor_facts.rows import Rows
from unrolled.model_runs.eval_mode import without_autocast
from unrolled.model_runs.nested_tensors import leaves, rebuilt
from unrolled.model_runs.preserve_model import preserved

__all__ = ["HeldReads", "NotRead"]

_FACTORS = (1.0 + 2.0**-7, 1.0 + 2.0**-6)
"""What numbers are multiplied by, from the first to the last: they keep their signs, and parts that cancel do not."""


@dataclass(frozen=True)
class NotRead:
    """What held runs do not read."""

    arguments: frozenset[str]
    """Those of which they read no number."""
    numbers: dict[str, Tensor]
    """Which numbers of the others they do not read."""
    held: frozenset[int] = frozenset()
    """Numbers of the held results that the output reads by themselves."""


@dataclass(frozen=True)
class _HeldRun:
    mode: HeldModel
    sources: Sources
    output: Tensor


@dataclass(frozen=True)
class HeldReads:
    """Held runs of a whole model, one for each member of an expansion."""

    model: nn.Module
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    select: Callable[[Any], Tensor]
    """From what the model returns to one number for each example."""
    members: Sequence[Linearisation]
    seed: int | None
    share: float = CONTENT_SHARE
    steps: Callable[[], AbstractContextManager[None]] = nullcontext
    """Makes the steps of a user's operations while it lasts."""

    def not_read(self) -> NotRead:
        """Return what no run reads; where the output is held itself, what it is made of is followed."""
        return self._not_read(self.args, self.kwargs)

    def still_unread(self, unread: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Keep those numbers that a held run on nearby numbers does not read either.

        The parts of a number may cancel: in x² - x the number 1 has the parts 1 and -1.
        """
        try:
            again = self._not_read(*_nearby((tuple(self.args), dict(self.kwargs))))
        except Exception:  # a model may fail in any way on other numbers
            return dict(unread)
        none = {name: torch.zeros_like(numbers) for name, numbers in unread.items() if name not in again.arguments}
        return {name: numbers & again.numbers.get(name, none.get(name, numbers)) for name, numbers in unread.items()}

    def _not_read(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> NotRead:
        found = [self._by_member(args, kwargs, member) for member in self.members]
        arguments = frozenset.intersection(*(each.arguments for each in found))
        return NotRead(arguments, unread_by_all([each.numbers for each in found]))

    def _by_member(self, args: Sequence[Any], kwargs: Mapping[str, Any], member: Linearisation) -> NotRead:
        def run(follows: Container[int]) -> _HeldRun:
            mode = HeldModel(Rows(self.model), member, self.share)
            mode.follows = follows
            sources = Sources(mode)
            given, named = sources.open_call(args, kwargs)
            with (
                preserved(self.model, self.seed),
                torch.enable_grad(),
                without_autocast(),
                networks_as_operations(self.model),
                self.steps(),
                mode,
            ):
                return _HeldRun(mode, sources, self.select(self.model(*given, **named)))

        return follow_if_held_only(run, _read)[0]


def _read(run: _HeldRun) -> NotRead:
    rows, sources = run.mode.rows.rows, run.sources
    linear = LinearOutput(run.output, [row.leaf for row in rows], keeps=True)
    gradients = weighed_gradients(run.output, rows)
    read = read_arguments(rows, gradients, sources)
    if not read:
        raise HeldOnlyError("the output reads no argument but by held results")
    arguments = opened_arguments(rows, sources) - sources.masks - read
    return NotRead(arguments, unread_numbers(rows, gradients, sources), linear.held_by_themselves(rows))


def _nearby(given: Any) -> Any:
    """Return arguments whose numbers are nearby ones."""
    changed = {}
    for place, each in leaves(given):
        if each.is_floating_point():
            factors = torch.linspace(*_FACTORS, max(each.numel(), 1), device=each.device)[: each.numel()]
            changed[place] = each.detach() * factors.view(each.shape).to(each.dtype)
    return rebuilt(given, changed)
