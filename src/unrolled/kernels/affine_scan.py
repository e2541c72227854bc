r"""Run an affine recurrence over a whole sequence: s_t = g_t + A_t s_{t-1}, with A_t structured and never formed.

    s_t[j] = g_t[j] + a_t[j] ⊙ c_{t-1} + Σ_k b_t[jk] ⊙ (U_k h_{t-1})

What the tokens say is known before the loop, so a step is one product with the stacked U and a weighted sum; and so is
a step back. In a long sequence it is worked out stretch by stretch, and again on the way back: g and the dozen
diagonals are then never in memory at once. The gradient of U is one product over all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import linear

from unrolled.kernels.base import SequenceKernel, stretches
from unrolled.linalg.structured import Term
from unrolled.linalg.weighted_sum import weighted_sum

__all__ = ["AffineKernel", "Pattern"]

STRETCH = 1 << 20
"""How many numbers states have in a stretch. A shorter sequence keeps what the tokens said, for the way back."""


V = TypeVar("V")
"""A tensor, or the tensors of every step."""

Maps = tuple[tuple[Tensor, ...], Mapping[str, Tensor]]
"""The parts of g and the named diagonals of A, each (time, batch, d)."""


@dataclass(frozen=True)
class Pattern:
    """Which diagonal weighs which product: the form that all A_t of a cell share."""

    parts: tuple[str, ...]
    """The parts of the state, the hidden output last."""
    carry: tuple[Term, ...]
    """The summands diag(a) ⊙ carried."""
    terms: tuple[Term, ...]
    """The summands diag(b) U_k."""
    units: int
    """d, the length of a part."""
    clamp: float | None = None
    """The bound at which every entry of a new state is cut off, or None."""

    def weigh(
        self, offsets: Sequence[Tensor], diagonals: Mapping[str, Tensor], products: Tensor, carried: Tensor
    ) -> tuple[Tensor, ...]:
        """Compute the parts of g + A s from products already taken, each (…, d), without the cut-off.

        Args:
            offsets: The parts of g, each (…, d).
            diagonals: By name, each (…, d).
            products: U h, shape (…, K·d).
            carried: The first part of the state, shape (…, d).
        """
        blocks = products.split(self.units, dim=-1)
        return tuple(
            weighted_sum(self.summands(part, diagonals, blocks, carried), initial=offset)
            for part, offset in zip(self.parts, offsets, strict=True)
        )

    def summands(self, part: str, diagonals: Mapping[str, V], blocks: Sequence[V], carried: V) -> list[tuple[V, V]]:
        """List what is added up in one part of A s: pairs of a diagonal and what it weighs."""
        found = [(diagonals[term.diagonal], carried) for term in self.carry if term.part == part]
        return found + [(diagonals[term.diagonal], blocks[term.product]) for term in self.terms if term.part == part]

    def confine(self, parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Cut the parts off at the bound, if there is one."""
        if self.clamp is None:
            return parts
        return tuple(part.clamp(-self.clamp, self.clamp) for part in parts)


class AffineKernel(SequenceKernel):
    """An affine recurrence over a whole sequence.

    Its tensors are what the inputs contribute, s_0, the stacked U_k and whatever else ``expand`` reads.

    Args:
        pattern: which diagonal weighs which product.
        expand: gives the parts of g and the named diagonals from what the inputs contribute, shape (time, batch, …),
            and whatever else it reads.
    """

    def __init__(self, pattern: Pattern, expand: Callable[..., Maps]) -> None:
        self.pattern, self.expand = pattern, expand
        self.said: tuple[list[Tensor], *Maps] | None = None

    def plain(self, *tensors: Any) -> Tensor:
        """Run step by step."""
        by_input, state, recurrent, *others = tensors
        pattern, d, states = self.pattern, self.pattern.units, [state]
        offsets, diagonals = self.expand(by_input, *others)
        for t in range(len(by_input)):
            before = states[-1]
            products = linear(before[..., -d:], recurrent)
            now = [g[t] for g in offsets], {name: values[t] for name, values in diagonals.items()}
            states.append(torch.cat(pattern.confine(pattern.weigh(*now, products, before[..., :d])), dim=-1))
        return torch.stack(states)

    def read(self, by_input: Tensor, others: Sequence[Tensor]) -> tuple[list[Tensor], *Maps]:
        """Compute the maps of some tokens, with the leaves that a gradient is to be pulled back to."""
        with torch.enable_grad():
            leaves = [tensor.detach().requires_grad_() for tensor in (by_input, *others)]
            offsets, diagonals = self.expand(*leaves)
            return leaves, offsets, diagonals

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
        blocks = [each.unbind() for each in products.split(d, dim=-1)]
        flat, transposed = products.unbind(), recurrent.T.contiguous()
        cuts = stretches(time, state.numel(), STRETCH)
        for start, stop in reversed(cuts):
            if len(cuts) == 1:
                self.said = self.read(by_input, others)
                said = self.said[1:]
            else:
                said = self.expand(by_input[start:stop], *others)
            offsets, diagonals = [one.detach().unbind() for one in said[0]], _unbound(said[1])
            here = [each[start:stop] for each in blocks]
            summands = [
                _by_step(pattern.summands(part, diagonals, here, carried[start:stop]), stop - start)
                for part in pattern.parts
            ]
            for t in range(start, stop):
                k = t - start
                torch.mm(hidden[t], transposed, out=flat[t])
                for part, offset, several in zip(parts, offsets, summands, strict=True):
                    weighted_sum(several[k], offset[k], out=part[t + 1])
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
        whole = dict(zip(pattern.parts, arrived.split(d, dim=-1), strict=True))
        parts = {name: part.unbind() for name, part in whole.items()}
        blocks, flat = [each.unbind() for each in scaled.split(d, dim=-1)], scaled.unbind()
        said, self.said = self.said, None  # a second pass works it out again
        for start, stop in stretches(time, state.numel(), STRETCH):
            leaves, offsets, diagonals = said or self.read(by_input[start:stop], others)
            now, behind = _unbound(diagonals), {name: part[start + 1 : stop + 1] for name, part in parts.items()}
            to_blocks = [
                _by_step([(now[t.diagonal], behind[t.part]) for t in pattern.terms if t.product == k], stop - start)
                for k in range(len(blocks))
            ]
            to_carried = _by_step([(now[t.diagonal], behind[t.part]) for t in pattern.carry], stop - start)
            for t in range(stop - 1, start - 1, -1):
                k = t - start
                if pattern.clamp is not None:
                    # at the bound there is no slope: what was cut off cannot be told from what just reached it
                    arrived[t + 1] *= states[t + 1].abs() < pattern.clamp
                for block, several in zip(blocks, to_blocks, strict=True):
                    weighted_sum(several[k], out=block[t])
                hidden[t].addmm_(flat[t], recurrent)
                weighted_sum(to_carried[k], carried[t], out=carried[t])
            moved = [*zip(offsets, (part[start + 1 : stop + 1] for part in whole.values()), strict=True)]
            taken = products[start:stop].split(d, dim=-1)
            for name, part in whole.items():
                moved += [
                    (diagonal, part[start + 1 : stop + 1] * value)
                    for diagonal, value in pattern.summands(name, diagonals, taken, states[start:stop, :, :d])
                    if diagonal.requires_grad
                ]
            images, gradients = zip(*((one, by_one) for one, by_one in moved if one.requires_grad), strict=True)
            of_tokens, *found = torch.autograd.grad(images, leaves, gradients, allow_unused=True)
            by_token.append(torch.zeros_like(leaves[0]) if of_tokens is None else of_tokens)
            for place, more in enumerate(found):
                before = by_others[place]
                by_others[place] = more if before is None or more is None else before + more
        by_weight = scaled.flatten(0, 1).T @ states[:-1, :, -d:].flatten(0, 1)
        by_inputs = by_token[0] if len(by_token) == 1 else torch.cat([by_input[:0], *reversed(by_token)])
        return by_inputs, arrived[0], by_weight, *by_others


def _unbound(diagonals: Mapping[str, Tensor]) -> dict[str, tuple[Tensor, ...]]:
    """Take the diagonals of every step out, without their gradients."""
    return {name: values.detach().unbind() for name, values in diagonals.items()}


def _by_step(
    pairs: Sequence[tuple[Sequence[Tensor], Sequence[Tensor]]], steps: int
) -> list[tuple[tuple[Tensor, Tensor], ...]]:
    """Sort the factors of several sums by step: the pairs of each step."""
    return list(zip(*(zip(*pair, strict=True) for pair in pairs), strict=True)) if pairs else [()] * steps
