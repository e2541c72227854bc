"""The run of a model as it is, which the held runs of the same call follow and are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from torch import nn

from unrolled.decomposition.held_networks.recorded_networks import RecordedNetworks
from unrolled.explanation.readout.run_model import ModelRun, named_failures
from unrolled.held_forward.all_modules import all_modules
from unrolled.model_runs.determinism import TwoRuns
from unrolled.model_runs.random_generators import RandomGenerators

__all__ = ["PlainRun"]


@dataclass(frozen=True)
class PlainRun:
    """A run of a model as it is."""

    model: nn.Module
    """In evaluation mode."""
    run: ModelRun
    """Runs it once more on the same arguments."""
    output: Any
    """What it returned."""
    recorded: RecordedNetworks
    """What its networks gave."""
    runs: TwoRuns
    """Refuses a model that draws random numbers."""

    @classmethod
    def of(
        cls,
        model: nn.Module,
        run: ModelRun,
        arguments: Sequence[object],
        generators: RandomGenerators,
        seeded: bool,
    ) -> PlainRun:
        """Run a model.

        Args:
            model: In evaluation mode.
            run: Runs it on its arguments.
            arguments: All of them.
            generators: Those that it may draw from.
            seeded: Whether every run starts them from a seed.
        """
        runs, recorded = TwoRuns(model, (), run, generators, seeded), RecordedNetworks()
        parts = all_modules(model).values()
        records = any(isinstance(part, nn.RNNBase) for part in parts)  # it takes time at every operation
        with named_failures(arguments), recorded if records else nullcontext():
            output = runs.run()
        return cls(model, run, output, recorded, runs)
