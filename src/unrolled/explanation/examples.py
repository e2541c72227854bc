"""Which examples an output has, and which of them reads each sequence of a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from unrolled.decomposition.nested_tensors import tensors_in
from unrolled.errors import ShapeError
from unrolled.explanation.readout.batch_order import ambiguous_order, completed_order
from unrolled.explanation.strands.covectors import Covectors
from unrolled.explanation.strands.lines import Line
from unrolled.explanation.targets.select_target import Target
from unrolled.explanation.targets.target_function import called_target
from unrolled.held_forward.coarsest_type import coarsest_type

__all__ = ["complete_owners", "count_examples", "find_owners", "refuse_no_examples"]

OF_ANOTHER = {torch.float64: 1e-16, torch.float32: 1e-8, torch.bfloat16: 2.5e-3, torch.float16: 1e-4}
"""The square of the share of another example from which on a sequence serves both, by the type of the covectors."""


def count_examples(output: object, target: Target | str | None, batches: Sequence[int], sequences: int) -> int:
    """Return how many numbers a target has to give: one for each example of a model's output.

    Args:
        output: What the model returned.
        target: Picks from it.
        batches: Number of sequences of each call of a recurrent network.
        sequences: Number of all sequences; calls that continue each other have the same ones.
    """
    usual = batches[0]
    if callable(target):
        chosen = called_target(target, output)
        count = chosen.numel() if isinstance(chosen, Tensor) else usual
        whole = len(output) if isinstance(output, Tensor) and output.dim() > 1 else usual
        return count if count in (1, whole, *batches) else usual
    if not isinstance(output, Tensor):
        return usual
    if output.dim() <= 1:
        return output.numel() if output.numel() in batches else 1
    return len(output) if len(output) in batches or len(output) <= sequences else usual


def refuse_no_examples(output: object) -> None:
    """Refuse an output all of whose tensors are empty.

    Raises:
        ShapeError: If they are.
    """
    sizes = [each.numel() for each in tensors_in(output)]
    if sizes and not any(sizes):
        raise ShapeError("the output has no examples; expected a batch of at least one")


def find_owners(line: Line, plain: Covectors, weighed: Covectors | None, batch: int, coarsest: torch.dtype) -> Tensor:
    """Find the example that reads each sequence of a line, -1 for none, shape (batch of the line,).

    Where the examples of the output are weighed by 1, 2, 3 …, a sequence's covectors are as many times as large as the
    number of its example. ``coarsest`` is the type of least precision that the covectors pass through.

    Raises:
        UsageError: If one sequence serves several examples.
    """
    if weighed is None:
        return torch.where(_product(line, plain, plain) > 0, 0, -1)
    square, product = _product(line, plain, plain), _product(line, plain, weighed)
    number = torch.where(square > 0, product / square, 0.0).round()
    gap, size = torch.zeros_like(square), _product(line, weighed, weighed)
    for strand in line.strands:
        rows = strand.rows
        times = number[rows].to(strand.states)[:, None]
        off = weighed.weights[strand].detach() - times * plain.weights[strand].detach()
        gap.index_add_(0, rows, off.double().square().sum(dim=(0, 2)).cpu())
    rounding = OF_ANOTHER[coarsest_type((line.first.states.dtype, coarsest))]
    if bool((gap > rounding * torch.maximum(size, square)).any()) or bool((number > batch).any()):
        raise ambiguous_order()
    return number.long() - 1


def complete_owners(owners: Tensor, probes: Iterator[Tensor]) -> Tensor:
    """Find the examples of sequences that no gradient reaches, of a network with one sequence for each example.

    Args:
        owners: The example of each sequence, -1 where it is unknown.
        probes: What other states of the network tell, in the same form.

    Raises:
        UsageError: If more than one sequence is left over, or one example reads two.
    """
    if len(owners) == 1:
        return torch.zeros_like(owners)
    found = owners.clone()
    while bool((found < 0).any()):
        other = next(probes, None)
        if other is None:
            break
        found = torch.where(found < 0, other, found)
    return completed_order(found)


def _product(line: Line, one: Covectors, other: Covectors) -> Tensor:
    """Multiply the covectors of each sequence of a line, shape (batch of the line,)."""
    total = torch.zeros(line.batch, dtype=torch.float64, device="cpu")
    for strand in line.strands:
        both = one.weights[strand].detach().double() * other.weights[strand].detach().double()
        total.index_add_(0, strand.rows, both.sum(dim=(0, 2)).cpu())
    return total
