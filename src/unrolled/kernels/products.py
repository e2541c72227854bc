"""The contribution of the state to the pre-activations, in the kernels of gated cells.

    MatrixProduct     U h
    ScaledProduct     gain ⊙ (U h),           gain = α ⊙ (W x) + β_1
    FactoredProduct   W_hm m,                 m = x^m ⊙ (W_mh h)
    MultiMatrixProduct   Σ_j k'_j U_j h,      k' = softmax(P_kk k + P_kh h + x^k)

In the backward pass a step is one product (two for the last two), and the gradient of each matrix is one product over
all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from unrolled.kernels.base import differentiate_reference, needs_reference, needs_reference_gradient, time_chunks
from unrolled.kernels.gated import Gradients, Multiply, RecurrentProduct, Step

__all__ = ["FactoredProduct", "MatrixProduct", "MultiMatrixProduct", "ScaledProduct", "gain_and_offset", "rows"]


def rows(values: Tensor) -> Tensor:
    """Merge time and batch into one axis."""
    return values.flatten(0, 1)


class MatrixProduct(RecurrentProduct):
    """U h. Its weight is U."""

    saved_count = 0

    def reference(self, t: int, state: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Compute U h."""
        return linear(state[:, -weights[0].shape[1] :], weights[0]), ()

    def forward(self, states: Tensor, weights: Sequence[Tensor]) -> tuple[Multiply, tuple[Tensor, ...]]:
        """Prepare the forward pass."""
        (weight,) = weights
        hidden, transposed = states[..., -weight.shape[1] :].unbind(), weight.T.contiguous()

        def multiply(t: int, offset: Tensor, out: Tensor) -> None:
            torch.addmm(offset, hidden[t], transposed, out=out)

        return multiply, ()

    def backward(
        self, states: Tensor, weights: Sequence[Tensor], saved: Sequence[Tensor], grad_states: Tensor, grad_z: Tensor
    ) -> tuple[Step, Callable[[], Gradients]]:
        """Prepare the backward pass."""
        (weight,) = weights
        d, z = weight.shape[1], grad_z.unbind()
        grad_hidden = grad_states[..., -d:].unbind()

        def multiply(t: int) -> None:
            grad_hidden[t].addmm_(z[t], weight)

        return multiply, lambda: (rows(grad_z).T @ rows(states[:-1, :, -d:]),)


class ScaledProduct(RecurrentProduct):
    """Gain ⊙ (U h). Its weights are U and the gain of every step, shape (time, batch, gates)."""

    saved_count = 1

    def reference(self, t: int, state: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Compute gain ⊙ (U h)."""
        weight, gain = weights
        return gain[t] * linear(state[:, -weight.shape[1] :], weight), ()

    def forward(self, states: Tensor, weights: Sequence[Tensor]) -> tuple[Multiply, tuple[Tensor, ...]]:
        """Prepare the forward pass; it saves U h."""
        weight, gain = weights
        hidden, transposed = states[..., -weight.shape[1] :].unbind(), weight.T.contiguous()
        products = torch.empty_like(gain)
        each, gains = products.unbind(), gain.unbind()

        def multiply(t: int, offset: Tensor, out: Tensor) -> None:
            torch.mm(hidden[t], transposed, out=each[t])
            torch.addcmul(offset, gains[t], each[t], out=out)

        return multiply, (products,)

    def backward(
        self, states: Tensor, weights: Sequence[Tensor], saved: Sequence[Tensor], grad_states: Tensor, grad_z: Tensor
    ) -> tuple[Step, Callable[[], Gradients]]:
        """Prepare the backward pass."""
        weight, gain = weights
        d, z, gains = weight.shape[1], grad_z.unbind(), gain.unbind()
        grad_hidden, scaled = grad_states[..., -d:].unbind(), torch.empty_like(grad_z)
        grad_product = scaled.unbind()

        def multiply(t: int) -> None:
            torch.mul(gains[t], z[t], out=grad_product[t])
            grad_hidden[t].addmm_(grad_product[t], weight)

        return multiply, lambda: (rows(scaled).T @ rows(states[:-1, :, -d:]), saved[0] * grad_z)


class FactoredProduct(RecurrentProduct):
    """W_hm (x^m ⊙ (W_mh h)). Its weights are W_mh, W_hm and x^m, shape (time, batch, d)."""

    saved_count = 1

    def reference(self, t: int, state: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Compute W_hm m."""
        weight_mh, weight_hm, for_m = weights
        return linear(for_m[t] * linear(state[:, -len(weight_mh) :], weight_mh), weight_hm), ()

    def forward(self, states: Tensor, weights: Sequence[Tensor]) -> tuple[Multiply, tuple[Tensor, ...]]:
        """Prepare the forward pass; it saves W_mh h."""
        weight_mh, weight_hm, for_m = weights
        factors, m = torch.empty_like(for_m), torch.empty_like(for_m[0])
        to_m, to_gates = weight_mh.T.contiguous(), weight_hm.T.contiguous()
        hidden, x, each = states[..., -len(weight_mh) :].unbind(), for_m.unbind(), factors.unbind()

        def multiply(t: int, offset: Tensor, out: Tensor) -> None:
            torch.mm(hidden[t], to_m, out=each[t])
            torch.mul(x[t], each[t], out=m)
            torch.addmm(offset, m, to_gates, out=out)

        return multiply, (factors,)

    def backward(
        self, states: Tensor, weights: Sequence[Tensor], saved: Sequence[Tensor], grad_states: Tensor, grad_z: Tensor
    ) -> tuple[Step, Callable[[], Gradients]]:
        """Prepare the backward pass."""
        weight_mh, weight_hm, for_m = weights
        (factors,) = saved
        grad_m, grad_factor = torch.empty_like(for_m), torch.empty_like(for_m)
        d, x, z, of_m, of_factor = (
            len(weight_mh),
            for_m.unbind(),
            grad_z.unbind(),
            grad_m.unbind(),
            grad_factor.unbind(),
        )
        grad_hidden = grad_states[..., -d:].unbind()

        def multiply(t: int) -> None:
            torch.mm(z[t], weight_hm, out=of_m[t])
            torch.mul(x[t], of_m[t], out=of_factor[t])
            grad_hidden[t].addmm_(of_factor[t], weight_mh)

        def gradients() -> Gradients:
            grad_mh = rows(grad_factor).T @ rows(states[:-1, :, -d:])
            return grad_mh, rows(grad_z).T @ rows(for_m * factors), grad_m.mul_(factors)

        return multiply, gradients


class MultiMatrixProduct(RecurrentProduct):
    """A softmax-weighted sum of K products, for each of 1 or 4 gates. The keys are the first part of the state.

    Its weights are U_all, shape (keys·d, d), P_kk as one matrix, P_kh, and x^k, shape (time, batch, keys).
    """

    saved_count = 1

    def __init__(self, gates: int, choices: int) -> None:
        self.gates, self.choices = gates, choices

    def reference(self, t: int, state: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Compute the keys and the weighted sums."""
        weight_hh, weight_kk, weight_kh, for_key = weights
        hidden, per_gate = state[:, -weight_hh.shape[1] :], (self.gates, self.choices)
        logits = linear(state[:, : len(weight_kk)], weight_kk) + linear(hidden, weight_kh) + for_key[t]
        key = torch.softmax(logits.unflatten(-1, per_gate), dim=-1)
        products = linear(hidden, weight_hh).unflatten(-1, (*per_gate, hidden.shape[-1]))
        return (key.unsqueeze(-2) @ products).flatten(-3), (key.flatten(-2),)

    def forward(self, states: Tensor, weights: Sequence[Tensor]) -> tuple[Multiply, tuple[Tensor, ...]]:
        """Prepare the forward pass; it saves the products."""
        weight_hh, weight_kk, weight_kh, for_key = weights
        (time, batch), (wide, d), keys = for_key.shape[:2], weight_hh.shape, len(weight_kk)
        products = states.new_empty(time, batch, wide + keys)
        stacked, key_to_key = torch.cat((weight_hh, weight_kh)).T.contiguous(), weight_kk.T.contiguous()
        flat, hidden, x = products.unbind(), states[..., -d:].unbind(), for_key.unbind()
        each = products[..., :wide].unflatten(-1, (self.gates, self.choices, d)).unbind()
        key, logits = states[..., :keys].unbind(), products[..., wide:].unbind()
        chosen = states[..., :keys].unflatten(-1, (self.gates, self.choices)).unbind()

        def multiply(t: int, offset: Tensor, out: Tensor) -> None:
            torch.mm(hidden[t], stacked, out=flat[t])
            total = torch.addmm(x[t], key[t], key_to_key).add_(logits[t]).view(batch, self.gates, self.choices)
            torch.softmax(total, dim=-1, out=chosen[t + 1])
            mixed = chosen[t + 1].unsqueeze(-2) @ each[t]
            torch.add(offset, mixed.view(batch, -1), out=out)

        return multiply, (products,)

    def backward(
        self, states: Tensor, weights: Sequence[Tensor], saved: Sequence[Tensor], grad_states: Tensor, grad_z: Tensor
    ) -> tuple[Step, Callable[[], Gradients]]:
        """Prepare the backward pass."""
        weight_hh, weight_kk, weight_kh, _ = weights
        (products,) = saved
        (wide, d), keys, per_gate = weight_hh.shape, len(weight_kk), (self.gates, self.choices)
        stacked, scaled = torch.cat((weight_hh, weight_kh)), torch.empty_like(products)
        each = products[..., :wide].unflatten(-1, (*per_gate, d)).unbind()
        flat, out = scaled.unbind(), scaled[..., :wide].unflatten(-1, (*per_gate, d)).unbind()
        grad_logits = scaled[..., wide:].unflatten(-1, per_gate).unbind()
        flat_logits = scaled[..., wide:].unbind()
        chosen = states[1:, :, :keys].unflatten(-1, per_gate).unbind()
        grad_chosen = grad_states[1:, :, :keys].unflatten(-1, per_gate).unbind()
        grad_key, grad_hidden = grad_states[..., :keys].unbind(), grad_states[..., -d:].unbind()
        z = grad_z.unflatten(-1, (self.gates, 1, d)).unbind()

        def multiply(t: int) -> None:
            torch.mul(each[t], z[t], out=out[t])
            found = out[t].sum(dim=-1).add_(grad_chosen[t]).mul_(chosen[t])
            torch.addcmul(found, chosen[t], found.sum(dim=-1, keepdim=True), value=-1, out=grad_logits[t])
            torch.mul(chosen[t].unsqueeze(-1), z[t], out=out[t])
            grad_hidden[t].addmm_(flat[t], stacked)
            grad_key[t].addmm_(flat_logits[t], weight_kk)

        def gradients() -> Gradients:
            both = rows(scaled).T @ rows(states[:-1, :, -d:])
            grad_kk = rows(scaled[..., wide:]).T @ rows(states[:-1, :, :keys])
            return both[:wide], grad_kk, both[wide:], scaled[..., wide:]

        return multiply, gradients


def gain_and_offset(
    from_input: Tensor, alpha: Tensor, beta_hidden: Tensor, beta_input: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Compute the gain and the offset, both of the shape of W x, (time, batch, gates), from vectors of length gates."""
    tensors = (from_input, alpha, beta_hidden, beta_input, bias)
    return _reference(*tensors) if needs_reference(tensors) else _GainAndOffset.apply(*tensors)


def _reference(
    from_input: Tensor, alpha: Tensor, beta_hidden: Tensor, beta_input: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    offset = beta_input * from_input
    return alpha * from_input + beta_hidden, offset if bias is None else offset + bias


class _GainAndOffset(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, from_input: Tensor, alpha: Tensor, beta_hidden: Tensor, beta_input: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(from_input, alpha, beta_hidden, beta_input, bias)
        gain, offset = torch.empty_like(from_input), torch.empty_like(from_input)
        for start, stop in time_chunks(len(from_input), from_input[0].numel()):
            here = from_input[start:stop]
            torch.addcmul(beta_hidden, alpha, here, out=gain[start:stop])
            torch.mul(beta_input, here, out=offset[start:stop])
            if bias is not None:
                offset[start:stop] += bias
        return gain, offset

    @staticmethod
    def backward(ctx: Any, grad_gain: Tensor, grad_offset: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        if needs_reference_gradient(grad_gain):
            return differentiate_reference(_reference, tensors, (grad_gain, grad_offset))
        from_input, alpha, _, beta_input, bias = tensors
        found, sums = torch.empty_like(from_input), from_input.new_zeros(4, from_input.shape[-1])
        for start, stop in time_chunks(len(from_input), from_input[0].numel()):
            here, gain, offset, out = (rows(each[start:stop]) for each in (from_input, grad_gain, grad_offset, found))
            torch.mul(alpha, gain, out=out).addcmul_(beta_input, offset)
            ones = here.new_ones(len(here))
            for total, terms in zip(sums, (gain * here, gain, offset * here, offset), strict=True):
                total.addmv_(terms.T, ones)
        grad_alpha, grad_beta_hidden, grad_beta_input, grad_bias = sums
        return found, grad_alpha, grad_beta_hidden, grad_beta_input, None if bias is None else grad_bias
