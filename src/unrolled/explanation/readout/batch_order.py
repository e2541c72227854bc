"""Which sequence of a recurrent network each example of a batch reads: a model may sort its batch by length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, product

import torch
from torch import Tensor

from unrolled.errors import UsageError
from unrolled.explanation.readout.function_of_states import Run, gradients

__all__ = ["ambiguous_order", "completed_order", "example_of_sequence", "other_states"]

MULTIPLES = (0.5, 0.0625, -1.0)
"""Multiples of the states that are tried first: a relu may be flat at the states."""
RANDOM = 8
"""Number of random states that are tried then."""


def ambiguous_order() -> UsageError:
    """Return the error for an example that reads the states of another."""
    return UsageError(
        "the output of one example depends on the states of another (normalised over the batch?); expected independent "
        "examples: explain them one at a time"
    )


def example_of_sequence(run: Run, states: tuple[Tensor, ...], batch: int) -> Tensor:
    """Find the example of the output that reads each of the network's sequences, shape (batch,).

    A model that sorts its batch by length changes the order. Examples are numbered in binary: for each bit, gradients
    show which sequences are read by examples that have the bit, and which by those that have not. Where no gradient
    arrives (a flat relu), other states are tried.

    Args:
        run: The target as a function of the states.
        states: Of each direction, shape (time, batch, state).
        batch: Number of examples.

    Raises:
        UsageError: If an example reads the states of another, or what it reads could not be found out.
    """
    if batch == 1:
        return torch.zeros(1, dtype=torch.int64, device=states[0].device)
    bits = torch.arange((batch - 1).bit_length(), device="cpu")
    seen = torch.zeros(2, len(bits), batch, dtype=torch.bool, device="cpu")
    others = (tuple(map(change, states)) for change in other_states())
    for given in chain([states], others):
        seen |= _seen(run, given, bits)
        if bool(seen.any(dim=0).all()):
            break
    if bool((seen[0] & seen[1]).any()):
        raise ambiguous_order()
    found = torch.where(seen.any(dim=0).all(dim=0), (seen[1] << bits[:, None]).sum(dim=0), -1)
    return completed_order(found).to(states[0].device)


def _seen(run: Run, states: tuple[Tensor, ...], bits: Tensor) -> Tensor:
    """Tell which sequences are read by examples whose number has not, or has, each bit, shape (2, bits, batch)."""
    value, leaves = run(states)
    batch = len(value)
    # unequal weights, so that opposite gradients of two examples do not cancel
    uneven = value * torch.linspace(1, 2, batch, device=value.device).to(value)
    seen = torch.zeros(2, len(bits), batch, dtype=torch.bool, device="cpu")
    for bit, has in product(bits.tolist(), (0, 1)):
        chosen = (torch.arange(batch, device="cpu") >> bit) & 1 == has
        for gradient in gradients(uneven[chosen], leaves):
            if gradient is not None:
                seen[has, bit] |= gradient.ne(0).any(dim=2).any(dim=0).cpu()
    return seen


def completed_order(found: Tensor) -> Tensor:
    """Return the example that reads each sequence where some are not known, which no gradient reaches.

    Sequences that no example reads keep their places; if the order of the others has changed, one may be left over.

    Args:
        found: The example of each sequence, -1 where it is unknown, shape (batch,).

    Raises:
        UsageError: If more than one is left over, or one example reads two.
    """
    known, straight = found >= 0, torch.arange(len(found), device=found.device)
    if len(found[known].unique()) < int(known.sum()):
        raise ambiguous_order()
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
