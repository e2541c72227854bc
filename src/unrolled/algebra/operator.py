r"""Linear operators that are applied, never formed.

The Jacobian of a recurrent step is diag(a) + Σ_k diag(b_k) W_k with weights W_k shared by all steps and all
examples. Every rule of :mod:`unrolled.algebra.average` touches the diagonals alone, so the form is closed under all
of them.

Shapes: a block of vectors is (columns, batch, n). The columns come first so that the vectors alive so far are
one contiguous matrix, and so that the coefficients of a step, (batch, d), broadcast over them. Coefficients may have a
leading time axis; :meth:`Operator.at` takes one step out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from unrolled.algebra.average import Rule

__all__ = ["MatrixFree", "Operator", "Structured", "Term"]


class Operator(ABC):
    """The Jacobian of one layer's step: (state, input) -> state, for every step and example."""

    @abstractmethod
    def at(self, time: int) -> Operator:
        """Take the operator of one step out of the whole sequence's."""

    @abstractmethod
    def apply(self, state: Tensor, inputs: Tensor | None = None, out: Tensor | None = None) -> Tensor:
        """Compute A·state + C·inputs.

        Args:
            state: a block of state vectors, shape (columns, batch, state).
            inputs: a block of input vectors, shape (columns, batch, input); None stands for zero.
            out: where to put the images; must not overlap with ``state``.

        Returns:
            The block of images, shape (columns, batch, state).
        """

    @abstractmethod
    def apply_transpose(self, state: Tensor, with_inputs: bool = True) -> tuple[Tensor, Tensor | None]:
        """Compute (Aᵀ·state, Cᵀ·state).

        Args:
            state: a block of covectors, shape (columns, batch, state).
            with_inputs: whether the second is wanted; the lowest layer has no use for it.

        Returns:
            Blocks of shape (columns, batch, state) and, if wanted, (columns, batch, input).
        """


@dataclass(frozen=True)
class Term:
    """One summand diag(b)·W_k of one part of the new state: which part, which product, which coefficient."""

    part: int
    product: int
    coefficient: int


@dataclass(frozen=True)
class Structured(Operator):
    r"""diag(a) + Σ_k diag(b_k) W_k in blocks.

    The state is one or two parts: [h], or [c; h] with c the carried cell. Every product is in at least one term.
    Part j of the image is

        a_j ⊙ v_c + Σ_k b_jk ⊙ (U_k v_h) + Σ_k b'_jk ⊙ (W_k v_x)

    with v_c the first part of the state (h itself where there is only one) and, for projected networks, a fixed matrix
    applied to part h afterwards.

    Args:
        coefficients: all diagonals, each (…, batch, d).
        carry: for each part, the coefficient a_j that multiplies the carried part, or None.
        recurrent_terms: the terms b_jk of the recurrent products.
        input_terms: the terms b'_jk of the input products.
        recurrent: the stacked U_k, shape (K·d, hidden).
        inputs: the stacked W_k, shape (K'·d, input).
        units: d.
        projection: the matrix applied to the last part, shape (hidden, d), or None.
    """

    coefficients: tuple[Tensor, ...]
    carry: tuple[int | None, ...]
    recurrent_terms: tuple[Term, ...]
    input_terms: tuple[Term, ...]
    recurrent: Tensor
    inputs: Tensor
    units: int
    projection: Tensor | None = None

    def at(self, time: int) -> Structured:
        """Take the operator of one step out of the whole sequence's."""
        return replace(self, coefficients=tuple(c[time] for c in self.coefficients))

    def combine(
        self, carried: Tensor, recurrent: Tensor | None, inputs: Tensor | None, out: Tensor | None = None
    ) -> Tensor:
        """Weigh and add products that have already been computed.

        Args:
            carried: the first part of the state, shape (…, batch, d).
            recurrent: the products U_k v_h, shape (…, batch, K·d), or None for zero.
            inputs: the products W_k v_x, shape (…, batch, K'·d), or None for zero.
            out: where to put the image.

        Returns:
            The image, shape (…, batch, state).
        """
        d, count = self.units, len(self.carry)
        last = d if self.projection is None else self.projection.shape[0]
        if out is None:
            out = carried.new_empty(*carried.shape[:-1], (count - 1) * d + last)
        parts = list(out.split([d] * (count - 1) + [last], dim=-1))
        if self.projection is not None:
            parts[-1] = torch.empty_like(carried)
        begun = [False] * count
        for j, a in enumerate(self.carry):
            if a is not None:
                torch.mul(carried, self.coefficients[a], out=parts[j])
                begun[j] = True
        for terms, products in ((self.recurrent_terms, recurrent), (self.input_terms, inputs)):
            if products is None:
                continue
            for term in terms:
                product = products[..., term.product * d : (term.product + 1) * d]
                weight = self.coefficients[term.coefficient]
                if begun[term.part]:
                    parts[term.part].addcmul_(product, weight)
                else:
                    torch.mul(product, weight, out=parts[term.part])
                    begun[term.part] = True
        for part, is_begun in zip(parts, begun, strict=True):
            if not is_begun:
                part.zero_()
        if self.projection is not None:
            out[..., (count - 1) * d :] = F.linear(parts[-1], self.projection)
        return out

    def apply(self, state: Tensor, inputs: Tensor | None = None, out: Tensor | None = None) -> Tensor:
        """Compute A·state + C·inputs: one product with the stacked weights, then a weighted sum."""
        hidden = state if len(self.carry) == 1 else state[..., self.units :]
        recurrent = F.linear(hidden, self.recurrent) if self.recurrent_terms else None
        products = F.linear(inputs, self.inputs) if inputs is not None and self.input_terms else None
        return self.combine(state[..., : self.units], recurrent, products, out)

    def apply_transpose(self, state: Tensor, with_inputs: bool = True) -> tuple[Tensor, Tensor | None]:
        """Compute (Aᵀ·state, Cᵀ·state): the weighted sums first, then one product."""
        d = self.units
        parts = [state] if len(self.carry) == 1 else [state[..., :d], state[..., d:]]
        if self.projection is not None:
            parts[-1] = parts[-1] @ self.projection
        carried: Tensor | None = None
        for part, a in zip(parts, self.carry, strict=True):
            if a is not None:
                c = self.coefficients[a]
                carried = part * c if carried is None else carried.addcmul_(part, c)
        hidden = self._gather(parts, self.recurrent_terms, self.recurrent)
        by_input = self._gather(parts, self.input_terms, self.inputs) if with_inputs else None
        if len(self.carry) == 1:
            present = [image for image in (carried, hidden) if image is not None]
            return (present[0] if len(present) == 1 else present[0].add_(present[1])), by_input
        empty = torch.zeros_like(state)
        left = empty[..., :d] if carried is None else carried
        right = empty[..., d:] if hidden is None else hidden
        return torch.cat((left, right), dim=-1), by_input

    def _gather(self, parts: list[Tensor], terms: tuple[Term, ...], weight: Tensor) -> Tensor | None:
        """Compute Σ_k W_kᵀ (Σ_j b_jk ⊙ u_j) as one product, or None where there is no term."""
        if not terms:
            return None
        d = self.units
        stacked = parts[0].new_empty(*parts[0].shape[:-1], weight.shape[0])
        written = set()
        for term in terms:
            sum_ = stacked[..., term.product * d : (term.product + 1) * d]
            part, c = parts[term.part], self.coefficients[term.coefficient]
            if term.product in written:
                sum_.addcmul_(part, c)
            else:
                torch.mul(part, c, out=sum_)
                written.add(term.product)
        return stacked @ weight


@dataclass(frozen=True)
class MatrixFree(Operator):
    """A rule on the Jacobian of any differentiable step, by forward and reverse mode: nothing need be known of it.

    Args:
        step: (inputs, state) -> new state, on leading axes of any shape.
        origin: the input at α = 0, shape (…, batch, input).
        displacement: the input at α = 1 less that at α = 0.
        state: the state at α = 1, shape (…, batch, state).
        rule: what is made of J(α) along the line.
    """

    step: Callable[[Tensor, Tensor], Tensor]
    origin: Tensor
    displacement: Tensor
    state: Tensor
    rule: Rule

    def at(self, time: int) -> MatrixFree:
        """Take the operator of one step out of the whole sequence's."""
        return replace(
            self, origin=self.origin[time], displacement=self.displacement[time], state=self.state[time]
        )

    def _point(self, alpha: Tensor | float, like: Tensor) -> tuple[Tensor, Tensor]:
        lead = like.shape[:-1]
        x = self.origin + alpha * self.displacement
        s = alpha * self.state
        # forward mode writes tangents of the primals' layout: an expanded primal would be written many times over
        return x.expand(*lead, x.shape[-1]).contiguous(), s.expand(*lead, s.shape[-1]).contiguous()

    def apply(self, state: Tensor, inputs: Tensor | None = None, out: Tensor | None = None) -> Tensor:
        """Compute A·state + C·inputs by Jacobian-vector products."""

        def along(alpha: Tensor | float) -> tuple[Tensor, ...]:
            x, s = self._point(alpha, state)
            direction = torch.zeros_like(x) if inputs is None else inputs
            _, image = torch.func.jvp(self.step, (x, s), (direction, state))
            return (image,)

        image = self.rule(along)[0]
        return image if out is None else out.copy_(image)

    def apply_transpose(self, state: Tensor, with_inputs: bool = True) -> tuple[Tensor, Tensor | None]:
        """Compute (Aᵀ·state, Cᵀ·state) by vector-Jacobian products."""

        def along(alpha: Tensor | float) -> tuple[Tensor, ...]:
            x, s = self._point(alpha, state)
            _, pullback = torch.func.vjp(self.step, x, s)
            by_input, by_state = pullback(state)
            return by_state, by_input

        by_state, by_input = self.rule(along)
        return by_state, by_input if with_inputs else None
