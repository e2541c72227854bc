"""Held runs of a model whose arguments, or one of whose modules, are the sources of value."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from unrolled.decomposition.held_networks.held_model import HeldModel
from unrolled.decomposition.held_networks.layer_nodes import LAYER_NODES
from unrolled.decomposition.held_networks.recurrent_rules import networks_as_operations
from unrolled.decomposition.opening.parity import PARITY, Parity
from unrolled.errors import ParityError
from unrolled.expansions.base import Linearisation
from unrolled.explanation.plain_run import PlainRun
from unrolled.explanation.sources import Sources, source_module
from unrolled.explanation.targets.output_kind import are_sigmoids, sigmoid_note
from unrolled.held_forward.graph import check_linear
from unrolled.held_forward.outside.taken_places import CodePlace, TakenPlaces
from unrolled.held_forward.runs_that_fail import failures_refused
from unrolled.held_forward.tensor_facts.rows import Rows
from unrolled.model_runs.taken_numbers import refuse_read_numbers
from unrolled.whole_model.account_request import AccountRequest

__all__ = ["HeldRun", "HeldRuns"]


@dataclass(frozen=True)
class HeldRun:
    """One held run; its output is linear in the rows of its mode."""

    mode: HeldModel
    output: Tensor
    sources: Sources
    notes: tuple[str, ...]
    """What the target is, and what the run's recurrent networks leave out."""


@dataclass(frozen=True)
class HeldRuns:
    """Runs a model held."""

    plain: PlainRun
    """The run of the model as it is."""
    asked: AccountRequest
    """Its arguments, the source of value, and how products are shared."""
    select: Callable[[Any], Tensor]
    """From what the model returns to one number for each example."""
    expected: Tensor
    """What it selects from the plain run."""
    unread: set[CodePlace] = field(default_factory=set)
    """Where the model takes numbers that the runs so far have shown to be read by no output."""

    def run(self, member: Linearisation, follows: Container[int]) -> HeldRun:
        """Run the model held once.

        Args:
            member: How recurrent networks are expanded.
            follows: Numbers of the held results that are followed.

        Raises:
            UnsupportedOperationError: If an operation has no rule.
            ParityError: If the run gives another output than the model.
        """
        model, recorded, asked = self.plain.model, self.plain.recorded, self.asked
        recorded.begin()
        mode = HeldModel(Rows(model), member, asked.share, recorded=recorded)
        mode.follows, mode.taken = follows, TakenPlaces()
        sources = Sources(mode)
        given, named = (sources.open_call if asked.of is None else sources.copy_call)(asked.args, asked.kwargs)
        with torch.enable_grad(), networks_as_operations(model), source_module(model, mode, asked.of):
            with failures_refused(), mode:
                output = self.select(model(*given, **named))
            notes = (*sigmoid_note(all(are_sigmoids([output], mode))), *mode.network_notes)
        refuse_read_numbers(mode.taken, lambda: [self.select(self.plain.run())], [self.expected], self.unread)
        self._check_parity(output, mode.coarsest)
        check_linear(output, LAYER_NODES)
        return HeldRun(mode, output, sources, notes)

    def _check_parity(self, output: Tensor, coarsest: torch.dtype) -> None:
        """Compare a held run with the model's own output, as closely as the coarsest type of its values allows."""
        # whether its parts add up to the output is not refused: the account shows it as the remainder
        expected = self.expected
        precision = max(PARITY[expected.dtype], PARITY.get(coarsest, 8 * torch.finfo(coarsest).eps))
        parity = Parity.of(output.detach(), expected, precision)
        if parity.holds:
            return
        self.plain.runs.second(expected, self.select)  # two runs that differ are refused by name
        raise ParityError(
            f"the held run differs from the model's own output by {parity.gap:.3g}; expected at most rounding: account "
            "for a part of the model with of=, and please report the model"
        )
