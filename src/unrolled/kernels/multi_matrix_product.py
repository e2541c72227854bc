r"""The contribution of the state in multi-matrix cells: the key of every gate weights K products with its own matrices.

    P = U_all h,   k' = softmax(P_kk k + P_kh h + x^k),   Σ_j k'_{a,j} P_{a,j}

In the backward pass, with D_{a,j} = k'_{a,j} δz_a, the sum over choices is part of the product:

    δh += [D; δl] [U_all; P_kh],   δk'_{a,j} = ⟨P_{a,j}, δz_a⟩,   δl = k' ⊙ (δk' - ⟨k', δk'⟩),   δk += δl P_kk

U_all and P_kh are stacked, so that a step is one product in each direction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import linear

from unrolled.kernels.gated import Gradients, Multiply, RecurrentProduct, Step
from unrolled.kernels.products import rows

__all__ = ["MultiMatrixProduct"]


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
