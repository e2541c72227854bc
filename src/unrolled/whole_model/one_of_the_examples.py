"""A note where an index picks one example of a batch in place of a class."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unrolled.whole_model.accounted_output import AccountedOutput

__all__ = ["one_of_the_examples"]


def one_of_the_examples(output: Any, index: int | None, result: AccountedOutput) -> tuple[str, ...]:
    """Say that an output of one axis may have a number for each example, of which the index has picked one.

    An output of shape (n,) is one example's classes or n examples' numbers. In the second case all that it reads of
    the arguments is the one example of that index.

    Args:
        output: What the model returned.
        index: The number of it that was picked; None if another way was taken.
        result: The account of what was picked.
    """
    if index is None or not isinstance(output, Tensor) or output.dim() != 1 or len(output) < 2:
        return ()
    parts = [*result.texts.values(), *result.features.values()]
    read = [part for part in parts if bool(part.any())]
    if not read or not all(_reads_only(part, index, len(output)) for part in read):
        return ()
    count = len(output)
    return (
        f"the output has shape ({count},), and number {index} reads nothing but example {index} of the arguments: "
        "if it has one number for each example, target=lambda out: out accounts for all of them",
    )


def _reads_only(part: Tensor, place: int, count: int) -> bool:
    """Tell whether one of the first two axes, of (batch, time) or (time, batch), counts the numbers of the output."""
    for axis in range(min(part.dim(), 2)):
        if part.shape[axis] == count:
            others = torch.tensor([k for k in range(count) if k != place], device=part.device)
            if not bool(part.index_select(axis, others).any()):
                return True
    return False
