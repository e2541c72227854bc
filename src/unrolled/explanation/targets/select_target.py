"""What a target picks from a model's output: one number for each example."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from unrolled.errors import ShapeError, UsageError, kind_of
from unrolled.explanation.targets.likely_targets import example_of_class, example_target
from unrolled.explanation.targets.output_classes import class_index
from unrolled.explanation.targets.target_function import called_target

__all__ = ["Target", "checked_floating", "class_outputs", "no_tensor", "place_of", "select_target"]

Target = int | Callable[[object], Tensor]
"""An index of the last output dimension, or a function from the output to one number for each example."""


def select_target(output: object, target: Target, batch: int) -> Tensor:
    """Select the target from a model's output: one number for each of ``batch`` examples."""
    return checked_floating(_selected(output, target, batch))


def checked_floating(target: Tensor) -> Tensor:
    """Return a target that is a dense tensor of a floating type, and refuse any other."""
    if target.layout != torch.strided:
        raise UsageError(
            "the model's output is sparse; expected a dense tensor, or a target that makes one: to_dense()"
        )
    if target.is_complex():
        raise UsageError(
            f"the target is {target.dtype}; expected real numbers: pass a target that returns them, such as "
            "lambda out: out[:, 0].real"
        )
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
    classes = class_outputs(output, target, batch)
    return classes[:, class_index("target", target, (), classes.shape[1])]


def class_outputs(output: object, target: object, batch: int) -> Tensor:
    """Return a model's output with shape (batch, classes); an error suggests the target, if that is an index."""
    if not isinstance(output, Tensor):
        raise no_tensor(output, target, batch)
    if output.dim() <= 1 and output.numel() == batch:
        output = output.reshape(batch, 1)
    elif output.dim() == 1 and batch == 1:
        output = output[None]
    if output.dim() != 2 or output.shape[0] != batch:
        raise ShapeError(
            f"the output has shape {tuple(output.shape)}; expected ({batch}, classes), or a callable target"
            f"{example_of_class(output, batch, place_of(target))}"
        )
    if not output.shape[1]:
        raise ShapeError(f"the output has shape {tuple(output.shape)}; expected a class or more")
    return output


def no_tensor(output: object, target: object, batch: int | None = None) -> ShapeError:
    """Return the error about an output that is no tensor, with a target that may fit; ``batch`` is None if unknown."""
    return ShapeError(
        f"the model returned {kind_of(output)}; expected a tensor, or a callable target that picks from it"
        f"{example_target(output, batch, place_of(target))}"
    )


def place_of(target: object) -> int:
    """Return the index that was asked for; 0 for any other target."""
    return target if isinstance(target, int) and not isinstance(target, bool) else 0
