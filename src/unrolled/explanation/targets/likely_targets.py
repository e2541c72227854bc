"""Targets for an output without classes: one number of each example, as a user would write it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter, itemgetter
from typing import Any

from torch import Tensor
from torch.distributions import Distribution

__all__ = ["example_of_class", "example_target", "has_classes", "likely_targets"]

Pick = Callable[[Any], Any]

_INDICES = {1: ("", "[:1]"), 2: ("[:, 0]", "[-1:, 0]"), 3: ("[:, -1, 0]", "[-1, :, 0]"), 4: ("[:, -1, 0, 0]",)}
"""By the number of axes: with the axis of examples first, and with another one first."""


def has_classes(output: object) -> bool:
    """Tell whether an output needs no target: it is of shape (batch, classes), or one number for each example."""
    return isinstance(output, Tensor) and output.dim() <= 2


def likely_targets(output: object, place: int = 0) -> Iterator[tuple[str, Pick]]:
    """Yield targets as Python expressions and as functions, the likeliest first.

    They pick the class at ``place``, or the first class if there is none at it. They pick it from the tensor that is
    named logits, else from the first one of floating-point numbers.
    """
    found = [
        (code, pick, tensor) for code, pick, tensor in _tensors(output) if tensor.is_floating_point() and tensor.numel()
    ]
    found.sort(key=lambda each: "logits" not in each[0])
    for code, pick, tensor in found[:1]:
        for first in _INDICES.get(tensor.dim(), ("",)):
            index = _of_class(first, tensor, place)
            yield f"lambda out: out{code}{index}", _indexed(pick, index)


def example_target(output: object, batch: int | None = None, place: int = 0) -> str:
    """Write a target that fits an output, as the end of an error's sentence; empty if no number can be picked.

    Args:
        output: What the model returned.
        batch: Number of examples, where it is known.
        place: Of the class that was asked for.
    """
    for code, pick in likely_targets(output, place):
        if batch is None or pick(output).numel() == batch:
            return f": target={code}"
    return ""


def example_of_class(output: Tensor, batch: int, place: int) -> str:
    """Write a target that picks the class at a place, else the first, of each example, as the end of an error."""
    for index in _INDICES.get(output.dim(), ()) if output.numel() else ():
        if _indexed(_whole, index)(output).numel() == batch:
            return f" such as lambda out: out{_of_class(index, output, place)}"
    return f" that picks one number for each of {batch} examples"


def _of_class(index: str, output: Tensor, place: int) -> str:
    """Write a class in the place of the first one, if the output has it."""
    known = index.endswith("0]") and -output.shape[-1] <= place < output.shape[-1]
    return f"{index[:-2]}{place}]" if known else index


def _indexed(pick: Pick, index: str) -> Pick:
    places = tuple(slice(*_bounds(each)) if ":" in each else int(each) for each in index.strip("[]").split(",") if each)
    return (lambda output: pick(output)[places]) if places else pick


def _bounds(text: str) -> tuple[int | None, int | None]:
    first, _, last = text.strip().partition(":")
    return int(first) if first else None, int(last) if last else None


def _then(first: Pick, second: Pick) -> Pick:
    return lambda output: second(first(output))


def _whole(output: Any) -> Any:
    return output


def _tensors(output: Any, inside: tuple[Any, ...] = ()) -> Iterator[tuple[str, Pick, Tensor]]:
    """Walk through an output: how each tensor in it is written, picked, and what it is; ``inside`` holds it."""
    if any(each is output for each in inside):
        return
    if isinstance(output, Tensor):
        yield "", _whole, output
        return
    parts: list[tuple[str, Pick, Any]] = []
    if isinstance(output, Mapping):
        parts = [(f"[{key!r}]", itemgetter(key), each) for key, each in output.items()]
    elif isinstance(output, tuple | list):
        parts = [(f"[{place}]", itemgetter(place), each) for place, each in enumerate(output)]
    else:
        parts = [(f".{name}", attrgetter(name), getattr(output, name)) for name in _attributes(output)]
    for code, step, part in parts:
        for deeper, pick, tensor in _tensors(part, (*inside, output)):
            yield code + deeper, _then(step, pick), tensor


def _attributes(output: Any) -> list[str]:
    """Name what a dataclass or a distribution holds; of a distribution the logits, which it may compute, first."""
    if dataclasses.is_dataclass(output):
        return [each.name for each in dataclasses.fields(output)]
    if isinstance(output, Distribution):
        return [each for each in ("logits", *vars(output)) if not each.startswith("_") and hasattr(output, each)]
    return []
