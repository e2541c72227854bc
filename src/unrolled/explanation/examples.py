"""How many examples an output has, and whether there is anything in the arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from unrolled.errors import ShapeError
from unrolled.explanation.targets.select_target import Target
from unrolled.explanation.targets.target_function import called_first
from unrolled.model_runs.nested_tensors import tensors_in

__all__ = ["count_examples", "refuse_no_examples", "refuse_no_tokens"]


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
        chosen = called_first(target, output)
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


def refuse_no_tokens(shapes: Iterable[torch.Size]) -> None:
    """Refuse arguments of which a model reads nothing, where one of them has no examples or no steps.

    Raises:
        ShapeError: If one has.
    """
    for shape in shapes:
        if len(shape) > 1 and 0 in shape[:2]:  # features of no numbers leave the steps there
            raise ShapeError(
                f"the model reads no token of an input of shape {tuple(shape)}; expected at least one token"
            )
