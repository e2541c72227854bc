"""Held runs of a model whose arguments, or one of whose modules, are the sources of value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.decomposition.determinism import TwoRuns
from unrolled.decomposition.held_model import HeldModel
from unrolled.decomposition.layer_nodes import NODES
from unrolled.decomposition.recorded_networks import RecordedNetworks
from unrolled.decomposition.recurrent_rules import networks_as_operations
from unrolled.errors import ParityError
from unrolled.expansions.base import Linearisation
from unrolled.explanation.sources import Sources, source_module
from unrolled.explanation.targets.output_kind import is_sigmoid, sigmoid_note
from unrolled.held_forward.graph import check_linear, failures_refused
from unrolled.held_forward.rows import Rows

__all__ = ["PARITY", "HeldRun", "HeldRunsOf", "Select"]

PARITY = {torch.float64: 1e-9, torch.float32: 1e-3}
"""How far a held run may be from the model's own output: rounding in another order."""

Select = Callable[[Any], Tensor]
"""From what a model returns to one number for each example."""


@dataclass(frozen=True)
class HeldRun:
    """One held run; its output is linear in the rows of its mode."""

    mode: HeldModel
    output: Tensor
    sources: Sources
    notes: tuple[str, ...]
    """What the target is, and what the run's recurrent networks leave out."""


@dataclass(frozen=True)
class HeldRunsOf:
    """Runs a model held."""

    model: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    of: str | None
    """Path of the submodule whose output is the source of value; None for the arguments."""
    share: float
    """p, the part of a gated product that is credited to its content."""
    select: Select
    expected: Tensor
    """What the model itself gives."""
    recorded: RecordedNetworks
    """What the networks gave in a plain run."""
    runs: TwoRuns
    """Refuses a model that draws random numbers."""

    def run(self, member: Linearisation, follows_from: int | None) -> HeldRun:
        """Run the model held once.

        Args:
            member: How recurrent networks are expanded.
            follows_from: Number of the first held result that is followed; None for none.

        Raises:
            UnsupportedOperationError: If an operation has no rule.
            ParityError: If the run gives another output than the model.
        """
        self.recorded.begin()
        mode = HeldModel(Rows(self.model), member, self.share, recorded=self.recorded)
        mode.follows_from = follows_from
        sources = Sources(mode, opens=self.of is None)
        given, named = sources.open_call(self.args, self.kwargs)
        with torch.enable_grad(), networks_as_operations(self.model), source_module(self.model, mode, self.of):
            with failures_refused(), mode:
                output = self.select(self.model(*given, **named))
            notes = (*sigmoid_note(is_sigmoid(output, mode.gates)), *mode.network_notes)
        self._check_parity(output, mode.coarsest)
        check_linear(output, NODES)
        return HeldRun(mode, output, sources, notes)

    def _check_parity(self, output: Tensor, coarsest: torch.dtype) -> None:
        """Compare a held run with the model's own output, as closely as the coarsest type of its values allows."""
        expected = self.expected
        gap = (output.detach() - expected).abs().max()
        allowed = max(PARITY[expected.dtype], PARITY.get(coarsest, 8 * torch.finfo(coarsest).eps))
        if float(gap) <= allowed * max(1.0, float(expected.abs().max())):
            return
        self.runs.second(expected, self.select)  # two runs that differ are refused by name
        raise ParityError(
            f"the held run differs from the model's own output by {float(gap):.3g}; expected at most rounding: account "
            "for a part of the model with of=, and please report the model"
        )
