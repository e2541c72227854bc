r"""What the state contributes to the pre-activations, in the kernels of gated cells.

    plain        U h
    integrated   gain ⊙ (U h),           gain = α ⊙ (W x) + β_1
    multiplied   W_hm m,                 m = x^m ⊙ (W_mh h)

Going back, a step is one product (two for the multiplied), and the gradient of each matrix one product over all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import linear

from unrolled.kernels.gated import Gradients, RecurrentProduct

__all__ = ["FactoredProduct", "MatrixProduct", "ScaledProduct", "rows"]


def rows(values: Tensor) -> Tensor:
    """Lay time and batch out as one axis."""
    return values.flatten(0, 1)


class MatrixProduct(RecurrentProduct):
    """U h. Its weight is U."""

    keeps = 0

    def plain(self, t: int, state: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Compute U h."""
        return linear(state[:, -weights[0].shape[1] :], weights[0]), ()

    def forward(
        self, states: Tensor, weights: Sequence[Tensor]
    ) -> tuple[Callable[[int, Tensor, Tensor], None], tuple[Tensor, ...]]:
        """Get ready to run."""
        (weight,) = weights
        hidden, transposed = states[..., -weight.shape[1] :].unbind(), weight.T.contiguous()

        def multiply(t: int, offset: Tensor, out: Tensor) -> None:
            torch.addmm(offset, hidden[t], transposed, out=out)

        return multiply, ()

    def backward(
        self,
        states: Tensor,
        weights: Sequence[Tensor],
        kept: Sequence[Tensor],
        arrived: Tensor,
        by_z: Tensor,
    ) -> tuple[Callable[[int], None], Callable[[], Gradients]]:
        """Get ready to go back."""
        (weight,) = weights
        d, each = weight.shape[1], by_z.unbind()
        by_hidden = arrived[..., -d:].unbind()

        def multiply(t: int) -> None:
            by_hidden[t].addmm_(each[t], weight)

        return multiply, lambda: (rows(by_z).T @ rows(states[:-1, :, -d:]),)


class ScaledProduct(RecurrentProduct):
    """Gain ⊙ (U h). Its weights are U and the gain of every step, shape (time, batch, gates)."""

    keeps = 1

    def plain(self, t: int, state: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Compute gain ⊙ (U h)."""
        weight, gain = weights
        return gain[t] * linear(state[:, -weight.shape[1] :], weight), ()

    def forward(
        self, states: Tensor, weights: Sequence[Tensor]
    ) -> tuple[Callable[[int, Tensor, Tensor], None], tuple[Tensor, ...]]:
        """Get ready to run; U h is kept."""
        weight, gain = weights
        hidden, transposed = states[..., -weight.shape[1] :].unbind(), weight.T.contiguous()
        products = torch.empty_like(gain)
        each, gains = products.unbind(), gain.unbind()

        def multiply(t: int, offset: Tensor, out: Tensor) -> None:
            torch.mm(hidden[t], transposed, out=each[t])
            torch.addcmul(offset, gains[t], each[t], out=out)

        return multiply, (products,)

    def backward(
        self, states: Tensor, weights: Sequence[Tensor], kept: Sequence[Tensor], arrived: Tensor, by_z: Tensor
    ) -> tuple[Callable[[int], None], Callable[[], Gradients]]:
        """Get ready to go back."""
        weight, gain = weights
        d, each, gains = weight.shape[1], by_z.unbind(), gain.unbind()
        by_hidden, scaled = arrived[..., -d:].unbind(), torch.empty_like(by_z)
        by_product = scaled.unbind()

        def multiply(t: int) -> None:
            torch.mul(gains[t], each[t], out=by_product[t])
            by_hidden[t].addmm_(by_product[t], weight)

        return multiply, lambda: (rows(scaled).T @ rows(states[:-1, :, -d:]), kept[0] * by_z)


class FactoredProduct(RecurrentProduct):
    """W_hm (x^m ⊙ (W_mh h)). Its weights are W_mh, W_hm and x^m, shape (time, batch, d)."""

    keeps = 1

    def plain(self, t: int, state: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Compute W_hm m."""
        weight_mh, weight_hm, for_m = weights
        return linear(for_m[t] * linear(state[:, -len(weight_mh) :], weight_mh), weight_hm), ()

    def forward(
        self, states: Tensor, weights: Sequence[Tensor]
    ) -> tuple[Callable[[int, Tensor, Tensor], None], tuple[Tensor, ...]]:
        """Get ready to run; W_mh h is kept."""
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
        self, states: Tensor, weights: Sequence[Tensor], kept: Sequence[Tensor], arrived: Tensor, by_z: Tensor
    ) -> tuple[Callable[[int], None], Callable[[], Gradients]]:
        """Get ready to go back."""
        weight_mh, weight_hm, for_m = weights
        (factors,) = kept
        by_m, by_factor = torch.empty_like(for_m), torch.empty_like(for_m)
        d, x, each, of_m, of_factor = len(weight_mh), for_m.unbind(), by_z.unbind(), by_m.unbind(), by_factor.unbind()
        by_hidden = arrived[..., -d:].unbind()

        def multiply(t: int) -> None:
            torch.mm(each[t], weight_hm, out=of_m[t])
            torch.mul(x[t], of_m[t], out=of_factor[t])
            by_hidden[t].addmm_(of_factor[t], weight_mh)

        def gradients() -> Gradients:
            by_mh = rows(by_factor).T @ rows(states[:-1, :, -d:])
            return by_mh, rows(by_z).T @ rows(for_m * factors), by_m.mul_(factors)

        return multiply, gradients
