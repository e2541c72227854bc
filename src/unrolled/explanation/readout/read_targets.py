"""The readouts of several targets: by one held run of the model, or by a ray for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from unrolled.errors import RandomOperationError, UnsupportedOperationError, UsageError
from unrolled.explanation.readout.held_readout import HeldReadouts
from unrolled.explanation.readout.missing_gradients import NoGradientError
from unrolled.explanation.readout.ray_readout import NOT_READ, ray_readout
from unrolled.explanation.readout.readout import Readout
from unrolled.explanation.readout.record_forward import RecordedForward
from unrolled.explanation.targets.select_target import Target, select_target
from unrolled.model_runs.determinism import TwoRuns

__all__ = ["ReadTargets"]


class ReadTargets:
    """Computes how targets read the states of a recorded network; refuses a model whose two runs differ.

    Args:
        recorded: The plain run.
        targets: What is read.
        runs: Runs the model once more, to compare.
    """

    def __init__(self, recorded: RecordedForward, targets: Sequence[Target], runs: TwoRuns) -> None:
        self._recorded, self._targets, self._runs = recorded, targets, runs
        self._expected = self._select(recorded.output)
        self._compare = cache(lambda: runs.second(self._expected, self._select))

    def by_rays(self) -> tuple[list[Readout], tuple[str, ...]]:
        """Average gradients along a line for each target; return notes on random numbers as well."""
        drawn = self._compare()
        try:
            return [ray_readout(self._recorded, target) for target in self._targets], drawn
        except UnsupportedOperationError as jump:
            raise UnsupportedOperationError(f"{jump}, or readout='held' where it only weighs the states") from None

    def by_held_run(self) -> tuple[list[Readout], tuple[str, ...]]:
        """Read all targets from one held run, or by a ray where that is not possible; return the same."""
        drawn = self._compare() if self._runs.draws else ()
        try:
            with self._runs.replayed(self._expected, self._select):
                held = HeldReadouts(self._recorded, self._targets)
        except RandomOperationError:
            raise
        except UnsupportedOperationError as error:
            return [self._ray_instead(target, error) for target in self._targets], drawn
        reads = []
        for place, target in enumerate(self._targets):
            try:
                reads.append(held.readout(place))
            except UnsupportedOperationError as error:
                reads.append(self._ray_instead(target, error))
        return reads, drawn

    def _select(self, output: object) -> Tensor:
        batch = self._recorded.opened.lengths.shape[0]
        return torch.cat([select_target(output, target, batch) for target in self._targets])

    def _ray_instead(self, target: Target, why: UnsupportedOperationError) -> Readout:
        """Take a ray where a held run is not possible, and note it."""
        self._compare()
        try:
            found = ray_readout(self._recorded, target)
        except RuntimeError as error:  # of the model, as one that differentiates inside its forward
            raise why from error
        except NoGradientError as error:
            raise UsageError(f"{error}; a held run needs no gradient, and is not possible: {why}") from error
        if NOT_READ in found.notes:
            return found
        note = f"the readout is a ray from states of zero, since a held run is not possible: {why}"
        return replace(found, notes=(*found.notes, note))
