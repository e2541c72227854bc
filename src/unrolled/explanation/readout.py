r"""The readout of a logit as a ray: its gradient by the states of the recurrent network, averaged along a line.

With H the states and F(H) the logit, the gradient averaged along the line from 0 to H

.. math:: w_t = \int_0^1 \frac{∂F}{∂H_t}(αH)\, dα \qquad\text{gives}\qquad F(H) - F(0) = \sum_t w_t^\top H_t

for any readout: last state, h_n, mean, max, attention, a head of several layers. For a linear head w_t is its weight.

Source:
    Ours; the integral is that of integrated gradients (Sundararajan et al. 2017, arXiv:1703.01365), taken over
    the recurrent states instead of the inputs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from unrolled.errors import NonFiniteError, ShapeError, UsageError
from unrolled.explanation.likely_targets import example_target
from unrolled.explanation.missing_gradients import Run, gradients, jumps, refuse_severed
from unrolled.explanation.record_forward import RecordedForward
from unrolled.explanation.target_function import called_target
from unrolled.linalg.adaptive_quadrature import Jump, partition

__all__ = [
    "Readout",
    "Target",
    "ambiguous_order",
    "checked_floating",
    "class_outputs",
    "example_of_sequence",
    "ray_readout",
    "select_target",
]

Target = int | Callable[[object], Tensor]
"""An index of the last output dimension, or a function from the output to one number for each example."""

PIECES = 256
BESIDE_ZERO = 1e-6

PROBES = (1.0, 0.5, 0.0625, -1.0)
"""Points on the line where gradients show which sequence an example reads: a relu may be flat at the states."""
RANDOM_PROBES = 8
"""Number of random states to try after that."""


@dataclass(frozen=True)
class Readout:
    """The averaged gradients of a batch."""

    weights: tuple[Tensor, ...]
    """w_t for each direction, in token order, shape (time, batch, state), in the network's order of sequences."""
    logit: Tensor
    """F(H), the model's output, shape (batch,)."""
    bias: Tensor
    """What the states do not contribute, shape (batch,): F(0), or the biases and constants of a held run."""
    order: Tensor
    """Index of the network's sequence that each example of the output reads, shape (batch,)."""
    notes: tuple[str, ...] = ()
    biases: Mapping[str, Tensor] = field(default_factory=dict)
    """The parts of the bias by name, each (batch,), where they are known."""
    is_sigmoid: bool = False
    """Whether the target is known to be the result of a sigmoid."""


def select_target(output: object, target: Target, batch: int) -> Tensor:
    """Select the target from a model's output: one number for each of ``batch`` examples."""
    return checked_floating(_selected(output, target, batch))


def checked_floating(target: Tensor) -> Tensor:
    """Return a target that is of a floating type, and refuse any other."""
    if not target.is_floating_point():
        raise UsageError(
            f"the target is {target.dtype}; expected floating-point numbers: those before an arg max, a comparison or "
            "a conversion, by a model or a target that returns them"
        )
    return target


def _selected(output: object, target: Target, batch: int) -> Tensor:
    if callable(target):
        value = called_target(target, output)
        if not isinstance(value, Tensor) or value.numel() != batch:
            found = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise ShapeError(f"the target gave {found}; expected a tensor of {batch} numbers, one for each example")
        return value.reshape(batch)
    try:
        index = operator.index(target)
    except TypeError as error:
        kind = type(target).__name__
        raise UsageError(f"the target is a {kind}; expected an index of the output, or a callable") from error
    classes = class_outputs(output, index, batch)
    if not -classes.shape[1] <= index < classes.shape[1]:
        raise UsageError(f"target is {index}; expected 0 to {classes.shape[1] - 1}, an index of the output")
    return classes[:, index]


def class_outputs(output: object, index: int, batch: int) -> Tensor:
    """Return a model's output with shape (batch, classes); ``index`` is the class that an error suggests."""
    if not isinstance(output, Tensor):
        raise ShapeError(
            f"the model returned a {type(output).__name__}; expected a tensor, or a callable target that picks from it"
            f"{example_target(output, batch)}"
        )
    if output.dim() <= 1 and output.numel() == batch:
        output = output.reshape(batch, 1)
    elif output.dim() == 1 and batch == 1:
        output = output[None]
    if output.dim() != 2 or output.shape[0] != batch:
        raise ShapeError(
            f"the output has shape {tuple(output.shape)}; expected ({batch}, classes), or a callable target such as "
            f"lambda out: out[:, -1, {index}]"
        )
    return output


def ray_readout(recorded: RecordedForward, target: Target) -> Readout:
    """Average the gradient of a target along the line from zero to the recorded states."""
    states = recorded.states
    batch = recorded.opened.lengths.shape[0]
    logit = select_target(recorded.output, target, batch).detach()
    if not torch.isfinite(logit).all():
        raise NonFiniteError(f"the logit is {logit.tolist()}; expected finite numbers")

    run = _runner(recorded, target, batch)
    begin = 0.0

    def evaluate(alpha: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return F and its gradient at α·H, with one α for each example."""
        places = begin + (1 - begin) * alpha
        value, leaves = run(tuple(places.to(s)[examples, None] * s for s in states))
        found = gradients(value, leaves)
        filled = (torch.zeros_like(s) if g is None else g for g, s in zip(found, states, strict=True))
        return value.detach(), tuple(filled)

    def slope_at(alpha: Tensor) -> tuple[Tensor, Tensor]:
        value, gradients = evaluate(alpha)
        slope = sum((g * s).double().sum(dim=(0, 2)) for g, s in zip(gradients, states, strict=True))
        assert isinstance(slope, Tensor)
        return value.double(), (1 - begin) * slope[order]

    rounding = 16 * torch.finfo(logit.dtype).eps
    refuse_severed(run, states, rounding)
    examples = example_of_sequence(recorded, target, states, batch)
    order = examples.argsort()
    notes: tuple[str, ...] = ()
    bias = evaluate(torch.zeros(batch, device=logit.device))[0]
    if not torch.isfinite(bias).all():
        raise NonFiniteError(
            f"the logit of zero states, which is the bias, is {bias.tolist()}; expected finite numbers: does the "
            "model divide by the norm of the states, or take their logarithm?"
        )
    try:
        scale = torch.maximum(logit.abs(), bias.abs()).double()
        rounds = partition(slope_at, batch, scale, rounding, PIECES)
    except Jump as jump:
        if jump.place > 0:
            raise jumps(run, states) from None
        begin = BESIDE_ZERO
        bias = evaluate(torch.zeros(batch, device=logit.device))[0]
        notes = (*notes, "the target jumps at states of zero, where the model may mask them; the line begins beside it")
        try:
            scale = torch.maximum(logit.abs(), bias.abs()).double()
            rounds = partition(slope_at, batch, scale, rounding, PIECES)
        except Jump:
            raise jumps(run, states) from None
    weights = [torch.zeros_like(s) for s in states]
    for alpha, weight in rounds:
        for total, gradient in zip(weights, evaluate(alpha)[1], strict=True):
            total += (1 - begin) * weight.to(gradient)[examples, None] * gradient
    if not all(torch.isfinite(total).all() for total in weights):
        raise NonFiniteError(
            "a gradient between zero states and the network's own is NaN or infinite; expected finite gradients"
        )
    return Readout(tuple(weights), logit, bias, order, notes)


def _runner(recorded: RecordedForward, target: Target, batch: int) -> Run:
    def run(given: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return F of these states, and the leaves to differentiate it by."""
        with torch.enable_grad():
            leaves = tuple(s.detach().requires_grad_() for s in given)
            return select_target(recorded.replay(leaves), target, batch), leaves

    return run


def ambiguous_order() -> UsageError:
    """Return the error for an example that reads the states of another."""
    return UsageError(
        "the output of one example depends on the states of another (normalised over the batch?); expected independent "
        "examples: explain them one at a time"
    )


def example_of_sequence(recorded: RecordedForward, target: Target, states: tuple[Tensor, ...], batch: int) -> Tensor:
    """Find the example of the output that reads each of the network's sequences, shape (batch,).

    A model that sorts its batch by length changes the order. Examples are numbered in binary: for each bit, gradients
    show which sequences are read by examples that have the bit, and which by those that have not. Where no gradient
    arrives (a flat relu), other states are tried.
    """
    if batch == 1:
        return torch.zeros(1, dtype=torch.int64, device=states[0].device)
    run = _runner(recorded, target, batch)
    numbers, bits = torch.arange(batch, device="cpu"), torch.arange((batch - 1).bit_length(), device="cpu")
    seen = torch.zeros(2, len(bits), batch, dtype=torch.bool, device="cpu")
    for probe in _probes(states):
        value, leaves = run(probe)
        # unequal weights, so that opposite gradients of two examples do not cancel
        uneven = value * torch.linspace(1, 2, batch, device=value.device).to(value)
        for bit in bits.tolist():
            for has in (0, 1):
                for gradient in gradients(uneven[(numbers >> bit) & 1 == has], leaves):
                    if gradient is not None:
                        seen[has, bit] |= gradient.ne(0).any(dim=2).any(dim=0).cpu()
        if bool(seen.any(dim=0).all()):
            break
    known = seen.any(dim=0).all(dim=0)
    found = torch.where(known, (seen[1] << bits[:, None]).sum(dim=0), numbers)
    if bool((seen[0] & seen[1]).any()) or len(found[known].unique()) < int(known.sum()):
        raise ambiguous_order()
    if torch.equal(found, numbers):  # a sequence that no example reads keeps its place
        return found.to(states[0].device)
    # if the order has changed, it is the one that is left over
    left = numbers[~torch.isin(numbers, found[known])]
    if len(left) > 1:
        raise UsageError(
            f"the model puts its batch in another order, and which states examples {left.tolist()} are read from could "
            "not be found out, since no gradient arrives there; explain them one at a time"
        )
    found[~known] = left
    return found.to(states[0].device)


def _probes(states: tuple[Tensor, ...]) -> Iterator[tuple[Tensor, ...]]:
    """Yield states on the line, then random states of the same size."""
    for share in PROBES:
        yield tuple(share * s for s in states)
    generator = torch.Generator().manual_seed(0)
    for _ in range(RANDOM_PROBES):
        yield tuple(torch.randn(s.shape, generator=generator, device="cpu").to(s) * s.abs().amax() for s in states)
