"""Numbers that a model takes out of torch: a held run loses them, which is right if the output reads none of them.

Many models take numbers for a log, a statistic or a check: ``self.norm = h.norm().item()``, ``print(h.mean())``. Two
further runs give Python other numbers in their place. If the output stays as it is, nothing of it is lost. A choice
that all runs make alike, as where a threshold is far, is held, as a choice of torch's is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from unrolled.held_forward.operations.operands import holds_numbers, is_parameter
from unrolled.held_forward.operations.operation_mode import OperationMode
from unrolled.held_forward.operations.operation_names import name_of
from unrolled.held_forward.operations.python_values import TAKES_OUT, taken_out_error
from unrolled.held_forward.outside.taken_places import CodePlace, TakenPlaces, place_of_call
from unrolled.held_forward.rules.scripted import python_function
from unrolled.model_runs.determinism import agree
from unrolled.model_runs.preserve_model import end_run

__all__ = ["refuse_read_numbers"]

_MOVES = ((0.3, 0.0), (1.5, 1.0))
"""Factor and shift away from zero of each further run: smaller numbers and larger ones, all of the sign that they had.

A norm stays a norm, of which a logarithm may be taken, and a loop over Python's numbers ends as it did.
"""
_KEPT = (1.0, 0.0)
_AS_IT_IS = 2
"""Runs with the same numbers, where an output differs by no more than rounding: a kernel may add up in any order."""
_LOOP = 1000
"""A further run that takes so many numbers more than the held one is in a loop that waits for one of them."""


def refuse_read_numbers(
    taken: TakenPlaces, run: Callable[[], Sequence[Tensor]], expected: Sequence[Tensor], unread: set[CodePlace]
) -> None:
    """Refuse a model whose output reads numbers that it takes out of torch.

    Args:
        taken: Where a held run gave Python numbers.
        run: Runs the model as it is, and returns what is explained.
        expected: What it returns.
        unread: The places of which an earlier held run of the model has shown that no output reads their numbers; gets
            those of this one.

    Raises:
        UnsupportedOperationError: If the output is another one with other numbers, or if the model fails with all of
            them; one that fails with some has checked its numbers.
    """
    if taken.valued.keys() <= unread:
        return
    name = next(iter(taken.valued.values()))

    def further(move: tuple[float, float]) -> Sequence[Tensor]:
        with torch.no_grad(), _Moved(taken, *move):
            return run()

    same, failures = [expected], []
    for move in _MOVES:
        try:
            found = further(move)
        except (Exception, SystemExit) as error:  # the model's own
            if not isinstance(error, Exception):
                end_run()
            failures.append(error)
            continue
        if not agree(expected, found) or _differs(found, same, partial(further, _KEPT)):
            raise taken_out_error(name)
    if len(failures) == len(_MOVES):
        raise taken_out_error(name) from failures[0]
    unread.update(taken.valued)


def _differs(found: Sequence[Tensor], same: list[Sequence[Tensor]], run: Callable[[], Sequence[Tensor]]) -> bool:
    """Tell whether an output is none of those of runs with the same numbers, if two of these are equal to each other.

    So little may be read that it is as small as rounding. ``same`` gets further runs where it is asked for them.
    """
    while not any(_equal(found, each) for each in same):
        if len(same) > _AS_IT_IS:
            return _equal(*same[-2:])
        same.append(run())
    return False


def _equal(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    return len(one) == len(other) and all(map(torch.equal, one, other))


class _Moved(OperationMode):
    """Gives Python other numbers than tensors hold; those stay that carry no value, as of a parameter or a buffer.

    A scripted function takes numbers where no mode meets it, so the Python function runs that it was made of, as in a
    held run.
    """

    def __init__(self, taken: TakenPlaces, factor: float, shift: float) -> None:
        super().__init__()
        self.taken, self.factor, self.shift = taken, factor, shift
        self.left = taken.count + _LOOP

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        name = name_of(func).name
        if name == "scripted_function" and (original := python_function(args[0])) is not None:
            with self:
                return original(*args[1:], **options)
        if name in TAKES_OUT:
            first = args[0]
            numbers = holds_numbers(first) and not is_parameter(first)
            if numbers and not self.taken.without_value(place_of_call()):
                self.left -= 1
                if self.left < 0:
                    raise RuntimeError("a loop over numbers that are taken out of torch does not end with others")
                args = (self._other(first.detach()), *args[1:])
        return func(*args, **options)

    def _other(self, numbers: Tensor) -> Tensor:
        """Return other numbers of the same signs; equal ones stay equal.

        No statistic stays that neither scale nor shift changes.
        """
        if (self.factor, self.shift) == _KEPT:
            return numbers
        wide = numbers.float() if numbers.dtype.itemsize < torch.float32.itemsize else numbers
        waves = 0.25 * torch.sin(9 * torch.log1p(wide.abs()))
        moved = wide * (self.factor + waves) + torch.where(wide < 0, -self.shift, self.shift)
        return torch.where(torch.isfinite(wide), moved, wide).to(numbers.dtype)
