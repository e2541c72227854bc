"""Numbers that a model takes out of torch: a held run loses them, which is right if the output reads none of them.

Many models take numbers for a log, a statistic or a check: ``self.norm = h.norm().item()``, ``print(h.mean())``. Two
further runs give Python other numbers in their place. If the output stays as it is, nothing of it is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from unrolled.decomposition.determinism import agree
from unrolled.held_forward.operands import is_parameter
from unrolled.held_forward.operation_mode import OperationMode
from unrolled.held_forward.operation_names import name_of
from unrolled.held_forward.python_values import AS_TEXT, TO_PYTHON, taken_out
from unrolled.held_forward.rules.scripted import python_function

__all__ = ["refuse_read_numbers"]

_MOVES = ((1.5, 1.0), (-3.0, -2.0))
"""Factor and shift of each further run: a threshold that one of them does not pass, the other may."""
_LOOP = 1000
"""A further run that takes so many numbers more than the held one is in a loop that waits for one of them."""


def refuse_read_numbers(taken: Sequence[str], run: Callable[[], Sequence[Tensor]], expected: Sequence[Tensor]) -> None:
    """Refuse a model whose output reads numbers that it takes out of torch.

    Args:
        taken: The operations by which a held run gave Python numbers that carry value.
        run: Runs the model as it is, and returns what is explained.
        expected: What it returns.

    Raises:
        UnsupportedOperationError: If the output is another one with other numbers, or if the model fails with them.
    """
    if not taken or all(name in AS_TEXT for name in taken):
        return
    for move in _MOVES:
        try:
            with torch.no_grad(), _Moved(*move, most=len(taken) + _LOOP):
                found = run()
        except (Exception, SystemExit) as error:  # the model's own, which checks its numbers
            raise taken_out(taken[0]) from error
        if not agree(expected, found):
            raise taken_out(taken[0])


class _Moved(OperationMode):
    """Gives Python other numbers than tensors hold; those of a parameter stay, since they carry no value.

    A scripted function takes numbers where no mode meets it, so the Python function runs that it was made of, as in a
    held run.
    """

    def __init__(self, factor: float, shift: float, most: int) -> None:
        super().__init__()
        self.factor, self.shift, self.left = factor, shift, most

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        name = name_of(func).name
        if name == "scripted_function" and (original := python_function(args[0])) is not None:
            with self:
                return original(*args[1:], **options)
        if name in TO_PYTHON | {"__format__"}:
            first = args[0]
            if (first.is_floating_point() or first.is_complex()) and not is_parameter(first):
                self.left -= 1
                if self.left < 0:
                    raise RuntimeError("a loop over numbers that are taken out of torch does not end with others")
                args = (first.detach() * self.factor + self.shift, *args[1:])
        return func(*args, **options)
