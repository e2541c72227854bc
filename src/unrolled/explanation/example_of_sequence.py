"""Which example of an output reads each sequence of a network.

A model may sort its batch by length, or read several sequences for an example. Where the examples of the output are
weighed, the gradient of a sequence is as many times as large as the weight of the example that reads it. Weights are
powers of two, by the digits of the examples' numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from unrolled.errors import UsageError
from unrolled.held_forward.powers_of_two import base_of, digits_of

__all__ = ["complete_examples", "example_of_sequence", "other_states", "weighed_sums"]

Parts = Sequence[Tensor | None]
"""Gradients by parts of the states, each (time, sequences of the part, state); None where no gradient arrives."""

OF_ANOTHER = {torch.float64: 1e-16, torch.float32: 1e-8, torch.bfloat16: 2.5e-3, torch.float16: 1e-4}
"""The square of the share of another example from which on a sequence serves both, by the type of the gradients."""
MULTIPLES = (0.5, 0.0625, -1.0)
"""Multiples of the states that are tried first: a relu may be flat at the states."""
RANDOM = 8
"""Number of random states that are tried then."""


def weighed_sums(output: Tensor, coarsest: torch.dtype) -> list[Tensor]:
    """Sum the examples of an output: as they are, then with the weights of each digit of their numbers.

    Args:
        output: Shape (examples,), with its graph.
        coarsest: The type of least precision that the gradients pass through.
    """
    ones = torch.ones_like(output)
    digits = digits_of(len(output), base_of(coarsest))
    return [output.sum(), *((torch.ldexp(ones, each.to(output.device)) * output).sum() for each in digits)]


def example_of_sequence(
    passes: Sequence[Parts], rows: Sequence[Tensor], sequences: int, examples: int, coarsest: torch.dtype
) -> Tensor:
    """Find the example that reads each sequence, -1 for none, shape (sequences,), on the CPU.

    Args:
        passes: The gradients of each of :func:`weighed_sums`.
        rows: Which sequences each part is of.
        sequences: Number of all sequences.
        examples: Number of examples.
        coarsest: As there.

    Raises:
        UsageError: If one sequence serves several examples.
    """

    def products(one: Parts, other: Parts) -> Tensor:
        total = torch.zeros(sequences, dtype=torch.float64, device="cpu")
        for a, b, own in zip(one, other, rows, strict=True):
            if a is not None and b is not None:
                total.index_add_(0, own.cpu(), (a.detach().double() * b.detach().double()).sum(dim=(0, 2)).cpu())
        return total

    plain, *weighed = passes
    base, square = base_of(coarsest), products(plain, plain)
    found = torch.where(square > 0, 0, -1)
    for place, each in enumerate(weighed):
        digit = torch.where(square > 0, products(plain, each) / square, 1.0).clamp_min(1.0).log2().round()
        times = torch.exp2(digit)
        off = [
            None
            if a is None or b is None
            else b.detach().double() - times[own.cpu()].to(b.device)[:, None] * a.detach()
            for a, b, own in zip(plain, each, rows, strict=True)
        ]
        largest = torch.maximum(products(each, each), square)
        if not bool((products(off, off) <= OF_ANOTHER[coarsest] * largest).all()):
            raise _depend_on_another()
        found += torch.where(square > 0, digit.long() * base**place, 0)
    if bool((found >= examples).any()):
        raise _depend_on_another()
    return found


def complete_examples(found: Tensor, probes: Iterator[Tensor]) -> Tensor:
    """Find the examples of sequences that no gradient reaches, of a network with one sequence for each example.

    Sequences that no example reads keep their places; if the order of the others has changed, one may be left over.

    Args:
        found: The example of each sequence, -1 where it is unknown, shape (batch,).
        probes: What other states of the network tell, in the same form.

    Raises:
        UsageError: If more than one sequence is left over, or one example reads two.
    """
    if len(found) == 1:
        return torch.zeros_like(found)
    while bool((found < 0).any()):
        other = next(probes, None)
        if other is None:
            break
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
    for multiple in MULTIPLES:
        yield partial(torch.mul, other=multiple)
    generator = torch.Generator().manual_seed(0)

    def drawn(states: Tensor) -> Tensor:
        numbers = torch.randn(states.shape, generator=generator, dtype=torch.float64, device="cpu")
        return numbers.to(states) * states.abs().amax()

    yield from [drawn] * RANDOM


def _depend_on_another() -> UsageError:
    """Return the error for an example that reads the states of another."""
    return UsageError(
        "the output of one example depends on the states of another (normalised over the batch?); expected independent "
        "examples: explain them one at a time"
    )
