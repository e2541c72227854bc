"""The run of a model as it is, which the held runs of the same call follow and are compared with."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from torch import nn

from unrolled.decomposition.held_networks.recorded_networks import RecordedNetworks
from unrolled.explanation.model_run import ModelRun
from unrolled.explanation.named_failures import named_failures
from unrolled.model_runs.determinism import TwoRuns
from unrolled.model_runs.random_generators import RandomGenerators
from unrolled.user_models.all_modules import all_modules

__all__ = ["PlainRun"]


@dataclass(frozen=True)
class PlainRun:
    """A run of a model as it is."""

    run: ModelRun
    """Runs it once more on the same arguments."""
    output: Any
    """What it returned."""
    recorded: RecordedNetworks
    """What its networks gave."""
    runs: TwoRuns
    """Refuses a model that draws random numbers."""

    @property
    def model(self) -> nn.Module:
        """The model, in evaluation mode."""
        return self.run.model

    @classmethod
    def of(cls, run: ModelRun, generators: RandomGenerators, seeded: bool) -> PlainRun:
        """Run a model.

        Args:
            run: Runs it, in evaluation mode, on its arguments.
            generators: Those that it may draw from.
            seeded: Whether every run starts them from a seed.
        """
        runs, recorded = TwoRuns(run.model, (), run, generators, seeded), RecordedNetworks()
        parts = all_modules(run.model).values()
        records = any(isinstance(part, nn.RNNBase) for part in parts)  # it takes time at every operation
        with named_failures(run.model, run.arguments), recorded if records else nullcontext():
            output = runs.run()
        return cls(run, output, recorded, runs)
