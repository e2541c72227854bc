r"""The contribution of the state to the pre-activations, in the kernels of gated cells.

    MatrixProduct     U h
    ScaledProduct     gain ⊙ (U h),           gain = α ⊙ (W x) + β_1
    FactoredProduct   W_hm m,                 m = x^m ⊙ (W_mh h)

In the backward pass a step is one product (two for the factored one), and the gradient of each matrix is one product
over all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import linear

from unrolled.kernels.gated import Gradients, Multiply, RecurrentProduct, Step

__all__ = ["FactoredProduct", "MatrixProduct", "ScaledProduct", "rows"]


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
