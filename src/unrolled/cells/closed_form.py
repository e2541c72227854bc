r"""Cells whose Jacobian has a closed form: element-wise functions of linear products.

    z^x = W x + b,   z^h = U h + b',   s_t = φ(z^x, z^h, carried),   φ element-wise

so that ∂s_t/∂s_{t-1} = diag(a) + Σ_k diag(b_k) U_k, with a and b_k partial derivatives of φ. A cell of this family
defines φ (:meth:`ClosedCell.elementwise`) and names the diagonals a and b_k. The products, the loop over a sequence,
the ray and the operators are the same for all of them; see also closed_run.py.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unrolled.cells.base import Cell, checked_size
from unrolled.cells.capabilities import Point
from unrolled.cells.closed_run import ClosedRun
from unrolled.errors import ShapeError, UsageError
from unrolled.held_forward.increments.increments import Increments, SecantIncrements, ShareIncrements
from unrolled.held_forward.step_operator import diagonals_by_increments
from unrolled.linalg.quadrature import Named
from unrolled.linalg.structured import Term, diagonals_by_reverse_mode

__all__ = ["ClosedCell"]

_TORCH_WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")


class ClosedCell(Cell):
    """A cell of shared weights and an element-wise function φ.

    Args:
        input_size: Length e of the input vector x_t.
        hidden_size: Number of units d.
        bias: Whether b and b' exist.
        proj_size: Length of the projected hidden output; 0 for no projection.

    Raises:
        UsageError: If a size is not a positive integer, or ``proj_size`` is not smaller than ``hidden_size``.
    """

    torch_type: ClassVar[type[nn.RNNBase] | None] = None
    """The module of torch.nn that computes the same function."""
    products: ClassVar[tuple[int, int]]
    """(K', K): how many products of the input and of the hidden state there are."""
    parts: ClassVar[tuple[str, ...]] = ("hidden",)
    """The parts of the state: ("hidden",), or ("cell", "hidden") where a cell is carried beside the hidden output."""
    carry: ClassVar[tuple[Term, ...]] = ()
    """The summands diag(a) ⊙ carried."""
    recurrent_terms: ClassVar[tuple[Term, ...]]
    """The summands diag(b) U_k."""
    input_terms: ClassVar[tuple[Term, ...]]
    """The summands diag(b) W_k of the Jacobian with respect to the input."""
    mix: ClassVar[str | None] = None
    """The diagonal that multiplies the cell part's image in the hidden part; see :meth:`factored_slopes`."""

    weight_hr: nn.Parameter | None
    bias_ih: nn.Parameter | None
    bias_hh: nn.Parameter | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, proj_size: int = 0) -> None:
        carries_cell, hidden_size = len(self.parts) == 2, checked_size("hidden_size", hidden_size)
        if proj_size and not carries_cell:
            raise UsageError(f"proj_size is {proj_size}; expected 0: a {self.name} cell carries its output itself")
        proj_size = checked_size("proj_size", proj_size, least=0)
        if proj_size >= hidden_size:
            raise UsageError(f"proj_size is {proj_size}; expected 0, or less than hidden_size, {hidden_size}")
        output = proj_size or hidden_size
        super().__init__(input_size, hidden_size, state_size=carries_cell * hidden_size + output, output_size=output)
        input_rows, hidden_rows = (count * hidden_size for count in self.products)
        self.weight_ih = nn.Parameter(torch.empty(input_rows, input_size))
        self.weight_hh = nn.Parameter(torch.empty(hidden_rows, output))
        self.register_parameter("weight_hr", nn.Parameter(torch.empty(proj_size, hidden_size)) if proj_size else None)
        self.register_parameter("bias_ih", nn.Parameter(torch.empty(input_rows)) if bias else None)
        self.register_parameter("bias_hh", nn.Parameter(torch.empty(hidden_rows)) if bias else None)
        self.reset_parameters()

    @classmethod
    def from_weights(cls, weights: Mapping[str, Tensor | None]) -> Self:
        """Build a cell that shares existing weights, named and laid out as in torch.nn, without gradients.

        Raises:
            ShapeError: If the weights are not those of one cell of this kind.
        """
        weight_ih, projection = weights.get("weight_ih"), weights.get("weight_hr")
        if weight_ih is None or weight_ih.dim() != 2:
            found = None if weight_ih is None else tuple(weight_ih.shape)
            raise ShapeError(f"weight_ih of a {cls.name} cell has shape {found}; expected (rows, input)")
        with torch.device("meta"):
            cell = cls(
                weight_ih.shape[1],
                weight_ih.shape[0] // cls.products[0],
                bias=any(weights.get(name) is not None for name in ("bias_ih", "bias_hh")),
                proj_size=0 if projection is None else projection.shape[0],
            )
        for name, empty in list(cell.named_parameters()):
            given = weights.get(name)
            if given is None or given.shape != empty.shape:
                found = None if given is None else tuple(given.shape)
                raise ShapeError(f"{name} of a {cls.name} cell has shape {found}; expected {tuple(empty.shape)}")
            setattr(cell, name, nn.Parameter(given.detach(), requires_grad=False))
        return cell

    @classmethod
    def from_torch(cls, rnn: nn.RNNBase, layer: int, reverse: bool, dtype: torch.dtype) -> Self:
        """Build a cell from one layer and direction of a torch.nn module; it shares weights of the same type."""
        suffix = f"_l{layer}" + ("_reverse" if reverse else "")
        names = [name for name in _TORCH_WEIGHTS if hasattr(rnn, name + suffix)]
        return cls.from_weights({name: getattr(rnn, name + suffix).to(dtype) for name in names}).copy_options(rnn)

    def copy_options(self, rnn: nn.RNNBase) -> Self:
        """Copy the settings of a torch.nn module that are not weights; return the cell itself."""
        return self

    @abstractmethod
    def elementwise(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute φ: the parts of the new state before any projection, each (…, d).

        Args:
            from_input: z^x, shape (…, K'·d).
            from_hidden: z^h, shape (…, K·d).
            carried: The first part of the previous state, shape (…, d).
        """

    def activations(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Return nothing: the activations are not computed apart; a cell that does is an ``ActivatedCell``."""
        return {}

    def parts_at(self, point: Point) -> tuple[Tensor, ...]:
        """Compute φ at a point."""
        return self.elementwise(*point)

    def slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Compute every diagonal of the Jacobian at one point, by name, each (…, d).

        The default differentiates φ in reverse mode. A cell may override it with formulas, which are faster.
        """
        point, terms = (from_input, from_hidden, carried), (self.input_terms, self.recurrent_terms, self.carry)
        return diagonals_by_reverse_mode(self.elementwise, point, terms, self.parts, self.hidden_size)

    def secant_slopes(self, origin: Point, end: Point) -> Named:
        """Compute the diagonals of the secant from ``origin`` to ``end``, by name, each (…, d).

        An activation has the slope (φ(z) - φ(z₀))/(z - z₀); a factor of a product is the mean of its value with and
        without the state. The default runs φ on increments. A cell may override it with formulas, which are faster.
        """
        return self._by_increments(SecantIncrements(), origin, end)

    def share_slopes(self, end: Point, share: float) -> Named:
        """Compute the diagonals of the operator whose lines begin at zero, by name, each (…, d)."""
        x, h, carried = map(torch.zeros_like, end)
        return self._by_increments(ShareIncrements(share), Point(x, h, carried), end)

    def _by_increments(self, mode: Increments, origin: Point, end: Point) -> Named:
        terms = (self.input_terms, self.recurrent_terms, self.carry)
        return diagonals_by_increments(
            mode, self.elementwise, tuple(origin), tuple(end), terms, self.parts, self.hidden_size
        )

    def factored_slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Compute the Jacobian at one point with fewer diagonals, where ``mix`` saves some of them.

        The mean of such products is not the product of means, so averages use :meth:`slopes`.
        """
        return self.slopes(from_input, from_hidden, carried)

    @property
    def recurrent_weight(self) -> Tensor:
        """The stacked U_k, shape (K·d, output)."""
        return self.weight_hh

    @property
    def recurrent_bias(self) -> Tensor | None:
        """b', shape (K·d,)."""
        return self.bias_hh

    def join_parts(self, parts: tuple[Tensor, ...]) -> Tensor:
        """Concatenate the parts of a state, the hidden part projected: shape (…, state)."""
        last = parts[-1] if self.weight_hr is None else F.linear(parts[-1], self.weight_hr)
        return last if len(parts) == 1 else torch.cat((*parts[:-1], last), dim=-1)

    def next_state(self, from_input: Tensor, state: Tensor) -> Tensor:
        """Compute s_t from the products of the input and s_{t-1}."""
        from_hidden = F.linear(self.hidden(state), self.recurrent_weight, self.recurrent_bias)
        return self.join_parts(self.elementwise(from_input, from_hidden, state[..., : self.hidden_size]))

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Compute s_t from x_t and s_{t-1}."""
        return self.next_state(F.linear(inputs, self.weight_ih, self.bias_ih), state)

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence; one matrix product serves all inputs."""
        states = [self.checked_initial_state(inputs, state)]
        for from_input in F.linear(inputs, self.weight_ih, self.bias_ih):
            states.append(self.next_state(from_input, states[-1]))
        return torch.stack(states)

    def run(self, inputs: Tensor, state: Tensor | None = None) -> ClosedRun:
        """Run the cell over a sequence, and keep the products of every step."""
        first = self.checked_initial_state(inputs, state)
        from_input = F.linear(inputs, self.weight_ih, self.bias_ih)
        images, products, carried, values = [first], [], [first[:, : self.hidden_size]], []
        for x in from_input:
            products.append(F.linear(self.hidden(images[-1]), self.recurrent_weight, self.recurrent_bias))
            values.append(self.activations(x, products[-1], carried[-1]))
            parts = self.parts_at(Point(x, products[-1], carried[-1], values[-1]))
            images.append(self.join_parts(parts))
            carried.append(parts[0] if len(parts) == 2 else images[-1])
        return ClosedRun(
            self,
            inputs,
            first,
            torch.stack(images[1:]),
            from_input,
            torch.stack(products),
            torch.stack(carried[:-1]),
            {name: torch.stack([each[name] for each in values]) for name in values[0]},
        )

    def run_from_outputs(self, inputs: Tensor, outputs: Tensor, state: Tensor | None = None) -> ClosedRun:
        """Reconstruct a run from its hidden outputs: the matrix products of all steps at once."""
        first = self.initial_state(inputs.shape[1]) if state is None else state
        before = torch.cat((self.hidden(first)[None], outputs[:-1]))
        from_input = F.linear(inputs, self.weight_ih, self.bias_ih)
        from_hidden = F.linear(before, self.recurrent_weight, self.recurrent_bias)
        if len(self.parts) == 1:
            carried, values = before, self.activations(from_input, from_hidden, before)
        else:
            carried, values = self.carry_through(from_input, from_hidden, first[:, : self.hidden_size])
        image = self.join_parts(self.parts_at(Point(from_input, from_hidden, carried, values)))
        return ClosedRun(self, inputs, first, image, from_input, from_hidden, carried, values)

    def carry_through(self, from_input: Tensor, from_hidden: Tensor, first: Tensor) -> tuple[Tensor, Named]:
        """Return the carried part of s_0 … s_{T-1}, and the activations of all steps where the cell has them apart.

        Args:
            from_input: W x_t + b, shape (time, batch, K'·d).
            from_hidden: U h_{t-1} + b', shape (time, batch, K·d).
            first: The carried part of s_0, shape (batch, d).
        """
        carried = [first]
        for x, h in zip(from_input[:-1], from_hidden[:-1], strict=True):
            carried.append(self.elementwise(x, h, carried[-1])[0])
        whole = torch.stack(carried)
        return whole, self.activations(from_input, from_hidden, whole)
