r"""What the state contributes in the multi-matrix cells: every gate's key weighs K products with matrices of its own.

    P = U_all h,   k' = softmax(P_kk k + P_kh h + x^k),   Σ_j k'_{a,j} P_{a,j}

and back, with D_{a,j} = k'_{a,j} δz_a, the sum over choices inside the product:

    δh += [D; δl] [U_all; P_kh],   δk'_{a,j} = ⟨P_{a,j}, δz_a⟩,   δl = k' ⊙ (δk' - ⟨k', δk'⟩),   δk += δl P_kk

U_all and P_kh are stacked, so that a step each way is one product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import linear

from unrolled.kernels.gated import Gradients, RecurrentProduct
from unrolled.kernels.products import rows

__all__ = ["MultiMatrixProduct"]


class MultiMatrixProduct(RecurrentProduct):
    """Products chosen among K, for each of several gates. The keys are the first part of the state.

    Its weights are U_all, shape (keys·d, d), P_kk as one matrix, P_kh and x^k, shape (time, batch, keys).

    Args:
        gates: how many gates there are, 1 or 4.
        choices: K.
    """

    keeps = 1

    def __init__(self, gates: int, choices: int) -> None:
        self.gates, self.choices = gates, choices

    def plain(self, t: int, state: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Choose, and compute the weighted sums."""
        weight_hh, weight_kk, weight_kh, for_key = weights
        hidden, per_gate = state[:, -weight_hh.shape[1] :], (self.gates, self.choices)
        logits = linear(state[:, : len(weight_kk)], weight_kk) + linear(hidden, weight_kh) + for_key[t]
        key = torch.softmax(logits.unflatten(-1, per_gate), dim=-1)
        products = linear(hidden, weight_hh).unflatten(-1, (*per_gate, hidden.shape[-1]))
        return (key.unsqueeze(-2) @ products).flatten(-3), (key.flatten(-2),)

    def forward(
        self, states: Tensor, weights: Sequence[Tensor]
    ) -> tuple[Callable[[int, Tensor, Tensor], None], tuple[Tensor, ...]]:
        """Get ready to run; the products are kept."""
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
            weighed = torch.addmm(x[t], key[t], key_to_key).add_(logits[t]).view(batch, self.gates, self.choices)
            torch.softmax(weighed, dim=-1, out=chosen[t + 1])
            mixed = chosen[t + 1].unsqueeze(-2) @ each[t]
            torch.add(offset, mixed.view(batch, -1), out=out)

        return multiply, (products,)

    def backward(
        self, states: Tensor, weights: Sequence[Tensor], kept: Sequence[Tensor], arrived: Tensor, by_z: Tensor
    ) -> tuple[Callable[[int], None], Callable[[], Gradients]]:
        """Get ready to go back."""
        weight_hh, weight_kk, weight_kh, _ = weights
        (products,) = kept
        (wide, d), keys, per_gate = weight_hh.shape, len(weight_kk), (self.gates, self.choices)
        stacked, scaled = torch.cat((weight_hh, weight_kh)), torch.empty_like(products)
        each = products[..., :wide].unflatten(-1, (*per_gate, d)).unbind()
        flat, out = scaled.unbind(), scaled[..., :wide].unflatten(-1, (*per_gate, d)).unbind()
        by_logits = scaled[..., wide:].unflatten(-1, per_gate).unbind()
        logits = scaled[..., wide:].unbind()
        chosen = states[1:, :, :keys].unflatten(-1, per_gate).unbind()
        by_chosen = arrived[1:, :, :keys].unflatten(-1, per_gate).unbind()
        by_key, by_hidden = arrived[..., :keys].unbind(), arrived[..., -d:].unbind()
        z = by_z.unflatten(-1, (self.gates, 1, d)).unbind()

        def multiply(t: int) -> None:
            torch.mul(each[t], z[t], out=out[t])
            found = out[t].sum(dim=-1).add_(by_chosen[t]).mul_(chosen[t])
            torch.addcmul(found, chosen[t], found.sum(dim=-1, keepdim=True), value=-1, out=by_logits[t])
            torch.mul(chosen[t].unsqueeze(-1), z[t], out=out[t])
            by_hidden[t].addmm_(flat[t], stacked)
            by_key[t].addmm_(logits[t], weight_kk)

        def gradients() -> Gradients:
            both = rows(scaled).T @ rows(states[:-1, :, -d:])
            by_key_to_key = rows(scaled[..., wide:]).T @ rows(states[:-1, :, :keys])
            return both[:wide], by_key_to_key, both[wide:], scaled[..., wide:]

        return multiply, gradients
