r"""Cells that are affine in their state: s_t = g(x_t) + A(x_t) s_{t-1}.

Such a cell is its own n-gram model: with nothing cut off, its state is the sum of its n-grams
A(x_t) … A(x_{i+1}) g(x_i), each of which knows its own tokens only, so that the expansions zero, operating, path
and gates are one and the same. A member states g and the diagonals of A as functions of z^x = W x + b; A is never
formed. Its parameters are laid out as those of torch.nn, so that trained weights can be taken over and sizes
compared, even where A leaves some of the products out.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from unrolled.cells.affine_ray import AffineRay
from unrolled.cells.closed_form import ClosedCell
from unrolled.cells.closed_form_ray import ClosedRay, ClosedRun
from unrolled.errors import UsageError
from unrolled.kernels.affine_scan import AffineKernel, Pattern
from unrolled.kernels.base import run_kernel
from unrolled.linalg.operators import Structured, Term

__all__ = ["Affine", "AffineCell"]


class Affine(NamedTuple):
    """What a token does to the state: s -> g + A s."""

    offset: tuple[Tensor, ...]
    """The parts of g, each (…, d)."""
    coefficients: tuple[Tensor, ...]
    """The diagonals of A, in the order that ``carry`` and the terms number them, each (…, d)."""


class AffineCell(ClosedCell):
    """A cell whose new state is an affine function of the old one.

    Args:
        input_size: e.
        hidden_size: d.
        bias: whether b and b' exist.
        proj_size: 0; an affine cell has no projection.

    Raises:
        UsageError: when a projection is asked for.
    """

    linear = True
    used: ClassVar[tuple[int, ...]]
    """Which of the stacked U_k stand in A; the terms number these, in this order."""
    input_terms: ClassVar[tuple[Term, ...]]

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, proj_size: int = 0) -> None:
        if proj_size:
            raise UsageError(f"proj_size is {proj_size}; expected 0: a {self.name} cell has no projection")
        super().__init__(input_size, hidden_size, bias)
        self.pattern = Pattern(self.carry, self.recurrent_terms, self.hidden_size)

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Number the input's slopes: behind the diagonals of A, part by part."""
        super().__init_subclass__(**kwargs)
        if hasattr(cls, "recurrent_terms"):
            count = 1 + max(a for a in (*cls.carry, *(t.coefficient for t in cls.recurrent_terms)) if a is not None)
            parts, products = len(cls.carry), cls.products[0]
            cls.input_terms = tuple(
                Term(part, k, count + part * products + k) for part in range(parts) for k in range(products)
            )

    @abstractmethod
    def expand(self, by_input: Tensor) -> Affine:
        """Compute g and the diagonals of A.

        Args:
            by_input: z^x = W x + b, shape (…, K'·d).

        Returns:
            The affine map of each token.
        """

    def read(self, inputs: Tensor) -> Affine:
        """Compute what each token does to the state.

        Args:
            inputs: shape (…, input).

        Returns:
            The affine map of each token.
        """
        return self.expand(F.linear(inputs, self.weight_ih, self.bias_ih))

    def transform(self, coefficients: Sequence[Tensor], states: Tensor) -> Tensor:
        """Apply the linear part: compute A s, one product with the stacked weights for all states.

        Args:
            coefficients: the diagonals of A, each (…, d).
            states: of a shape to which the diagonals broadcast, (…, state).

        Returns:
            The images, the shape of the states.
        """
        products = F.linear(self.hidden(states), self.recurrent)
        nothing = [states.new_zeros(())] * len(self.carry)
        parts = self.pattern.weigh(nothing, coefficients, products, states[..., : self.hidden_size])
        return torch.cat(parts, dim=-1)

    def with_both_biases(self, by_input: Tensor) -> Tensor:
        """Compute W x + b + b', where the bias of the recurrent product acts on the input as well.

        Args:
            by_input: W x + b, shape (…, K·d).

        Returns:
            The same shape.
        """
        return by_input if self.bias_hh is None else by_input + self.bias_hh

    @property
    def recurrent(self) -> Tensor:
        """The stacked U_k that stand in A, shape (K·d, d)."""
        blocks = self.weight_hh.unflatten(0, (-1, self.hidden_size))
        if len(self.used) == len(blocks):
            return self.weight_hh
        if len(self.used) == self.used[-1] - self.used[0] + 1:
            return blocks[self.used[0] : self.used[-1] + 1].flatten(0, 1)
        return torch.cat([blocks[k] for k in self.used])

    def combine(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Compute g + A s; ``by_hidden`` holds the products in use, without a bias."""
        return self.pattern.confine(self.pattern.weigh(*self.expand(by_input), by_hidden, carried))

    def slopes(self, by_input: Tensor, by_hidden: Tensor, carried: Tensor) -> tuple[Tensor, ...]:
        """Give the diagonals of A, and compute the slopes of W x by forward mode.

        Args:
            by_input: z^x, shape (…, K'·d).
            by_hidden: the products in use, shape (…, K·d).
            carried: the first part of the state, shape (…, d).

        Returns:
            The slopes, each (…, d).
        """
        shape = torch.broadcast_shapes(by_input.shape[:-1], carried.shape[:-1])
        by_input = by_input.expand(*shape, -1)
        by_token = []
        for k in range(self.products[0]):
            direction = torch.zeros_like(by_input)
            direction[..., k * self.hidden_size : (k + 1) * self.hidden_size] = 1
            moved = torch.func.jvp(
                lambda z: self.pattern.weigh(*self.expand(z), by_hidden, carried), (by_input,), (direction,)
            )
            by_token.append(moved[1])
        ordered = (moved[part] for part in range(len(self.carry)) for moved in by_token)
        return (*self.expand(by_input).coefficients, *ordered)

    def gates(self, ray: ClosedRay) -> Structured:
        """Give A(x_t) itself: what the token does to the state is all the gating there is."""
        return ray.at(1.0)

    def draw(self, trace: ClosedRun, origin: Tensor) -> AffineRay:
        """Draw the ray, whose products have no bias."""
        return AffineRay(trace, origin)

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Compute g(x) + A(x) s."""
        by_hidden = F.linear(self.hidden(state), self.recurrent)
        by_input = F.linear(inputs, self.weight_ih, self.bias_ih)
        return self.join(self.combine(by_input, by_hidden, state[..., : self.hidden_size]))

    def unroll(self, inputs: Tensor, state: Tensor | None = None) -> Tensor:
        """Run the cell over a sequence: what tokens do is known before the loop."""
        return self.scan(inputs, self.checked_start(inputs, state), self.expand)

    def scan(self, inputs: Tensor, state: Tensor, expand: Callable[[Tensor], Affine]) -> Tensor:
        """Run the recurrence by a kernel.

        Args:
            inputs: x_1 … x_T, shape (time, batch, input).
            state: s_0, shape (batch, state).
            expand: the cell's own, or one that gives another g.

        Returns:
            s_0 … s_T, shape (time + 1, batch, state).
        """
        shared = ("weight_ih", "weight_hh", "bias_ih")
        read = {name: p for name, p in self.named_parameters(recurse=False) if name not in shared}

        expanding = _Expanding(self, expand)

        def with_read(by_input: Tensor, *values: Tensor) -> Affine:
            # the kernel's own copies in the parameters' place: it is told what moves them by autograd
            named = {f"cell.{name}": value for name, value in zip(read, values, strict=True)}
            return functional_call(expanding, named, (by_input,))

        by_input = F.linear(inputs, self.weight_ih, self.bias_ih)
        return run_kernel(AffineKernel(self.pattern, with_read), by_input, state, self.recurrent, *read.values())

    def follow(self, inputs: Tensor, outputs: Tensor, state: Tensor | None = None) -> ClosedRun:
        """Retrace a run from its hidden outputs alone, all steps at once; only the carried part has a loop."""
        first = self.initial_state(inputs.shape[1]) if state is None else state
        by_input = F.linear(inputs, self.weight_ih, self.bias_ih)
        before = torch.cat((self.hidden(first)[None], outputs[:-1]))
        by_hidden = F.linear(before, self.recurrent)
        if len(self.carry) == 1:
            image = self.join(self.combine(by_input, by_hidden, before))
            return ClosedRun(self, inputs, first, image, by_input, by_hidden, before)
        affine = self.expand(by_input)
        carried, images = first[..., : self.hidden_size], []
        cells = []
        for t, products in enumerate(by_hidden):
            cells.append(carried)
            now = Affine(tuple(g[t] for g in affine.offset), tuple(c[t] for c in affine.coefficients))
            parts = self.pattern.confine(self.pattern.weigh(*now, products, carried))
            images.append(self.join(parts))
            carried = parts[0]
        return ClosedRun(self, inputs, first, torch.stack(images), by_input, by_hidden, torch.stack(cells))


class _Expanding(nn.Module):
    def __init__(self, cell: AffineCell, expand: Callable[[Tensor], Affine]) -> None:
        super().__init__()
        self.cell, self.expand = cell, expand

    def forward(self, by_input: Tensor) -> Affine:
        return self.expand(by_input)
