"""A cell: one step s_t = f(x_t, s_{t-1}) over one flat state.

An LSTM's state is [c; h] side by side, an mmRNN's is [k; h]: no caller needs to know whether a state has parts.
:meth:`Cell.hidden` returns the part that the next layer reads.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, SupportsFloat

import torch
from torch import Tensor, nn

from unrolled.cells.ray import MatrixFreeRay, Ray
from unrolled.errors import ShapeError, UsageError
from unrolled.whole_number import whole_number

__all__ = ["Cell", "LayerRun", "checked_dropout", "checked_size"]


def checked_size(label: str, value: object, least: int = 1) -> int:
    """Return a size as an int.

    Args:
        label: Name of the size in the error message.
        value: Any whole number. True and False are refused: they belong to a flag.
        least: Smallest allowed value, 1 or 0.

    Raises:
        UsageError: If the value is not a whole number, or too small.
    """
    size = None if isinstance(value, bool) else whole_number(value)
    if size is None or size < least:
        raise UsageError(f"{label} is {value!r}; expected {'0 or ' if least == 0 else ''}a positive integer")
    return size


def checked_dropout(value: object) -> float:
    """Return a share of numbers to drop as a float.

    Raises:
        UsageError: If the value is no number, or outside [0, 1).
    """
    share = float(value) if isinstance(value, SupportsFloat) and not isinstance(value, bool) else math.nan
    if not 0 <= share < 1:
        raise UsageError(f"dropout is {value!r}; expected a number from 0 to below 1")
    return share


class Cell(nn.Module, ABC):
    """A recurrent step.

    A subclass defines ``name`` and :meth:`step`; the hidden output is the last part of its state. That is enough to
    train the cell and to decompose it: forward-mode differentiation applies its Jacobian. A cell whose Jacobian has a
    closed form derives from :class:`~unrolled.cells.closed_form.ClosedCell`.

    Args:
        input_size: Length e of the input vector x_t.
        hidden_size: Number of units d.
        state_size: Length of the flat state; by default the output size.
        output_size: Length of the hidden output; by default d.

    Raises:
        UsageError: If a size is not a positive integer.
    """

    name: ClassVar[str]
    linear: ClassVar[bool] = False
    """Whether f(x, ·) is affine in the state. Every linearisation of such a cell is exact."""
    rows_apart: bool = False
    """Whether :meth:`step` runs the rows one after another, so that each takes time of its own."""

    def __init__(
        self, input_size: int, hidden_size: int, state_size: int | None = None, output_size: int | None = None
    ) -> None:
        super().__init__()
        self.input_size = checked_size("input_size", input_size)
        self.hidden_size = checked_size("hidden_size", hidden_size)
        self.output_size = self.hidden_size if output_size is None else checked_size("output_size", output_size)
        self.state_size = self.output_size if state_size is None else checked_size("state_size", state_size)

    def reset_parameters(self) -> None:
        """Draw every parameter from U(-1/√d, 1/√d), as torch.nn does."""
        bound = self.hidden_size**-0.5
        for parameter in self.parameters():
            if not parameter.is_meta:  # a parameter that another one replaces
                nn.init.uniform_(parameter, -bound, bound)

    @abstractmethod
    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Compute s_t, shape (…, state), from x_t, shape (…, input), and s_{t-1}, for any leading axes."""

    def hidden(self, state: Tensor) -> Tensor:
        """Return the hidden output h: the last ``output_size`` entries of the state."""
        return state[..., self.state_size - self.output_size :]

    def initial_state(self, batch: int) -> Tensor:
        """Return the state before the first token: zeros, shape (batch, state).

        It has the type and the device of the parameters, or torch's default type for a cell without any.
        """
        held = itertools.chain(self.parameters(), filter(torch.is_floating_point, self.buffers()))
        reference = next(held, torch.empty(0))
        return torch.zeros(batch, self.state_size, dtype=reference.dtype, device=reference.device)

    def checked_initial_state(self, inputs: Tensor, state: Tensor | None) -> Tensor:
        """Check the shapes of inputs and initial state; return the state, or the cell's own where it is None.

        Raises:
            ShapeError: If the inputs or the state do not fit the cell.
        """
        if inputs.dim() != 3 or inputs.shape[-1] != self.input_size:
            raise ShapeError(f"inputs have shape {tuple(inputs.shape)}; expected (time, batch, {self.input_size})")
        first = self.initial_state(inputs.shape[1]) if state is None else state
        if first.shape != (inputs.shape[1], self.state_size):
            raise ShapeError(
                f"the state has shape {tuple(first.shape)}; expected ({inputs.shape[1]}, {self.state_size})"
            )
        return first

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence.

        Args:
            inputs: x_1 … x_T, shape (time, batch, input).
            state: s_0, shape (batch, state); by default :meth:`initial_state`.

        Returns:
            s_0 … s_T, shape (time + 1, batch, state).
        """
        current = self.checked_initial_state(inputs, state)
        states = [current]
        for x in inputs:
            current = self.step(x, current)
            states.append(current)
        return torch.stack(states)

    def outputs(self, inputs: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run the cell over a sequence; return h_1 … h_T, shape (time, batch, output), and s_T only."""
        states = self.unroll(inputs, state)[1:]
        return self.hidden(states), states[-1]

    def run(self, inputs: Tensor, state: Tensor | None = None) -> LayerRun:
        """Run the cell over a sequence and keep what a decomposition needs."""
        states = self.unroll(inputs, state)
        return LayerRun(self, inputs, states[0], states[1:])

    def run_from_outputs(self, inputs: Tensor, outputs: Tensor, state: Tensor | None = None) -> LayerRun:
        """Reconstruct a run from its hidden outputs h_1 … h_T.

        The states do not follow from the outputs in general, so this method runs the cell again. Compare the image of
        the result with the outputs to check that this cell is the network that gave them.
        """
        return self.run(inputs, state)


@dataclass(frozen=True)
class LayerRun:
    """One layer of a network, run over a batch of sequences."""

    cell: Cell
    inputs: Tensor
    """x_1 … x_T, shape (time, batch, input)."""
    initial: Tensor
    """s_0, shape (batch, state)."""
    image: Tensor
    """f(x_t, s_{t-1}) for every step, shape (time, batch, state): s_t, up to rounding."""

    @property
    def states(self) -> Tensor:
        """s_0 … s_T, shape (time + 1, batch, state)."""
        return torch.cat((self.initial[None], self.image))

    def ray(self, origin: Tensor) -> Ray[Any]:
        """Return the line from (origin, 0) to (x_t, s_{t-1}) for every step, along which the cell is linearised.

        Args:
            origin: Inputs at α = 0, shape (time, batch, input); pass ``inputs`` itself where they do not move.
        """
        return MatrixFreeRay(self.cell.step, origin, self.inputs, self.states, not self.cell.rows_apart)
