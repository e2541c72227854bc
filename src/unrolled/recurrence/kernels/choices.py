r"""The kernel of the multi-matrix cells: every gate's key weighs K products with matrices of its own.

    P = U_all h,   k' = softmax(P_kk k + P_kh h + x^k),   z_a = x_a + Σ_j k'_{a,j} P_{a,j}

and back, with D_{a,j} = k'_{a,j} δz_a, the sum over choices inside the product:

    δh += D U_all + δl P_kh,   δk'_{a,j} = ⟨P_{a,j}, δz_a⟩,   δl = k' ⊙ (δk' - ⟨k', δk'⟩),   δk += δl P_kk

The gradients of U_all, P_kh and P_kk are one product each, over all steps.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from unrolled.recurrence.kernels.gates import gate_slopes, gates_backward, gates_forward, plain_gates
from unrolled.recurrence.kernels.sequence import SequenceKernel, stretches

__all__ = ["ChoicesKernel"]


class ChoicesKernel(SequenceKernel):
    """An Elman network (one key) or an LSTM (four) whose products are chosen among K.

    Its tensors are x^z, x^k, U_all, P_kk as one matrix, P_kh and s_0 = [k; h] or [k; c; h].

    Args:
        keys: how many keys there are, 1 or 4.
        choices: K.
        units: d.
    """

    def __init__(self, keys: int, choices: int, units: int) -> None:
        self.keys, self.choices, self.units = keys, choices, units
        self.sizes = (keys * choices, *([units] * (2 if keys > 1 else 1)))

    def plain(self, *tensors: Any) -> Tensor:
        """Run step by step."""
        by_input, for_key, weight_hh, weight_kk, weight_kh, state = tensors
        states, per_key = [state], (self.keys, self.choices)
        for x, x_key in zip(by_input, for_key, strict=True):
            key, *_, hidden = states[-1].split(self.sizes, dim=-1)
            logits = linear(key, weight_kk) + linear(hidden, weight_kh) + x_key
            key = torch.softmax(logits.unflatten(-1, per_key), dim=-1)
            products = linear(hidden, weight_hh).unflatten(-1, (*per_key, self.units))
            z = x + (key.unsqueeze(-2) @ products).flatten(-3)
            if self.keys == 1:
                parts: tuple[Tensor, ...] = (torch.tanh(z),)
            else:
                parts = plain_gates(z, states[-1][:, self.sizes[0] : self.sizes[0] + self.units])
            states.append(torch.cat((key.flatten(-2), *parts), dim=-1))
        return torch.stack(states)

    def forward(self, *tensors: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run into one buffer; keep the products and the gates."""
        by_input, for_key, weight_hh, weight_kk, weight_kh, state = tensors
        time, batch = by_input.shape[:2]
        states = state.new_empty(time + 1, batch, sum(self.sizes))
        states[0] = state
        products = state.new_empty(time, batch, len(weight_hh))
        gates = by_input.clone()
        key, *cell, hidden = (part.unbind() for part in states.split(self.sizes, dim=-1))
        to_products, to_key, key_to_key = weight_hh.T.contiguous(), weight_kh.T.contiguous(), weight_kk.T.contiguous()
        per_key = (batch * self.keys, self.choices, self.units)
        zs, x_keys = gates.unbind(), for_key.unbind()
        for t, product in enumerate(products.unbind()):
            torch.mm(hidden[t], to_products, out=product)
            logits = torch.addmm(x_keys[t], hidden[t], to_key).addmm_(key[t], key_to_key)
            chosen = torch.softmax(logits.view(-1, 1, self.choices), dim=-1)
            key[t + 1].copy_(chosen.view(batch, -1))
            zs[t].view(-1, 1, self.units).baddbmm_(chosen, product.view(per_key))
            if self.keys == 1:
                torch.tanh(zs[t], out=hidden[t + 1])
            else:
                gates_forward(zs[t], cell[0][t], cell[0][t + 1], hidden[t + 1])
        return states, (products, gates)

    def backward(
        self, gradient: Tensor, tensors: tuple[Any, ...], states: Tensor, kept: tuple[Tensor, ...]
    ) -> tuple[Tensor | None, ...]:
        """Carry δk, δc and δh alone through the loop."""
        by_input, for_key, weight_hh, weight_kk, weight_kh, state = tensors
        products, gates = kept
        time, batch, d = len(by_input), state.shape[0], self.units
        arrived, by_z = gradient.clone(), torch.empty_like(by_input)
        by_logits, scaled = torch.empty_like(for_key), torch.empty_like(products)
        by_key, *by_cell, by_hidden = (part.unbind() for part in arrived.split(self.sizes, dim=-1))
        keys, *cells, hidden = states.split(self.sizes, dim=-1)
        per_key = (batch * self.keys, self.choices)
        chosen = keys[1:].reshape(time, *per_key).unbind()
        zs, logits, rows, products_at = by_z.unbind(), by_logits.unbind(), scaled.unbind(), products.unbind()
        for start, stop in stretches(time, batch * d):
            if self.keys == 1:
                slopes, q = 1 - hidden[start + 1 : stop + 1].square(), None
            else:
                slopes, q = gate_slopes(gates[start:stop], cells[0][start:stop], cells[0][start + 1 : stop + 1])
            for t in range(stop - 1, start - 1, -1):
                k, z = t - start, zs[t].view(-1, d)
                if q is None:
                    torch.mul(slopes[k], by_hidden[t + 1], out=zs[t])
                else:
                    forget, cell = gates[t, :, d : 2 * d], by_cell[0]
                    out = zs[t].view(batch, 4, d)
                    gates_backward(slopes[k], q[k], forget, cell[t + 1], by_hidden[t + 1], cell[t], out)
                torch.mul(chosen[t].unsqueeze(-1), z.unsqueeze(1), out=rows[t].view(*per_key, d))
                found = torch.bmm(products_at[t].view(*per_key, d), z.unsqueeze(-1)).squeeze(-1)
                found += by_key[t + 1].reshape(per_key)
                found *= chosen[t]
                total = found.sum(dim=-1, keepdim=True)
                torch.addcmul(found, chosen[t], total, value=-1, out=logits[t].view(per_key))
                by_hidden[t].addmm_(rows[t], weight_hh).addmm_(logits[t], weight_kh)
                by_key[t].addmm_(logits[t], weight_kk)
        flat, before = by_logits.flatten(0, 1).T, hidden[:-1].reshape(-1, d)
        by_hh, by_kh = scaled.flatten(0, 1).T @ before, flat @ before
        return by_z, by_logits, by_hh, flat @ keys[:-1].reshape(-1, keys.shape[-1]), by_kh, arrived[0]
