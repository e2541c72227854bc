r"""Kernel of an affine recurrence: s_t = g_t + A_t s_{t-1}, with A_t structured and not stored as a matrix.

    s_t[j] = g_t[j] + a_t[j] ⊙ c_{t-1} + Σ_k b_t[jk] ⊙ (U_k h_{t-1})

g_t and the diagonals of A_t depend only on the tokens, so they are computed before the loop. A step in either direction
is one product with the stacked U and a weighted sum. In a long sequence g and the dozen diagonals are computed chunk by
chunk, and again in the backward pass, so that they are never in memory at once. The gradient of U is one product over
all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import linear

from unrolled.kernels.base import SequenceKernel, time_chunks
from unrolled.linalg.structured import Term, weighted_sum

__all__ = ["AffineKernel", "Pattern"]

_MEMORY_CHUNK = 1 << 20
"""Numbers of the states in a chunk. A sequence of one chunk keeps its maps for the backward pass."""

V = TypeVar("V")
"""A tensor, or the tensors of every step."""

Maps = tuple[tuple[Tensor, ...], Mapping[str, Tensor]]
"""The parts of g and the named diagonals of A, each (time, batch, d)."""


@dataclass(frozen=True)
class Pattern:
    """The structure that all A_t of a cell share: which diagonal multiplies which product."""

    parts: tuple[str, ...]
    """The parts of the state, the hidden output last."""
    carry: tuple[Term, ...]
    """The summands diag(a) ⊙ carried."""
    terms: tuple[Term, ...]
    """The summands diag(b) U_k."""
    units: int
    """d, the length of a part."""
    clamp: float | None = None
    """The bound to which every entry of a new state is clamped, or None."""

    def apply(
        self, offsets: Sequence[Tensor], diagonals: Mapping[str, Tensor], products: Tensor, carried: Tensor
    ) -> tuple[Tensor, ...]:
        """Compute the parts of g + A s from the products, each (…, d), without clamping.

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
        """List the summands of one part of A s as pairs of a diagonal and what it multiplies."""
        found = [(diagonals[term.diagonal], carried) for term in self.carry if term.part == part]
        return found + [(diagonals[term.diagonal], blocks[term.product]) for term in self.terms if term.part == part]

    def clamp_parts(self, parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Clamp the parts to the bound, if there is one."""
        if self.clamp is None:
            return parts
        return tuple(part.clamp(-self.clamp, self.clamp) for part in parts)


class AffineKernel(SequenceKernel):
    """An affine recurrence over a whole sequence.

    Its tensors are the contributions of the inputs, shape (time, batch, …), s_0, the stacked U_k and any other tensors
    that ``expand`` reads. ``expand`` computes the parts of g and the named diagonals of A from the first and the last.
    """

    def __init__(self, pattern: Pattern, expand: Callable[..., Maps]) -> None:
        self.pattern, self.expand = pattern, expand
        self.maps: tuple[list[Tensor], *Maps] | None = None

    def reference(self, *tensors: Any) -> Tensor:
        """Run step by step."""
        from_input, state, recurrent, *others = tensors
        pattern, d, states = self.pattern, self.pattern.units, [state]
        offsets, diagonals = self.expand(from_input, *others)
        for t in range(len(from_input)):
            before = states[-1]
            products = linear(before[..., -d:], recurrent)
            now = [g[t] for g in offsets], {name: values[t] for name, values in diagonals.items()}
            states.append(torch.cat(pattern.clamp_parts(pattern.apply(*now, products, before[..., :d])), dim=-1))
        return torch.stack(states)

    def read(self, from_input: Tensor, others: Sequence[Tensor]) -> tuple[list[Tensor], *Maps]:
        """Compute the maps of some tokens, and the leaves that their gradients belong to."""
        with torch.enable_grad():
            leaves = [tensor.detach().requires_grad_() for tensor in (from_input, *others)]
            offsets, diagonals = self.expand(*leaves)
            return leaves, offsets, diagonals

    def grad_maps(
        self,
        maps: tuple[list[Tensor], *Maps],
        grad_parts: Mapping[str, Tensor],
        blocks: Sequence[Tensor],
        carried: Tensor,
    ) -> tuple[Tensor | None, ...]:
        """Compute the gradients of the leaves of some tokens from those of the parts of their new states.

        Args:
            maps: The leaves, the parts of g and the diagonals, of :meth:`read`.
            grad_parts: By the name of the part, each (steps, batch, d).
            blocks: The products U_k h, each (steps, batch, d).
            carried: The first part of the states before, shape (steps, batch, d).
        """
        leaves, offsets, diagonals = maps
        images = [*zip(offsets, grad_parts.values(), strict=True)]
        for part, gradient in grad_parts.items():
            images += [
                (diagonal, gradient * value)
                for diagonal, value in self.pattern.summands(part, diagonals, blocks, carried)
                if diagonal.requires_grad
            ]
        moved, gradients = zip(*((image, gradient) for image, gradient in images if image.requires_grad), strict=True)
        return torch.autograd.grad(moved, leaves, gradients, allow_unused=True)

    def forward(self, *tensors: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run into one buffer; save the products."""
        from_input, state, recurrent, *others = tensors
        pattern, d, time = self.pattern, self.pattern.units, len(from_input)
        states = state.new_empty(time + 1, *state.shape)
        states[0] = state
        products = state.new_empty(time, len(state), len(recurrent))
        # all views at once: one by one they would cost as much as the sums
        hidden, carried = states[..., -d:].unbind(), states[..., :d].unbind()
        parts = [part.unbind() for part in states.split(d, dim=-1)]
        blocks = [each.unbind() for each in products.split(d, dim=-1)]
        flat, transposed = products.unbind(), recurrent.T.contiguous()
        chunks = time_chunks(time, state.numel(), _MEMORY_CHUNK)
        for start, stop in reversed(chunks):
            if len(chunks) == 1:
                self.maps = self.read(from_input, others)
                maps = self.maps[1:]
            else:
                maps = self.expand(from_input[start:stop], *others)
            offsets, diagonals = [one.detach().unbind() for one in maps[0]], _unbound(maps[1])
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
        self, gradient: Tensor, tensors: tuple[Any, ...], states: Tensor, saved: tuple[Tensor, ...]
    ) -> tuple[Tensor | None, ...]:
        """Propagate only δs through the loop; differentiate the maps chunk by chunk."""
        from_input, state, recurrent, *others = tensors
        (products,) = saved
        pattern, d, time = self.pattern, self.pattern.units, len(from_input)
        # δs_0 … δs_T: first the gradient of the loss alone, in the loop also that of the next step
        grad_states, scaled, grad_tokens = gradient.clone(), torch.empty_like(products), []
        grad_others: list[Tensor | None] = [None] * len(others)
        hidden, carried = grad_states[..., -d:].unbind(), grad_states[..., :d].unbind()
        whole = dict(zip(pattern.parts, grad_states.split(d, dim=-1), strict=True))
        parts = {name: part.unbind() for name, part in whole.items()}
        blocks, flat = [each.unbind() for each in scaled.split(d, dim=-1)], scaled.unbind()
        maps, self.maps = self.maps, None  # a second backward pass computes them again
        for start, stop in time_chunks(time, state.numel(), _MEMORY_CHUNK):
            leaves, offsets, diagonals = maps or self.read(from_input[start:stop], others)
            now, behind = _unbound(diagonals), {name: part[start + 1 : stop + 1] for name, part in parts.items()}
            to_blocks = [
                _by_step([(now[t.diagonal], behind[t.part]) for t in pattern.terms if t.product == k], stop - start)
                for k in range(len(blocks))
            ]
            to_carried = _by_step([(now[t.diagonal], behind[t.part]) for t in pattern.carry], stop - start)
            for t in range(stop - 1, start - 1, -1):
                k = t - start
                if pattern.clamp is not None:
                    # the slope at the bound is zero: a clamped value is equal to one that has just reached the bound
                    grad_states[t + 1] *= states[t + 1].abs() < pattern.clamp
                for block, several in zip(blocks, to_blocks, strict=True):
                    weighted_sum(several[k], out=block[t])
                hidden[t].addmm_(flat[t], recurrent)
                weighted_sum(to_carried[k], carried[t], out=carried[t])
            of_inputs, *found = self.grad_maps(
                (leaves, offsets, diagonals),
                {name: part[start + 1 : stop + 1] for name, part in whole.items()},
                products[start:stop].split(d, dim=-1),
                states[start:stop, :, :d],
            )
            grad_tokens.append(torch.zeros_like(leaves[0]) if of_inputs is None else of_inputs)
            for place, more in enumerate(found):
                before = grad_others[place]
                grad_others[place] = more if before is None or more is None else before + more
        grad_weight = scaled.flatten(0, 1).T @ states[:-1, :, -d:].flatten(0, 1)
        grad_inputs = grad_tokens[0] if len(grad_tokens) == 1 else torch.cat([from_input[:0], *reversed(grad_tokens)])
        return grad_inputs, grad_states[0], grad_weight, *grad_others


def _unbound(diagonals: Mapping[str, Tensor]) -> dict[str, tuple[Tensor, ...]]:
    """Split detached diagonals into steps."""
    return {name: values.detach().unbind() for name, values in diagonals.items()}


def _by_step(
    pairs: Sequence[tuple[Sequence[Tensor], Sequence[Tensor]]], steps: int
) -> list[tuple[tuple[Tensor, Tensor], ...]]:
    """Regroup the factors of several sums as the pairs of each step."""
    return list(zip(*(zip(*pair, strict=True) for pair in pairs), strict=True)) if pairs else [()] * steps
