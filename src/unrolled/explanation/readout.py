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

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.errors import NonFiniteError, ShapeError, UsageError
from unrolled.explanation.record_forward import RecordedForward
from unrolled.linalg.adaptive_quadrature import partition

__all__ = ["Readout", "Target", "read_target", "readout"]

Target = int | Callable[[object], Tensor]
"""An index of the last output dimension, or what picks one number an example out of the output."""

Run = Callable[[tuple[Tensor, ...]], tuple[Tensor, tuple[Tensor, ...]]]
"""States of each direction -> F of every example, and those states as leaves."""

PIECES = 256

PROBES = (1.0, 0.5, 0.0625, -1.0)
"""Where along the ray it is asked which sequence an example is read from: a relu may be flat at the states."""
ELSEWHERE = 8
"""How many states drawn at random are asked after that."""


@dataclass(frozen=True)
class Readout:
    """The readout of a logit, for a batch."""

    weights: tuple[Tensor, ...]
    """w_t for each direction, in token order, shape (time, batch, state), sequences as the network had them."""
    logit: Tensor
    """F(H) as the model gave it, shape (batch,)."""
    bias: Tensor
    """F(0), shape (batch,)."""
    order: Tensor
    """Which of the network's sequences each example of the output is read from, shape (batch,)."""
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
        UsageError: when it is neither an index nor a callable, or the index is out of range.
    """
    if callable(target):
        value = target(answer)
        if not isinstance(value, Tensor) or value.numel() != batch:
            came = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise ShapeError(f"the target gave {came}; expected a tensor of {batch} numbers, one an example")
        return value.reshape(batch)
    try:
        index = operator.index(target)
    except TypeError as error:
        kind = type(target).__name__
        raise UsageError(f"the target is a {kind}; expected an index of the output, or a callable") from error
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
            f"lambda out: out[:, -1, {index}]"
        )
    if not -answer.shape[1] <= index < answer.shape[1]:
        raise UsageError(f"target is {index}; expected 0 to {answer.shape[1] - 1}, an index of the output")
    return answer[:, index]


def readout(observation: RecordedForward, target: Target) -> Readout:
    """Average the readout of a target along the ray from zero to the states.

    Args:
        observation: the model at work.
        target: what to read.

    Returns:
        The readout.

    Raises:
        NonFiniteError: when the logit, what the model says of states that are zero, or a gradient on the way there is
            NaN or infinite.
        UsageError: when one example's output depends on another's states, no gradient flows from it to its own, or it
            cannot be found out which are its own.
    """
    states = observation.states
    batch = observation.opened.lengths.shape[0]
    logit = read_target(observation.answer, target, batch).detach()
    if not torch.isfinite(logit).all():
        raise NonFiniteError(f"the logit is {logit.tolist()}; expected finite numbers")

    def run(given: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """F of these states, and the leaves to differentiate it by."""
        with torch.enable_grad():
            leaves = tuple(s.detach().requires_grad_() for s in given)
            return read_target(observation.replay(leaves), target, batch), leaves

    def evaluate(alpha: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """F and its gradient at α·H, α of each example."""
        value, leaves = run(tuple(alpha.to(s)[readers, None] * s for s in states))
        found = _gradients(value, leaves)
        filled = (torch.zeros_like(s) if g is None else g for g, s in zip(found, states, strict=True))
        return value.detach(), tuple(filled)

    def look(alpha: Tensor) -> tuple[Tensor, Tensor]:
        value, gradients = evaluate(alpha)
        slope = sum((g * s).double().sum(dim=(0, 2)) for g, s in zip(gradients, states, strict=True))
        assert isinstance(slope, Tensor)
        return value.double(), slope[order]

    rounding = 16 * torch.finfo(logit.dtype).eps
    _refuse_severed(run, states, rounding)
    readers = _readers(run, states, batch)
    order = readers.argsort()
    bias = evaluate(torch.zeros(batch, device=logit.device))[0]
    if not torch.isfinite(bias).all():
        raise NonFiniteError(
            f"the model says {bias.tolist()} of zero states, where the account begins; expected "
            "finite numbers: does it divide by their norm, or take their logarithm?"
        )
    scale = torch.maximum(logit.abs(), bias.abs()).double()
    weights = [torch.zeros_like(s) for s in states]
    for alpha, weight in partition(look, batch, scale, rounding, PIECES):
        for total, gradient in zip(weights, evaluate(alpha)[1], strict=True):
            total += weight.to(gradient)[readers, None] * gradient
    if not all(torch.isfinite(total).all() for total in weights):
        raise NonFiniteError(
            "a gradient between zero states and the network's own is NaN or infinite; expected finite ones"
        )
    return Readout(tuple(weights), logit, bias, order, _notes(observation))


def _gradients(value: Tensor, leaves: tuple[Tensor, ...]) -> tuple[Tensor | None, ...]:
    """Differentiate Σ F by the states; None for those that no gradient reaches."""
    if not value.requires_grad:
        return (None,) * len(leaves)
    with torch.enable_grad():
        return torch.autograd.grad(value.sum(), leaves, allow_unused=True, retain_graph=True)


def _refuse_severed(run: Run, states: tuple[Tensor, ...], rounding: float) -> None:
    """Make sure that a target to which no gradient flows from the states does not depend on them."""
    value, leaves = run(states)
    if any(g is not None for g in _gradients(value, leaves)):
        return
    without, _ = run(tuple(torch.zeros_like(s) for s in states))
    if bool(((value - without).abs() > rounding * torch.maximum(value.abs(), without.abs())).any()):
        raise UsageError(
            "the target depends on the network's states, but no gradient flows to them (torch.no_grad, "
            "torch.inference_mode or detach behind the network?); expected a readout that can be differentiated"
        )


def _readers(run: Run, states: tuple[Tensor, ...], batch: int) -> Tensor:
    """Find the example of the output that reads each of the network's sequences, shape (batch,).

    It is another one where a model sorts its batch by length and puts it back. Examples are numbered in binary: of
    each bit it is asked which sequences are read by those that have it, and which by those that do not. Where no
    gradient arrives (a relu that is flat), it is asked again at other states.
    """
    if batch == 1:
        return torch.zeros(1, dtype=torch.int64, device=states[0].device)
    numbers, bits = torch.arange(batch), torch.arange((batch - 1).bit_length())
    seen = torch.zeros(2, len(bits), batch, dtype=torch.bool)
    for probe in _probes(states):
        value, leaves = run(probe)
        # uneven, so that opposite gradients of two readers do not cancel
        uneven = value * torch.linspace(1, 2, batch).to(value)
        for bit in bits.tolist():
            for has in (0, 1):
                for gradient in _gradients(uneven[(numbers >> bit) & 1 == has], leaves):
                    if gradient is not None:
                        seen[has, bit] |= gradient.ne(0).any(dim=2).any(dim=0).cpu()
        if bool(seen.any(dim=0).all()):
            break
    known = seen.any(dim=0).all(dim=0)
    readers = torch.where(known, (seen[1] << bits[:, None]).sum(dim=0), numbers)
    if bool((seen[0] & seen[1]).any()) or len(readers[known].unique()) < int(known.sum()):
        raise UsageError(
            "the output of one example depends on the states of another (normalised over the batch?); expected "
            "independent examples: explain them one at a time"
        )
    if torch.equal(readers, numbers):  # a sequence that nobody reads stays where it is
        return readers.to(states[0].device)
    # in a batch in another order it is one of those that are left over
    left = numbers[~torch.isin(numbers, readers[known])]
    if len(left) > 1:
        raise UsageError(
            f"the model puts its batch in another order, and which states examples {left.tolist()} are read from could "
            "not be found out, since no gradient arrives there; explain them one at a time"
        )
    readers[~known] = left
    return readers.to(states[0].device)


def _probes(states: tuple[Tensor, ...]) -> Iterator[tuple[Tensor, ...]]:
    """Give states along the ray, then drawn ones of the same size."""
    for share in PROBES:
        yield tuple(share * s for s in states)
    generator = torch.Generator().manual_seed(0)
    for _ in range(ELSEWHERE):
        yield tuple(torch.randn(s.shape, generator=generator).to(s) * s.abs().amax() for s in states)


def _notes(observation: RecordedForward) -> tuple[str, ...]:
    """Say what stands in the bias beside the model's own constants."""
    rnn = observation.rnn
    if rnn.bidirectional and rnn.num_layers > 1:
        return (
            f"bidirectional with {rnn.num_layers} layers: n-grams are those of the inputs of the top layer; what the "
            "model reads from final states of lower layers stands in the bias",
        )
    return ()
