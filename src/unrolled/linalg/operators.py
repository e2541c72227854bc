r"""Linear operators that are applied, never formed.

The Jacobian of a recurrent step is diag(a) + Σ_k diag(b_k) W_k with weights W_k shared by all steps and all
examples. Every rule of :mod:`unrolled.linalg.quadrature` touches the diagonals alone, so the form is closed under all
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

from unrolled.linalg.quadrature import Rule
from unrolled.linalg.workspace import Workspace

__all__ = ["MatrixFree", "Operator", "Structured", "Term"]


class Operator(ABC):
    """The Jacobian of one layer's step: (state, input) -> state, for every step and example."""

    @abstractmethod
    def at(self, time: int) -> Operator:
        """Take the operator of one step out of the whole sequence's."""

    @abstractmethod
    def apply(
        self,
        state: Tensor,
        inputs: Tensor | None = None,
        out: Tensor | None = None,
        workspace: Workspace | None = None,
    ) -> Tensor:
        """Compute A·state + C·inputs.

        Args:
            state: a block of state vectors, shape (columns, batch, state).
            inputs: a block of input vectors, shape (columns, batch, input); None stands for zero.
            out: where to put the images; must not overlap with ``state``.
            workspace: memory for what is computed on the way.

        Returns:
            The block of images, shape (columns, batch, state).
        """

    @abstractmethod
    def apply_transpose(
        self,
        state: Tensor,
        with_inputs: bool = True,
        out: Tensor | None = None,
        workspace: Workspace | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Compute (Aᵀ·state, Cᵀ·state).

        Args:
            state: a block of covectors, shape (columns, batch, state).
            with_inputs: whether the second is wanted; the lowest layer has no use for it.
            out: where to put the first; must not overlap with ``state``.
            workspace: memory for what is computed on the way.

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

    with v_c the first part of the state (h itself where there is only one). Then, where there is a ``mix`` q, the last
    part also receives q ⊙ the first part of the image, which saves repeating its terms; and for projected networks
    a fixed matrix is applied to the last part.

    Args:
        coefficients: all diagonals, each (…, batch, d).
        carry: for each part, the coefficient a_j that multiplies the carried part, or None.
        recurrent_terms: the terms b_jk of the recurrent products.
        input_terms: the terms b'_jk of the input products.
        recurrent: the stacked U_k, shape (K·d, hidden).
        inputs: the stacked W_k, shape (K'·d, input).
        units: d.
        projection: the matrix applied to the last part, shape (hidden, d), or None.
        mix: the coefficient q, or None.
    """

    coefficients: tuple[Tensor, ...]
    carry: tuple[int | None, ...]
    recurrent_terms: tuple[Term, ...]
    input_terms: tuple[Term, ...]
    recurrent: Tensor
    inputs: Tensor
    units: int
    projection: Tensor | None = None
    mix: int | None = None

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
        if self.mix is not None:
            parts[-1].addcmul_(parts[0], self.coefficients[self.mix])
        if self.projection is not None:
            out[..., (count - 1) * d :] = F.linear(parts[-1], self.projection)
        return out

    def apply(
        self,
        state: Tensor,
        inputs: Tensor | None = None,
        out: Tensor | None = None,
        workspace: Workspace | None = None,
    ) -> Tensor:
        """Compute A·state + C·inputs: one product with the stacked weights, then a weighted sum."""
        workspace = workspace or Workspace()
        hidden = state if len(self.carry) == 1 else state[..., self.units :]
        recurrent = by_input = None
        if self.recurrent_terms:
            recurrent = _product(hidden, self.recurrent.T, "recurrent", workspace)
        if inputs is not None and self.input_terms:
            by_input = _product(inputs, self.inputs.T, "inputs", workspace)
        return self.combine(state[..., : self.units], recurrent, by_input, out)

    def apply_transpose(
        self,
        state: Tensor,
        with_inputs: bool = True,
        out: Tensor | None = None,
        workspace: Workspace | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Compute (Aᵀ·state, Cᵀ·state): the weighted sums first, then one product."""
        workspace = workspace or Workspace()
        d, count = self.units, len(self.carry)
        parts = [state] if count == 1 else [state[..., :d], state[..., d:]]
        if self.projection is not None:
            parts[-1] = parts[-1] @ self.projection
        if self.mix is not None:
            mixed = workspace.take("mixed", tuple(parts[0].shape), state)
            parts[0] = torch.addcmul(parts[0], parts[-1], self.coefficients[self.mix], out=mixed)
        if out is None:
            out = torch.empty_like(state)
        carried, hidden = out[..., :d], out if count == 1 else out[..., d:]
        begun = False
        for part, a in zip(parts, self.carry, strict=True):
            if a is None:
                continue
            if begun:
                carried.addcmul_(part, self.coefficients[a])
            else:
                torch.mul(part, self.coefficients[a], out=carried)
            begun = True
        gathered = self._gather(parts, self.recurrent_terms, self.recurrent, workspace)
        if count == 1 and begun:
            if gathered is not None:
                out.add_(gathered)
        else:
            if count > 1 and not begun:
                carried.zero_()
            hidden.copy_(gathered) if gathered is not None else hidden.zero_()
        return out, self._gather(parts, self.input_terms, self.inputs, workspace) if with_inputs else None

    def _gather(
        self, parts: list[Tensor], terms: tuple[Term, ...], weight: Tensor, workspace: Workspace
    ) -> Tensor | None:
        """Compute Σ_k W_kᵀ (Σ_j b_jk ⊙ u_j) as one product, or None where there is no term."""
        if not terms:
            return None
        d = self.units
        stacked = workspace.take("stacked", (*parts[0].shape[:-1], weight.shape[0]), parts[0])
        written = set()
        for term in terms:
            sum_ = stacked[..., term.product * d : (term.product + 1) * d]
            part, c = parts[term.part], self.coefficients[term.coefficient]
            if term.product in written:
                sum_.addcmul_(part, c)
            else:
                torch.mul(part, c, out=sum_)
                written.add(term.product)
        return _product(stacked, weight, "gathered" if weight is self.recurrent else "gathered inputs", workspace)


def _product(block: Tensor, matrix: Tensor, name: str, workspace: Workspace) -> Tensor:
    """Multiply every vector of a block by a matrix, into the workspace."""
    result = workspace.take(name, (*block.shape[:-1], matrix.shape[1]), block)
    torch.mm(block.reshape(-1, block.shape[-1]), matrix, out=result.view(-1, matrix.shape[1]))
    return result


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
        return replace(self, origin=self.origin[time], displacement=self.displacement[time], state=self.state[time])

    def _point(self, alpha: Tensor | float, like: Tensor) -> tuple[Tensor, Tensor]:
        lead = like.shape[:-1]
        x = self.origin + alpha * self.displacement
        s = alpha * self.state
        # forward mode writes tangents of the primals' layout: an expanded primal would be written many times over
        return x.expand(*lead, x.shape[-1]).contiguous(), s.expand(*lead, s.shape[-1]).contiguous()

    def apply(
        self,
        state: Tensor,
        inputs: Tensor | None = None,
        out: Tensor | None = None,
        workspace: Workspace | None = None,
    ) -> Tensor:
        """Compute A·state + C·inputs by Jacobian-vector products."""

        def along(alpha: Tensor | float) -> tuple[Tensor, ...]:
            x, s = self._point(alpha, state)
            direction = torch.zeros_like(x) if inputs is None else inputs
            return (torch.func.jvp(self.step, (x, s), (direction, state))[1],)

        image = self.rule(along)[0]
        return image if out is None else out.copy_(image)

    def apply_transpose(
        self,
        state: Tensor,
        with_inputs: bool = True,
        out: Tensor | None = None,
        workspace: Workspace | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Compute (Aᵀ·state, Cᵀ·state) by vector-Jacobian products."""

        def along(alpha: Tensor | float) -> tuple[Tensor, ...]:
            x, s = self._point(alpha, state)
            pullback = torch.func.vjp(self.step, x, s)[1]
            by_input, by_state = pullback(state)
            return by_state, by_input

        by_state, by_input = self.rule(along)
        return by_state if out is None else out.copy_(by_state), by_input if with_inputs else None
