"""A step that a user wrote, as a cell: its module is called on blocks, whatever arguments it takes and returns.

The state is every tensor that a call returns, side by side. A call reads those parts of it that are arguments of the
next call; its other tensors are the input. A module needs no formula: forward mode differentiates its operations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from unrolled.cells.base import Cell
from unrolled.decomposition.own_steps.step_calls import MOST_OF_ERROR, StepCall, real_form
from unrolled.errors import first_line
from unrolled.model_runs.nested_tensors import Place, leaves

__all__ = ["OwnCell"]


class OwnCell(Cell):
    """One call of a step as a cell.

    Args:
        call: The call.
        function: The step, with the weights that the module has now.
        inputs: Place and shape, without the batch, of each tensor of the input.
        parts: Place among the results, shape, without the batch, and axis of the batch, of each part of the state.
        read: For each part, the place among the arguments where it is read; None if it is not.
        others: The call's other tensors.
        batch: Number of rows.
        alone: Whether the step takes one example, without an axis of examples.
        shared: Places of those others that all rows read as they are.

    A step that mixes the rows of a batch is still a function of one example: ``rows_apart`` runs it row by row.
    """

    name: ClassVar[str] = "own"

    def __init__(
        self,
        call: StepCall,
        function: Callable[..., Any],
        inputs: Sequence[tuple[Place, torch.Size]],
        parts: Sequence[tuple[Place, torch.Size, int]],
        read: Sequence[Place | None],
        others: Mapping[Place, Tensor],
        batch: int,
        alone: bool = False,
        shared: Collection[Place] = (),
    ) -> None:
        part_sizes = [shape.numel() for _, shape, _ in parts]
        super().__init__(max(1, sum(shape.numel() for _, shape in inputs)), sum(part_sizes))
        self.call, self.function, self.batch, self.alone = call, function, batch, alone
        self.inputs, self.parts, self.read, self.others = inputs, parts, read, others
        self.part_sizes, self.rows_apart, self.shared = part_sizes, alone, shared

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Run the module on all leading axes as one batch, or row by row if it takes or keeps no batch."""
        lead = inputs.shape[:-1]
        rows = lead.numel()
        x, s = inputs.reshape(rows, self.input_size), state.reshape(rows, self.state_size)
        try:
            if self.rows_apart:
                axes = () if self.alone else (1,)
                found = torch.cat([self._run(x[row : row + 1], s[row : row + 1], axes) for row in range(rows)])
            else:
                found = self._run(x, s, (rows,))
        except (RuntimeError, NotImplementedError) as error:
            if not torch._C._are_functorch_transforms_active():
                raise
            raise self.call.refusal(
                "torch does not differentiate it, as every expansion but secant and shares does "
                f"({first_line(error)[:MOST_OF_ERROR]})"
            ) from error
        return found.reshape(*lead, self.state_size)

    def _run(self, x: Tensor, s: Tensor, axes: tuple[int, ...]) -> Tensor:
        """Run the module once, on rows that stand along these axes of its tensors."""
        rows = len(x)
        tensors = {
            place: each if place in self.shared else self._repeated(each, rows) for place, each in self.others.items()
        }
        first = 0
        for place, shape in self.inputs:
            tensors[place] = x[:, first : first + shape.numel()].reshape(*axes, *shape)
            first += shape.numel()
        tensors |= {place: each.clone() for place, each in tensors.items() if place in self.call.written}
        first = 0
        for argument, (_, shape, axis) in zip(self.read, self.parts, strict=True):
            if argument is not None:
                part = s[:, first : first + shape.numel()].reshape(*axes, *shape).movedim(0, axis)
                tensors[argument] = part.clone()  # torch.view_as_complex needs an even offset in memory
            first += shape.numel()
        found = {place: real_form(each) for place, each in leaves(self.call.run(tensors, self.function))}
        parts = [
            _fresh_gradient(found[place]).movedim(axis, 0).reshape(rows, shape.numel())
            for place, shape, axis in self.parts
        ]
        # an empty part of the input: the result is a function of it, also where the step reads neither
        return torch.cat([*parts, x[:, :0]], dim=-1)

    def _repeated(self, each: Tensor, rows: int) -> Tensor:
        """Repeat what a call reads for each row, such as a mask, for more rows."""
        if rows == self.batch or each.dim() == 0 or each.shape[0] != self.batch or isinstance(each, nn.Parameter):
            return each
        return each.expand(rows // self.batch, *each.shape).reshape(rows, *each.shape[1:])


def _fresh_gradient(each: Tensor) -> Tensor:
    """Return a tensor whose gradient has memory of its own: torch.view_as_real needs one at an even offset."""
    in_pairs = each.shape[-1:] == (2,) or (each.numel() % 2 == 0 and torch._C._are_functorch_transforms_active())
    return 1.0 * each if in_pairs else each
