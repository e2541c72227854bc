r"""Run an affine recurrence over a whole sequence: s_t = g_t + A_t s_{t-1}, with A_t structured and never formed.

    s_t[j] = g_t[j] + a_t[j] ⊙ c_{t-1} + Σ_k b_t[jk] ⊙ (U_k h_{t-1})

Everything that depends on the token is known before the loop, so a step is one product with the stacked U and a
weighted sum; and so is a step back. The gradient of U is one product over all steps, those of g, a and b are
element-wise, after the loop. :func:`plain_scan` is the same in plain steps: it judges the fast one, and serves
where the gradient is to be differentiated again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn.functional import linear

from unrolled.algebra.operator import Term

__all__ = ["Pattern", "plain_scan", "scan"]


@dataclass(frozen=True)
class Pattern:
    """Which coefficient weighs what: the form that all A_t of a cell share.

    Args:
        carry: for each part of the state, the coefficient that multiplies the carried part, or None.
        terms: the summands diag(b) U_k.
        units: d, the length of a part.
        clamp: the bound at which every entry of a new state is cut off, or None.
    """

    carry: tuple[int | None, ...]
    terms: tuple[Term, ...]
    units: int
    clamp: float | None = None

    def block(self, products: Tensor, term: Term) -> Tensor:
        """Take the product U_k h that a term weighs.

        Args:
            products: all of them, shape (…, K·d).
            term: the term.

        Returns:
            A view, shape (…, d).
        """
        return products[..., term.product * self.units : (term.product + 1) * self.units]

    def weigh(
        self, offsets: Sequence[Tensor], coefficients: Sequence[Tensor], products: Tensor, carried: Tensor
    ) -> tuple[Tensor, ...]:
        """Compute g + A s, part by part, out of products already taken; nothing is cut off.

        Args:
            offsets: the parts of g, each (…, d).
            coefficients: the diagonals, each (…, d).
            products: U h, shape (…, K·d).
            carried: the first part of the state, shape (…, d).

        Returns:
            The parts of the image, each (…, d).
        """
        parts = list(offsets)
        for part, a in enumerate(self.carry):
            if a is not None:
                parts[part] = torch.addcmul(parts[part], coefficients[a], carried)
        for term in self.terms:
            weight = coefficients[term.coefficient]
            parts[term.part] = torch.addcmul(parts[term.part], weight, self.block(products, term))
        return tuple(parts)

    def confine(self, parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Cut the parts off at the bound, if there is one.

        Args:
            parts: each (…, d).

        Returns:
            The same shapes.
        """
        if self.clamp is None:
            return parts
        return tuple(part.clamp(-self.clamp, self.clamp) for part in parts)


def plain_scan(
    pattern: Pattern,
    recurrent: Tensor,
    state: Tensor,
    offsets: Sequence[Tensor],
    coefficients: Sequence[Tensor],
) -> Tensor:
    """Run the recurrence step by step.

    Args:
        pattern: which coefficient weighs what.
        recurrent: the stacked U_k, shape (K·d, d).
        state: s_0, shape (batch, parts·d).
        offsets: the parts of g_1 … g_T, each (time, batch, d).
        coefficients: the diagonals, each (time, batch, d).

    Returns:
        s_0 … s_T, shape (time + 1, batch, parts·d).
    """
    d, states = pattern.units, [state]
    for t in range(len(offsets[0])):
        before = states[-1]
        parts = pattern.weigh(
            [g[t] for g in offsets],
            [c[t] for c in coefficients],
            linear(before[..., -d:], recurrent),
            before[..., :d],
        )
        states.append(torch.cat(pattern.confine(parts), dim=-1))
    return torch.stack(states)


def scan(
    pattern: Pattern,
    recurrent: Tensor,
    state: Tensor,
    offsets: Sequence[Tensor],
    coefficients: Sequence[Tensor],
) -> Tensor:
    """Run the recurrence as :func:`plain_scan` does, faster, forward and back.

    Args:
        pattern: which coefficient weighs what.
        recurrent: the stacked U_k, shape (K·d, d).
        state: s_0, shape (batch, parts·d).
        offsets: the parts of g_1 … g_T, each (time, batch, d).
        coefficients: the diagonals, each (time, batch, d).

    Returns:
        s_0 … s_T, shape (time + 1, batch, parts·d).
    """
    return _Scan.apply(pattern, recurrent, state, *offsets, *coefficients)


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, pattern: Pattern, recurrent: Tensor, state: Tensor, *tensors: Tensor) -> Tensor:
        d, count = pattern.units, len(pattern.carry)
        offsets, coefficients = tensors[:count], [tensor.unbind() for tensor in tensors[count:]]
        time, batch = offsets[0].shape[:2]
        states = state.new_empty(time + 1, batch, count * d)
        states[0] = state
        products = state.new_empty(time, batch, recurrent.shape[0])
        # views of every step and part, made at once: taken one by one they cost as much as the sums
        hidden, carried = states[..., -d:].unbind(), states[..., :d].unbind()
        parts = [part.unbind() for part in states.split(d, dim=-1)]
        blocks = [block.unbind() for block in products.split(d, dim=-1)]
        added = [offset.unbind() for offset in offsets]
        transposed = recurrent.T
        for t, product in enumerate(products.unbind()):
            torch.mm(hidden[t], transposed, out=product)
            for part, a in enumerate(pattern.carry):
                if a is None:
                    parts[part][t + 1].copy_(added[part][t])
                else:
                    torch.addcmul(added[part][t], coefficients[a][t], carried[t], out=parts[part][t + 1])
            for term in pattern.terms:
                parts[term.part][t + 1].addcmul_(coefficients[term.coefficient][t], blocks[term.product][t])
            if pattern.clamp is not None:
                states[t + 1].clamp_(-pattern.clamp, pattern.clamp)
        ctx.pattern = pattern  # type: ignore[attr-defined]  # where autograd keeps what is no tensor
        ctx.save_for_backward(recurrent, state, states, products, *tensors)
        return states

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        pattern: Pattern = ctx.pattern
        recurrent, state, states, products, *tensors = ctx.saved_tensors
        gradient = gradients[0]
        count = len(pattern.carry)
        if torch.is_grad_enabled():  # the gradient is to be differentiated again
            # views: one of these tensors may have been computed from another, which is not to be counted twice
            given = [tensor.view_as(tensor) for tensor in (recurrent, state, *tensors)]
            again = plain_scan(pattern, given[0], given[1], given[2 : 2 + count], given[2 + count :])
            wanted = [tensor for tensor in given if tensor.requires_grad]
            found = iter(torch.autograd.grad(again, wanted, gradient, create_graph=True))
            return (None, *(next(found) if tensor.requires_grad else None for tensor in given))
        d, coefficients = pattern.units, [tensor.unbind() for tensor in tensors[count:]]
        # what arrives at s_0 … s_T: at first from outside alone, in the loop from the step behind as well
        arrived = gradient.clone()
        hidden, carried = arrived[..., -d:].unbind(), arrived[..., :d].unbind()
        parts = [part.unbind() for part in arrived.split(d, dim=-1)]
        scaled = torch.empty_like(products)
        blocks = [block.unbind() for block in scaled.split(d, dim=-1)]
        first = {term.product: term for term in reversed(pattern.terms)}
        rest = [term for term in pattern.terms if first[term.product] is not term]
        for t, weighted in reversed(list(enumerate(scaled.unbind()))):
            if pattern.clamp is not None:
                # at the bound there is no slope: what was cut off cannot be told from what just reached it
                arrived[t + 1] *= states[t + 1].abs() < pattern.clamp
            for term in first.values():
                torch.mul(coefficients[term.coefficient][t], parts[term.part][t + 1], out=blocks[term.product][t])
            for term in rest:
                blocks[term.product][t].addcmul_(coefficients[term.coefficient][t], parts[term.part][t + 1])
            hidden[t].addmm_(weighted, recurrent)
            for part, a in enumerate(pattern.carry):
                if a is not None:
                    carried[t].addcmul_(coefficients[a][t], parts[part][t + 1])
        through = arrived[1:].split(d, dim=-1)
        wanted_too = ctx.needs_input_grad[3 + count :]
        grads: list[Tensor | None] = [None] * len(coefficients)
        for part, a in enumerate(pattern.carry):
            if a is not None and wanted_too[a]:
                grads[a] = through[part] * states[:-1, :, :d]
        for term in pattern.terms:
            if wanted_too[term.coefficient]:
                grads[term.coefficient] = through[term.part] * pattern.block(products, term)
        before = states[:-1, :, -d:].reshape(-1, d)
        by_weight = scaled.flatten(0, 1).T @ before
        return None, by_weight, arrived[0], *through, *grads
