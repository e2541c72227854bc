r"""The readout of a logit as a ray: its gradient by the states of the recurrent network, averaged along a line.

With H the states and F(H) the logit, the gradient averaged along the line from 0 to H

.. math:: w_t = \int_0^1 \frac{∂F}{∂H_t}(αH)\, dα \qquad\text{gives}\qquad F(H) - F(0) = \sum_t w_t^\top H_t

for any readout: last state, h_n, mean, max, attention, a head of several layers. For a linear head w_t is its weight.

Source:
    Ours; the integral is that of integrated gradients (Sundararajan et al. 2017, arXiv:1703.01365), taken over
    the recurrent states instead of the inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unrolled.errors import NonFiniteError
from unrolled.explanation.held_sum import refuse_infinite
from unrolled.explanation.readout.function_of_states import (
    Run,
    coarsest_on_the_way,
    complete_by_states,
    function_of_states,
    gradients,
)
from unrolled.explanation.readout.missing_gradients import jumps, reads_states
from unrolled.explanation.readout.readout import Readout
from unrolled.explanation.readout.record_forward import RecordedForward
from unrolled.explanation.targets.select_target import Target, select_target
from unrolled.held_forward.operations.coarsest_type import coarsest_type
from unrolled.linalg.adaptive_quadrature import Jump, partition

__all__ = ["NOT_READ", "ray_readout"]

NOT_READ = (
    "no gradient flows from the target to the states, and it is the same for states of zero: all of it is the bias"
)
_PIECES = 256
"""Largest number of pieces into which the line of an example is cut."""
_INTEGRAL_ROUNDINGS = 16
"""Accepted error of the integral, in roundings of the logit in the coarsest type on the way to it."""
_BESIDE_ZERO = 1e-6
"""Where the line begins if the target jumps at zero."""


def ray_readout(recorded: RecordedForward, target: Target) -> Readout:
    """Average the gradient of a target along the line from zero to the recorded states.

    Raises:
        UsageError: If the target depends on the states and no gradient flows to them.
        UnsupportedOperationError: If the target jumps along the line.
        NonFiniteError: If the logit, its value for states of zero, or a gradient is NaN or infinite.
    """
    states, batch = recorded.states, recorded.opened.lengths.shape[0]
    logit = select_target(recorded.output, target, batch).detach()
    refuse_infinite(logit)
    run = function_of_states(recorded, target)
    dtype = coarsest_type((logit.dtype, coarsest_on_the_way(run, states)))
    rounding = _INTEGRAL_ROUNDINGS * torch.finfo(dtype).eps
    notes: tuple[str, ...] = () if reads_states(run, states, rounding) else (NOT_READ,)
    unknown = torch.full((batch,), -1, dtype=torch.int64, device=states[0].device)
    line = _Line(run, states, complete_by_states(unknown, run, states, dtype), logit, rounding)
    bias = line.start()
    if not torch.isfinite(bias).all():
        raise NonFiniteError(
            f"the logit of zero states, which is the bias, is {bias.tolist()}; expected finite numbers: does the "
            "model divide by the norm of the states, or take their logarithm?"
        )
    try:
        rounds = line.rounds(bias)
    except Jump as jump:
        if jump.place > 0:
            raise jumps(run, states) from None
        line = replace(line, begin=_BESIDE_ZERO)
        bias = line.start()
        notes = ("the target jumps at states of zero, where the model may mask them; the line begins beside it",)
        try:
            rounds = line.rounds(bias)
        except Jump:
            raise jumps(run, states) from None
    weights = line.average(rounds)
    if not all(torch.isfinite(total).all() for total in weights):
        raise NonFiniteError(
            "a gradient between zero states and the network's own is NaN or infinite; expected finite gradients"
        )
    return Readout(weights, logit, bias, dtype, line.examples.argsort(), notes)


@dataclass(frozen=True)
class _Line:
    """The line from zero states, or from beside them, to the network's own."""

    run: Run
    states: tuple[Tensor, ...]
    """Where it ends, of each direction, shape (time, batch, state)."""
    examples: Tensor
    """The example that reads each sequence, shape (batch,)."""
    logit: Tensor
    """F where it ends, shape (batch,)."""
    rounding: float
    """Accepted error of the integral, relative to F."""
    begin: float = 0.0
    """Where it begins, as a multiple of the states."""

    def start(self) -> Tensor:
        """Return F where the line begins."""
        return self._look(torch.zeros_like(self.logit))[0]

    def rounds(self, bias: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Choose nodes and weights of a quadrature for each example; ``bias`` is F where the line begins."""
        scale = torch.maximum(self.logit.abs(), bias.abs()).double()
        return partition(self._slope, len(scale), scale, self.rounding, _PIECES)

    def average(self, rounds: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, ...]:
        """Average the gradient by a quadrature."""
        weights = tuple(torch.zeros_like(s) for s in self.states)
        for alpha, weight in rounds:
            for total, gradient in zip(weights, self._look(alpha)[1], strict=True):
                total += (1 - self.begin) * weight.to(gradient)[self.examples, None] * gradient
        return weights

    def _look(self, alpha: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return F and its gradient at one place of the line for each example."""
        places = self.begin + (1 - self.begin) * alpha
        value, leaves = self.run(tuple(places.to(s)[self.examples, None] * s for s in self.states))
        found = zip(gradients(value, leaves), self.states, strict=True)
        return value.detach(), [torch.zeros_like(s) if g is None else g for g, s in found]

    def _slope(self, alpha: Tensor) -> tuple[Tensor, Tensor]:
        """Return F and its derivative by α."""
        value, found = self._look(alpha)
        slopes = [(g * s).double().sum(dim=(0, 2)) for g, s in zip(found, self.states, strict=True)]
        return value.double(), (1 - self.begin) * torch.stack(slopes).sum(dim=0)[self.examples.argsort()]
