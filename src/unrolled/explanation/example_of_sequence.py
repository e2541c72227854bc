"""Which example of an output reads each sequence of a network.

A model may sort its batch by length, or read several sequences for an example. Where the examples of the output are
weighed, the gradient of a sequence is as many times as large as the weight of the example that reads it. Weights are
powers of two, by the digits of the examples' numbers; further ones check what the digits say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor

from unrolled.errors import NonFiniteError, UsageError
from unrolled.held_forward.powers_of_two import base_of, digits_of, exponents_of

__all__ = ["complete_examples", "example_of_sequence", "other_states", "weighed_sums"]

Parts = Sequence[Tensor | None]
"""Gradients by parts of the states, each (time, sequences of the part, state); None where no gradient arrives."""

_OF_ANOTHER = {torch.float64: 1e-8, torch.float32: 1e-4, torch.bfloat16: 0.05, torch.float16: 1e-2}
"""The share of another example from which on a sequence serves both, by the type of the gradients."""
_LEAST = 1e-150
"""Gradients below this have no square in float64."""
_MULTIPLES = (0.5, 0.0625, -1.0)
"""Multiples of the states that are tried first: a relu may be flat at the states."""
_RANDOM = 8
"""Number of random states that are tried then."""


def weighed_sums(output: Tensor, coarsest: torch.dtype) -> list[Tensor]:
    """Sum the examples of an output: as they are, then with the weights of each digit of their numbers and each check.

    Args:
        output: Shape (examples,), with its graph. One example is summed once, as it needs no weights.
        coarsest: The type of least precision that the gradients pass through.
    """
    ones = torch.ones_like(output)
    exponents = _exponents(len(output), base_of(coarsest))
    return [output.sum(), *((torch.ldexp(ones, each.to(output.device)) * output).sum() for each in exponents)]


def example_of_sequence(
    passes: Sequence[Parts], rows: Sequence[Tensor], sequences: int, examples: int, coarsest: torch.dtype
) -> Tensor:
    """Find the example that reads each sequence, -1 where no gradient tells, shape (sequences,), on the CPU.

    Args:
        passes: The gradients of each of :func:`weighed_sums`.
        rows: Which sequences each part is of.
        sequences: Number of all sequences.
        examples: Number of examples.
        coarsest: As there.

    Raises:
        UsageError: If one sequence serves several examples.
        NonFiniteError: If gradients are too large to be weighed.
    """
    plain, others, base = _PlainGradients(passes[0], rows, sequences, coarsest), passes[1:], base_of(coarsest)
    found = torch.where(plain.read, 0, -1)
    places = len(digits_of(examples, base))
    for place, weighed in enumerate(others[:places]):
        power = plain.power(weighed)
        plain.check(weighed, power.exp2())
        found += torch.where(plain.read, power.long() * base**place, 0)
    if bool((found >= examples).any()):
        raise _depend_on_another()
    for weighed, exponents in zip(others[places:], _exponents(examples, base)[places:], strict=True):
        plain.check(weighed, exponents[found.clamp_min(0)].double().exp2())
    return found


@dataclass(frozen=True)
class _PlainGradients:
    """The gradients without weights, which tell by how much others are weighed."""

    parts: Parts
    rows: Sequence[Tensor]
    sequences: int
    coarsest: torch.dtype

    def power(self, weighed: Parts) -> Tensor:
        """Return the power of two by which the gradient of each sequence is weighed, 0 where none is read."""
        times = self._products(self.parts, weighed) / self._size.square()
        return torch.where(self.read, times, 1.0).clamp_min(1.0).log2().round()

    def check(self, weighed: Parts, times: Tensor) -> None:
        """Refuse weighed gradients that are not so many times the plain ones: a sequence serves several examples."""
        off = [
            None
            if a is None or b is None
            else b.detach().double() - times[own.cpu()].to(b.device)[:, None] * a.detach()
            for a, b, own in zip(self.parts, weighed, self.rows, strict=True)
        ]
        size, gap = self._products(weighed, weighed).sqrt(), self._products(off, off).sqrt()
        if bool((self._finite & ~size.isfinite()).any()):
            raise NonFiniteError(f"gradients are too large for {self.coarsest}; explain the examples one at a time")
        close = _OF_ANOTHER[self.coarsest] * torch.maximum(size, self._size)
        # what has lost its digits, being so small, may be anything up to the largest weight
        allowed = torch.where(self.read, close, 2.0 ** base_of(self.coarsest) * self._size + self._least)
        if bool((self._finite & (gap > allowed)).any()):
            raise _depend_on_another()

    @cached_property
    def read(self) -> Tensor:
        """Whether the gradient of each sequence tells the example that reads it, shape (sequences,)."""
        return self._finite & (self._size > self._least)

    @cached_property
    def _size(self) -> Tensor:
        return self._products(self.parts, self.parts).sqrt()

    @cached_property
    def _finite(self) -> Tensor:
        return self._size.isfinite()

    @property
    def _least(self) -> float:
        """Gradients up to this have lost digits."""
        kind = torch.finfo(self.coarsest)
        return max(kind.smallest_normal * kind.eps / _OF_ANOTHER[self.coarsest], _LEAST)

    def _products(self, one: Parts, other: Parts) -> Tensor:
        """Multiply the gradients of each sequence with others, shape (sequences,)."""
        total = torch.zeros(self.sequences, dtype=torch.float64, device="cpu")
        for a, b, own in zip(one, other, self.rows, strict=True):
            if a is not None and b is not None:
                total.index_add_(0, own.cpu(), (a.detach().double() * b.detach().double()).sum(dim=(0, 2)).cpu())
        return total


def complete_examples(found: Tensor, probes: Iterator[Tensor]) -> Tensor:
    """Find the examples of sequences that no gradient reaches, of a network with one sequence for each example.

    Sequences that no example reads keep their places; if the order of the others has changed, one may be left over.

    Args:
        found: The example of each sequence, -1 where it is unknown, shape (batch,).
        probes: What other states of the network tell, in the same form.

    Raises:
        UsageError: If more than one sequence is left over, one example reads two, or the states change the order.
    """
    if len(found) == 1:
        return torch.zeros_like(found)
    while bool((found < 0).any()):
        other = next(probes, None)
        if other is None:
            break
        if bool(((found >= 0) & (other >= 0) & (found != other)).any()):
            raise UsageError(
                "the states decide in which order the model puts its batch, so other states do not tell which sequence "
                "each example reads where no gradient arrives; explain them one at a time"
            )
        found = torch.where(found < 0, other, found)
    known, straight = found >= 0, torch.arange(len(found), device=found.device)
    if len(found[known].unique()) < int(known.sum()):
        raise _depend_on_another()
    if torch.equal(found[known], straight[known]):
        return straight
    left = straight[~torch.isin(straight, found[known])]
    if len(left) > 1:
        raise UsageError(
            f"the model puts its batch in another order, and which states examples {left.tolist()} are read from could "
            "not be found out, since no gradient arrives there; explain them one at a time"
        )
    return torch.where(known, found, left.sum())


def other_states() -> Iterator[Callable[[Tensor], Tensor]]:
    """Yield what makes other states of a network's own, where no gradient may arrive: multiples, then random ones."""
    for multiple in _MULTIPLES:
        yield partial(torch.mul, other=multiple)
    generator = torch.Generator().manual_seed(0)

    def drawn(states: Tensor) -> Tensor:
        numbers = torch.randn(states.shape, generator=generator, dtype=torch.float64, device="cpu")
        return numbers.to(states) * states.abs().amax()

    yield from [drawn] * _RANDOM


def _exponents(examples: int, base: int) -> list[Tensor]:
    """Return the exponents of the weights; none for one example."""
    return exponents_of(examples, base) if examples > 1 else []


def _depend_on_another() -> UsageError:
    """Return the error for an example that reads the states of another."""
    return UsageError(
        "the output of one example depends on the states of another (normalised over the batch?); expected independent "
        "examples: explain them one at a time"
    )
