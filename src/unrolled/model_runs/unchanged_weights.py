"""Refuse a result that was made of two sets of weights: another thread may train a model while it is opened."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unrolled.errors import ChangedWeightsError
from unrolled.user_models.all_modules import TABLES, all_modules, all_parameters

__all__ = ["UnchangedWeights"]

_SAMPLED = 4096
"""Numbers of a weight that are compared; torch counts every change but those of ``.data``."""


class UnchangedWeights:
    """The weights of a module as they are now.

    A forward pass may change weights in place, such as one that clamps them: what every run changes alike is its own.
    """

    def __init__(self, module: nn.Module) -> None:
        scaled = {  # which are restored after each run
            id(each.weight)
            for each in all_modules(module).values()
            if isinstance(each, TABLES) and each.max_norm is not None
        }
        self._weights = [
            (name, weight)
            for name, weight in all_parameters(module).items()
            if id(weight) not in scaled and not weight.is_inference() and weight.layout == torch.strided
        ]
        self._numbers = [_sample(weight) for _, weight in self._weights]
        self._first = self._counts()
        self._run: list[int] | None = None
        self._by_runs: list[list[int]] = []
        self._by_stopped: list[list[int]] = []

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Count anew in a copy: torch starts the count of a copied tensor at zero."""
        self.__dict__.update(state)
        self._first, self._by_runs, self._by_stopped = self._counts(), [], []

    def _counts(self) -> list[int]:
        return [weight._version for _, weight in self._weights]

    def run_starts(self) -> None:
        """Note that the module's forward pass begins."""
        self.run_ends()
        self._run = self._counts()

    def run_ends(self, whole: bool = True) -> None:
        """Note that it ends; one that is stopped before may have changed weights less often."""
        if self._run is not None:
            runs = self._by_runs if whole else self._by_stopped
            runs.append([now - before for now, before in zip(self._counts(), self._run, strict=True)])
            self._run = None

    def check(self) -> None:
        """Compare the weights with those at the beginning.

        Raises:
            ChangedWeightsError: If anything but the module's own runs changed one.
        """
        self.run_ends()  # of a run that was stopped
        names, by_forward = [], []
        for place, (name, weight) in enumerate(self._weights):
            by_runs = [run[place] for run in self._by_runs]
            stopped = [run[place] for run in self._by_stopped]
            most = max(by_runs or stopped, default=0)
            alike = len({count for count in by_runs if count}) <= 1 and all(count <= most for count in stopped)
            own = alike and sum(by_runs) + sum(stopped) == weight._version - self._first[place]
            if not own or not _same(_sample(weight), self._numbers[place]):
                names.append(name)
                by_forward.append(own and len(by_runs) > 1 and all(by_runs))
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            if all(by_forward):
                raise ChangedWeightsError(
                    f"the forward pass writes other numbers into the model's weights ({names[0]}{more}), so each run "
                    "has other weights; compute the new weights without writing them, torch.func.functional_call"
                )
            raise ChangedWeightsError(
                f"the weights changed while the model was opened ({names[0]}{more}): another thread trains it, or it "
                "was trained or converted before the result was read, or its forward pass writes them through .data; "
                "explain a copy of it, copy.deepcopy(model), or let the forward pass compute weights without writing"
            )


def _sample(weight: Tensor) -> Tensor:
    """Copy some numbers of a weight."""
    if weight.is_meta or weight.is_quantized:
        return torch.empty(0, device="cpu")
    whole = weight.detach()
    whole = whole.view(-1) if whole.is_contiguous() else whole[..., :1].reshape(-1)
    return whole[:: max(1, len(whole) // _SAMPLED)].clone()


def _same(one: Tensor, other: Tensor) -> bool:
    """Compare bits: a weight that is NaN is the same as before."""
    return one.shape == other.shape and torch.equal(one.view(torch.uint8), other.view(torch.uint8))
