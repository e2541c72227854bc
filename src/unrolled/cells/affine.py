r"""Cells that are affine in their state: s_t = g(x_t) + A(x_t) s_{t-1}.

The state of such a cell is the exact sum of its n-grams A(x_t) … A(x_{i+1}) g(x_i), and each n-gram depends on its own
tokens only. All expansions coincide; only ``activation`` differs, because it linearises g(x) and A(x) as well. A cell
of this family defines g and the diagonals of A as functions of z^x = W x + b. Its parameters have the layout of
torch.nn, so that trained weights fit, even where A leaves out some of the products.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from unrolled.cells.capabilities import GatedCell
from unrolled.cells.closed_form import ClosedCell
from unrolled.errors import UsageError
from unrolled.kernels.affine_scan import AffineKernel, Pattern
from unrolled.kernels.base import run_kernel
from unrolled.linalg.quadrature import Named
from unrolled.linalg.structured import Term, diagonals_by_reverse_mode

__all__ = ["AffineCell", "AffineMap"]


class AffineMap(NamedTuple):
    """What a token does to the state: s -> g + A s."""

    offset: tuple[Tensor, ...]
    """The parts of g, each (…, d)."""
    diagonals: Named
    """The diagonals of A by name, each (…, d)."""


class AffineCell(ClosedCell, GatedCell):
    """A cell whose new state is an affine function of the old one.

    Args:
        input_size: Length e of the input vector x_t.
        hidden_size: Number of units d.
        bias: Whether b and b' exist.
        proj_size: Must be 0: an affine cell has no projection.

    Raises:
        UsageError: If ``proj_size`` is not 0.
    """

    linear = True
    used: ClassVar[tuple[int, ...]]
    """Which of the stacked U_k A uses; ``Term.product`` counts these, in this order."""
    input_terms: ClassVar[tuple[Term, ...]]

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, proj_size: int = 0) -> None:
        if proj_size:
            raise UsageError(f"proj_size is {proj_size}; expected 0: a {self.name} cell has no projection")
        super().__init__(input_size, hidden_size, bias)
        self.pattern = Pattern(self.parts, self.carry, self.recurrent_terms, self.hidden_size)

    @property
    def diagonal_names(self) -> tuple[str, ...]:
        """The names of the diagonals of A."""
        return tuple(term.diagonal for term in (*self.carry, *self.recurrent_terms))

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Name the diagonals of the input: one for each part and product."""
        super().__init_subclass__(**kwargs)
        if hasattr(cls, "products"):
            cls.input_terms = tuple(
                Term(part, f"{part}_from_input_{k}", k) for part in cls.parts for k in range(cls.products[0])
            )

    @abstractmethod
    def affine_map(self, from_input: Tensor) -> AffineMap:
        """Compute g and the diagonals of A from z^x = W x + b, shape (…, K'·d)."""

    def token_maps(self, inputs: Tensor) -> AffineMap:
        """Compute g and the diagonals of A for input vectors, shape (…, input)."""
        return self.affine_map(F.linear(inputs, self.weight_ih, self.bias_ih))

    def apply_linear(self, diagonals: Mapping[str, Tensor], states: Tensor) -> Tensor:
        """Compute A s for states of a shape to which the diagonals of A broadcast, (…, state)."""
        products = F.linear(self.hidden(states), self.recurrent_weight)
        nothing = [states.new_zeros(())] * len(self.parts)
        parts = self.pattern.apply(nothing, diagonals, products, states[..., : self.hidden_size])
        return torch.cat(parts, dim=-1)

    def with_both_biases(self, from_input: Tensor) -> Tensor:
        """Compute W x + b + b': here the bias of the recurrent product acts on the input as well."""
        return from_input if self.bias_hh is None else from_input + self.bias_hh

    @property
    def recurrent_weight(self) -> Tensor:
        """The stacked U_k that A uses, shape (K·d, d)."""
        blocks = self.weight_hh.unflatten(0, (-1, self.hidden_size))
        if len(self.used) == len(blocks):
            return self.weight_hh
        if len(self.used) == self.used[-1] - self.used[0] + 1:
            return blocks[self.used[0] : self.used[-1] + 1].flatten(0, 1)
        return torch.cat([blocks[k] for k in self.used])

    @property
    def recurrent_bias(self) -> None:
        """None: A acts on the state alone."""

    def unconfined(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute the parts of g + A s, without the cut-off."""
        return self.pattern.apply(*self.affine_map(from_input), from_hidden, carried)

    def elementwise(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute the parts of g + A s; ``from_hidden`` holds the products that A uses, without a bias."""
        return self.pattern.clamp_parts(self.unconfined(from_input, from_hidden, carried))

    def slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Compute the diagonals of A, and those of the input in reverse mode."""
        point = (from_input, from_hidden, carried)
        of_input = diagonals_by_reverse_mode(self.unconfined, point, (self.input_terms,), self.parts, self.hidden_size)
        return self.affine_map(from_input).diagonals | of_input

    def fixed_gate_slopes(self, from_input: Tensor, from_hidden: Tensor, carried: Tensor) -> Named:
        """Return the diagonals of A itself: the token is the only gate."""
        return self.slopes(from_input, from_hidden, carried)

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence; the map of every token is computed before the loop."""
        return self.scan(inputs, self.checked_initial_state(inputs, state), self.affine_map)

    def scan(self, inputs: Tensor, state: Tensor, affine_map: Callable[[Tensor], AffineMap]) -> Tensor:
        """Run the recurrence with a kernel: s_0 … s_T, shape (time + 1, batch, state).

        Args:
            inputs: x_1 … x_T, shape (time, batch, input).
            state: s_0, shape (batch, state).
            affine_map: The cell's own method, or a function that returns another g.
        """
        shared = ("weight_ih", "weight_hh", "bias_ih")
        read = {name: parameter for name, parameter in self.named_parameters() if name not in shared}
        module = _MapModule(self, affine_map)

        def with_read(from_input: Tensor, *values: Tensor) -> AffineMap:
            if all(value is own for value, own in zip(values, read.values(), strict=True)):
                return affine_map(from_input)
            # the kernel passes its own copies of the parameters: autograd then tells it their gradients
            named = {f"cell.{name}": value for name, value in zip(read, values, strict=True)}
            return functional_call(module, named, (from_input,))

        from_input = F.linear(inputs, self.weight_ih, self.bias_ih)
        kernel = AffineKernel(self.pattern, with_read)
        return run_kernel(kernel, from_input, state, self.recurrent_weight, *read.values())


class _MapModule(nn.Module):
    """An affine map as a module, so that ``functional_call`` can replace the cell's parameters."""

    def __init__(self, cell: AffineCell, affine_map: Callable[[Tensor], AffineMap]) -> None:
        super().__init__()
        self.cell, self.affine_map = cell, affine_map

    def forward(self, from_input: Tensor) -> AffineMap:
        return self.affine_map(from_input)
