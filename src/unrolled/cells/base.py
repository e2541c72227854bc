r"""A cell: one step s_t = f(x_t, s_{t-1}) over one flat state.

An LSTM's state is [c; h] side by side, an mmRNN's is [h; k], a stack's is all its layers': nothing in this house
asks whether a state is a tuple. :meth:`Cell.hidden` picks what the next layer reads.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from unrolled.cells.layer_run import LayerRun
from unrolled.errors import ShapeError
from unrolled.sizes import checked_size

__all__ = ["Cell"]


class Cell(nn.Module, ABC):
    """A recurrent step with its sizes.

    A subclass states ``name``, computes :meth:`step` on tensors with any leading axes, and says which part of the
    state is its hidden output. That is enough to train it and to open it: its Jacobian is then applied
    by forward-mode differentiation. A cell whose Jacobian has a closed form
    derives from :class:`~unrolled.cells.closed_form.ClosedCell`.

    Args:
        input_size: e, the length of x_t.
        hidden_size: d, the number of units.
        state_size: the length of the flat state.
        output_size: the length of the hidden output; d unless projected.

    Raises:
        UsageError: when a size is not a positive integer.
    """

    name: ClassVar[str]
    linear: ClassVar[bool] = False
    """Whether f(x, ·) is affine in the state: then every linearisation of it is exact, zero among them."""

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
            nn.init.uniform_(parameter, -bound, bound)

    @abstractmethod
    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Compute s_t from x_t and s_{t-1}.

        Args:
            inputs: x_t, shape (…, input).
            state: s_{t-1}, shape (…, state).

        Returns:
            s_t, shape (…, state).
        """

    def hidden(self, state: Tensor) -> Tensor:
        """Pick the hidden output h out of the state: its last ``output_size`` entries.

        Args:
            state: shape (…, state).

        Returns:
            h, shape (…, output).
        """
        return state[..., self.state_size - self.output_size :]

    def initial_state(self, batch: int) -> Tensor:
        """Give the state before the first token.

        Args:
            batch: how many sequences.

        Returns:
            Zeros, shape (batch, state), of the kind that the parameters are; of torch's default where a cell
            holds no number at all.
        """
        held = itertools.chain(self.parameters(), filter(torch.is_floating_point, self.buffers()))
        reference = next(held, torch.empty(0))
        return torch.zeros(batch, self.state_size, dtype=reference.dtype, device=reference.device)

    def checked_start(self, inputs: Tensor, state: Tensor | None) -> Tensor:
        """Give the state that a sequence begins in, once it and the inputs are known to fit the cell.

        Args:
            inputs: x_1 … x_T, shape (time, batch, input).
            state: s_0, shape (batch, state); None for the cell's own.

        Returns:
            s_0.

        Raises:
            ShapeError: when the inputs or the state do not fit the cell.
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
            state: s_0, shape (batch, state); zeros, or the cell's own, when left out.

        Returns:
            s_0 … s_T, shape (time + 1, batch, state).
        """
        current = self.checked_start(inputs, state)
        states = [current]
        for x in inputs:
            current = self.step(x, current)
            states.append(current)
        return torch.stack(states)

    def outputs(self, inputs: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run the cell over a sequence of which only the hidden outputs and the last state are wanted.

        Args:
            inputs: x_1 … x_T, shape (time, batch, input).
            state: s_0, shape (batch, state); zeros, or the cell's own, when left out.

        Returns:
            h_1 … h_T, shape (time, batch, output), and s_T, shape (batch, state).
        """
        states = self.unroll(inputs, state)[1:]
        return self.hidden(states), states[-1]

    def run(self, inputs: Tensor, state: Tensor | None = None) -> LayerRun:
        """Run the cell over a sequence and keep what is needed to open it.

        Args:
            inputs: x_1 … x_T, shape (time, batch, input).
            state: s_0, shape (batch, state).

        Returns:
            The trace.
        """
        states = self.unroll(inputs, state)
        return LayerRun(self, inputs, states[0], states[1:])

    def follow(self, inputs: Tensor, outputs: Tensor, state: Tensor | None = None) -> LayerRun:
        """Retrace a run whose hidden outputs are known; in general they do not give the states, so it is run again.

        Args:
            inputs: x_1 … x_T, shape (time, batch, input).
            outputs: h_1 … h_T, shape (time, batch, output).
            state: s_0, shape (batch, state).

        Returns:
            The trace; its image, against the outputs, shows whether this cell is the network that gave them.
        """
        return self.run(inputs, state)
