r"""Run an affine recurrence over a whole sequence: s_t = g_t + A_t s_{t-1}, with A_t structured and never formed.

    s_t[j] = g_t[j] + a_t[j] ⊙ c_{t-1} + Σ_k b_t[jk] ⊙ (U_k h_{t-1})

What the tokens say is known before the loop, so a step is one product with the stacked U and a weighted sum; and so is
a step back. In a long sequence it is worked out stretch by stretch, and again on the way back: g and the dozen
diagonals are then never in memory at once. The gradient of U is one product over all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from unrolled.kernels.base import SequenceKernel, stretches
from unrolled.linalg.operators import Term

__all__ = ["AffineKernel", "Pattern"]

STRETCH = 1 << 20
"""How many numbers states have in a stretch. A shorter sequence keeps what the tokens said, for the way back."""


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


class AffineKernel(SequenceKernel):
    """An affine recurrence over a whole sequence.

    Its tensors are what the inputs contribute, s_0, the stacked U_k and whatever else ``expand`` reads.

    Args:
        pattern: which coefficient weighs what.
        expand: gives the parts of g and the diagonals, each (time, batch, d), from what the inputs contribute,
            shape (time, batch, …), and whatever else it reads.
    """

    def __init__(self, pattern: Pattern, expand: Callable[..., tuple[tuple[Tensor, ...], tuple[Tensor, ...]]]) -> None:
        self.pattern, self.expand = pattern, expand
        self.said: tuple[list[Tensor], tuple[Tensor, ...], tuple[Tensor, ...]] | None = None

    def plain(self, *tensors: Any) -> Tensor:
        """Run step by step."""
        by_input, state, recurrent, *others = tensors
        pattern, d, states = self.pattern, self.pattern.units, [state]
        offsets, coefficients = self.expand(by_input, *others)
        for t in range(len(by_input)):
            before = states[-1]
            products = linear(before[..., -d:], recurrent)
            now = [g[t] for g in offsets], [c[t] for c in coefficients]
            states.append(torch.cat(pattern.confine(pattern.weigh(*now, products, before[..., :d])), dim=-1))
        return torch.stack(states)

    def read(
        self, by_input: Tensor, others: Sequence[Tensor]
    ) -> tuple[list[Tensor], tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Work out what some tokens say, with the leaves that a gradient is to be pulled back to.

        Args:
            by_input: what the inputs contribute, shape (time, batch, …).
            others: whatever else is read.

        Returns:
            The leaves, the parts of g, and the diagonals.
        """
        with torch.enable_grad():
            leaves = [tensor.detach().requires_grad_() for tensor in (by_input, *others)]
            return leaves, *self.expand(*leaves)

    def forward(self, *tensors: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run into one buffer; keep the products."""
        by_input, state, recurrent, *others = tensors
        pattern, d, time = self.pattern, self.pattern.units, len(by_input)
        states = state.new_empty(time + 1, *state.shape)
        states[0] = state
        products = state.new_empty(time, len(state), len(recurrent))
        # views of every step and part, made at once: taken one by one they cost as much as the sums
        hidden, carried = states[..., -d:].unbind(), states[..., :d].unbind()
        parts = [part.unbind() for part in states.split(d, dim=-1)]
        blocks = [block.unbind() for block in products.split(d, dim=-1)]
        flat, transposed = products.unbind(), recurrent.T.contiguous()
        cuts = stretches(time, state.numel(), STRETCH)
        for start, stop in reversed(cuts):
            if len(cuts) == 1:
                self.said = self.read(by_input, others)
                said = self.said[1:]
            else:
                said = self.expand(by_input[start:stop], *others)
            offsets, coefficients = ([one.detach().unbind() for one in several] for several in said)
            for t in range(start, stop):
                k = t - start
                torch.mm(hidden[t], transposed, out=flat[t])
                for part, a in enumerate(pattern.carry):
                    if a is None:
                        parts[part][t + 1].copy_(offsets[part][k])
                    else:
                        torch.addcmul(offsets[part][k], coefficients[a][k], carried[t], out=parts[part][t + 1])
                for term in pattern.terms:
                    parts[term.part][t + 1].addcmul_(coefficients[term.coefficient][k], blocks[term.product][t])
                if pattern.clamp is not None:
                    states[t + 1].clamp_(-pattern.clamp, pattern.clamp)
        return states, (products,)

    def backward(
        self, gradient: Tensor, tensors: tuple[Any, ...], states: Tensor, kept: tuple[Tensor, ...]
    ) -> tuple[Tensor | None, ...]:
        """Carry δs alone through the loop; what the tokens said is pulled back stretch by stretch."""
        by_input, state, recurrent, *others = tensors
        (products,) = kept
        pattern, d, time = self.pattern, self.pattern.units, len(by_input)
        # what arrives at s_0 … s_T: at first from outside alone, in the loop from the step behind as well
        arrived, scaled, by_token = gradient.clone(), torch.empty_like(products), []
        by_others: list[Tensor | None] = [None] * len(others)
        hidden, carried = arrived[..., -d:].unbind(), arrived[..., :d].unbind()
        parts = [part.unbind() for part in arrived.split(d, dim=-1)]
        blocks = [block.unbind() for block in scaled.split(d, dim=-1)]
        flat, first = scaled.unbind(), {term.product: term for term in reversed(pattern.terms)}
        rest = [term for term in pattern.terms if first[term.product] is not term]
        said, self.said = self.said, None  # a second pass works it out again
        for start, stop in stretches(time, state.numel(), STRETCH):
            leaves, offsets, coefficients = said or self.read(by_input[start:stop], others)
            now = [one.detach().unbind() for one in coefficients]
            for t in range(stop - 1, start - 1, -1):
                k = t - start
                if pattern.clamp is not None:
                    # at the bound there is no slope: what was cut off cannot be told from what just reached it
                    arrived[t + 1] *= states[t + 1].abs() < pattern.clamp
                for term in first.values():
                    torch.mul(now[term.coefficient][k], parts[term.part][t + 1], out=blocks[term.product][t])
                for term in rest:
                    blocks[term.product][t].addcmul_(now[term.coefficient][k], parts[term.part][t + 1])
                hidden[t].addmm_(flat[t], recurrent)
                for part, a in enumerate(pattern.carry):
                    if a is not None:
                        carried[t].addcmul_(now[a][k], parts[part][t + 1])
            through = arrived[start + 1 : stop + 1].split(d, dim=-1)
            weighed = [(a, part, states[start:stop, :, :d]) for part, a in enumerate(pattern.carry) if a is not None]
            weighed += [(t.coefficient, t.part, pattern.block(products[start:stop], t)) for t in pattern.terms]
            moved = [*zip(offsets, through, strict=True)]
            moved += [
                (coefficients[c], through[part] * value) for c, part, value in weighed if coefficients[c].requires_grad
            ]
            images, gradients = zip(*((one, by_one) for one, by_one in moved if one.requires_grad), strict=True)
            of_tokens, *found = torch.autograd.grad(images, leaves, gradients, allow_unused=True)
            by_token.append(torch.zeros_like(leaves[0]) if of_tokens is None else of_tokens)
            for place, more in enumerate(found):
                before = by_others[place]
                by_others[place] = more if before is None or more is None else before + more
        by_weight = scaled.flatten(0, 1).T @ states[:-1, :, -d:].flatten(0, 1)
        whole = by_token[0] if len(by_token) == 1 else torch.cat([by_input[:0], *reversed(by_token)])
        return whole, arrived[0], by_weight, *by_others
