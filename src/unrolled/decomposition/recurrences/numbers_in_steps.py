"""Numbers that a step takes out of torch: no derivative shows what its state contributes by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from unrolled.cells.ray import MatrixFreeRay, Ray
from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.operations.operation_mode import OperationMode
from unrolled.held_forward.operations.operation_names import name_of
from unrolled.held_forward.operations.python_values import TAKES_OUT
from unrolled.held_forward.outside.taken_places import CodePlace, place_of_call
from unrolled.model_runs.taken_numbers import refuse_read_numbers

__all__ = ["lost_in_python"]


def lost_in_python(ray: Ray[Any]) -> UnsupportedOperationError | None:
    """Return the error for a step whose next state depends on numbers that Python gets from the state before.

    None if the step takes numbers for a log only, or numbers that its state does not change.
    """
    if not isinstance(ray, MatrixFreeRay) or not ray.taken.valued:
        return None
    inputs, empty = ray.start + ray.displacement, torch.zeros_like(ray.before)
    one, other = (_given(ray.step, *point) for point in ((ray.start, empty), (inputs, ray.before)))
    moving = ray.taken.with_value_at([place for place in ray.taken.valued if one.get(place) != other.get(place)])
    try:
        refuse_read_numbers(moving, lambda: [ray.step(inputs, ray.before)], [ray.end], set())
    except UnsupportedOperationError:
        names = ", ".join(sorted(set(moving.valued.values())))
        return UnsupportedOperationError(
            f"a step takes numbers out of torch ({names}), and no derivative shows what its state contributes by them: "
            "that is credited to the token that the step reads, or is the remainder; compute it with torch operations"
        )
    return None


def _given(step: Callable[[Tensor, Tensor], Tensor], inputs: Tensor, state: Tensor) -> dict[CodePlace, str]:
    """Run a step, and return what Python gets at each place, as a text."""
    with torch.no_grad(), _Given() as given:
        step(inputs, state)
    return given.found


class _Given(OperationMode):
    """Keeps what Python gets."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[CodePlace, str] = {}

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        result = func(*args, **options)
        if name_of(func).name in TAKES_OUT:
            place = place_of_call()
            self.found[place] = f"{self.found.get(place, '')} {result!r}"
        return result
