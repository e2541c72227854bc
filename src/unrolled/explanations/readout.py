r"""How a model reads one logit from the states of its recurrent network.

With H the states and F(H) the logit, the readout averaged along the ray from 0 to H

.. math:: w_t = \int_0^1 \frac{∂F}{∂H_t}(αH)\, dα \qquad\text{gives}\qquad F(H) - F(0) = \sum_t w_t^\top H_t

whatever stands between: last state, h_n, mean, max, attention, a head of several layers. For a linear head w_t is
its weight.

Source:
    Ours; the integral is that of integrated gradients (Sundararajan et al. 2017, arXiv:1703.01365), taken over
    the recurrent states instead of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.algebra.partition import partition
from unrolled.errors import NonFiniteError, ShapeError, UsageError
from unrolled.explanations.observe import Observation

__all__ = ["Readout", "Target", "read_target", "readout"]

Target = int | Callable[[object], Tensor]
"""An index of the last output dimension, or what picks one number an example out of the output."""

PIECES = 256


@dataclass(frozen=True)
class Readout:
    """The readout of a logit, for a batch."""

    weights: tuple[Tensor, ...]
    """w_t for each direction, in token order, shape (time, batch, state)."""
    logit: Tensor
    """F(H) as the model gave it, shape (batch,)."""
    bias: Tensor
    """F(0), shape (batch,)."""
    notes: tuple[str, ...]


def read_target(answer: object, target: Target, batch: int) -> Tensor:
    """Pick the target out of a model's output.

    Args:
        answer: what the model returned.
        target: an index of its last dimension, or a callable on it.
        batch: how many examples there are.

    Returns:
        One number an example, shape (batch,).

    Raises:
        ShapeError: when that does not give one number an example.
        UsageError: when the index is out of range.
    """
    if callable(target):
        value = target(answer)
        if not isinstance(value, Tensor) or value.numel() != batch:
            came = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise ShapeError(f"the target gave {came}; expected a tensor of {batch} numbers, one an example")
        return value.reshape(batch)
    if not isinstance(answer, Tensor):
        raise ShapeError(
            f"the model returned a {type(answer).__name__}; expected a tensor, or a callable target that picks from it"
        )
    if answer.dim() <= 1 and answer.numel() == batch:
        answer = answer.reshape(batch, 1)
    elif answer.dim() == 1 and batch == 1:
        answer = answer[None]
    if answer.dim() != 2 or answer.shape[0] != batch:
        raise ShapeError(
            f"the output has shape {tuple(answer.shape)}; expected ({batch}, classes), or a callable target such as "
            f"lambda out: out[:, -1, {target}]"
        )
    if not -answer.shape[1] <= target < answer.shape[1]:
        raise UsageError(f"target is {target}; expected 0 to {answer.shape[1] - 1}, an index of the output")
    return answer[:, target]


def readout(observation: Observation, target: Target) -> Readout:
    """Average the readout of a target along the ray from zero to the states.

    Args:
        observation: the model at work.
        target: what to read.

    Returns:
        The readout.

    Raises:
        NonFiniteError: when the logit is NaN or infinite.
        UsageError: when one example's output depends on another's states.
    """
    states = observation.states
    batch = observation.opened.lengths.shape[0]
    logit = read_target(observation.answer, target, batch).detach()
    if not torch.isfinite(logit).all():
        raise NonFiniteError(f"the logit is {logit.tolist()}; expected finite numbers")

    def evaluate(alpha: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """F and its gradient at α·H, α of each example."""
        with torch.enable_grad():
            leaves = tuple((alpha[:, None].to(s) * s).requires_grad_() for s in states)
            value = read_target(observation.replay(leaves), target, batch)
            if not value.requires_grad:
                return value, tuple(torch.zeros_like(s) for s in states)
            found = torch.autograd.grad(value.sum(), leaves, allow_unused=True)
        filled = (torch.zeros_like(s) if g is None else g for g, s in zip(found, states, strict=True))
        return value.detach(), tuple(filled)

    def look(alpha: Tensor) -> tuple[Tensor, Tensor]:
        value, gradients = evaluate(alpha)
        slope = sum((g * s).double().sum(dim=(0, 2)) for g, s in zip(gradients, states, strict=True))
        assert isinstance(slope, Tensor)
        return value.double(), slope

    _refuse_mixing(observation, states, target, batch)
    bias = evaluate(torch.zeros(batch, device=logit.device))[0]
    scale = torch.maximum(logit.abs(), bias.abs()).double()
    rounding = 16 * torch.finfo(logit.dtype).eps
    weights = [torch.zeros_like(s) for s in states]
    for alpha, weight in partition(look, batch, scale, rounding, PIECES):
        for total, gradient in zip(weights, evaluate(alpha)[1], strict=True):
            total += weight[:, None].to(gradient) * gradient
    return Readout(tuple(weights), logit, bias, _notes(observation))


def _refuse_mixing(observation: Observation, states: tuple[Tensor, ...], target: Target, batch: int) -> None:
    """Make sure that example b of the output is read from example b of the states."""
    if batch == 1:
        return
    with torch.enable_grad():
        leaves = tuple(s.clone().requires_grad_() for s in states)
        value = read_target(observation.replay(leaves), target, batch)
        if not value.requires_grad:
            return
        found = torch.autograd.grad(value[0], leaves, allow_unused=True)
    if any(g is not None and bool(g[:, 1:].any()) for g in found):
        raise UsageError(
            "the output of one example depends on the states of another (sorted by length, or normalised over the "
            "batch?); expected independent examples: explain them one at a time"
        )


def _notes(observation: Observation) -> tuple[str, ...]:
    """Say what stands in the bias beside the model's own constants."""
    rnn = observation.rnn
    if rnn.bidirectional and rnn.num_layers > 1:
        return (
            f"bidirectional with {rnn.num_layers} layers: n-grams are those of the inputs of the top layer; what the "
            "model reads from final states of lower layers stands in the bias",
        )
    return ()
