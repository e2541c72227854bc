r"""The kernels of mRNN and mLSTM: m = x^m ⊙ (W_mh h) stands between the state and what reads it.

    δm = δz W_hm,   δ(W_mh h) = x^m ⊙ δm,   δx^m = (W_mh h) ⊙ δm

A step is two products forward and two back; the gradients of both weights are one product each, over all steps.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from unrolled.recurrence.kernels.gates import gate_slopes, gates_backward, gates_forward, plain_gates
from unrolled.recurrence.kernels.sequence import SequenceKernel, stretches

__all__ = ["MLSTMKernel", "MRNNKernel"]


class MRNNKernel(SequenceKernel):
    """An Elman network that reads m. Its tensors are [x^m, x^h], W_mh, W_hm and h_0."""

    def plain(self, *tensors: Any) -> Tensor:
        """Run step by step."""
        by_input, weight_mh, weight_hm, state = tensors
        states = [state]
        for x in by_input:
            for_m, for_h = x.chunk(2, dim=-1)
            states.append(torch.tanh(for_h + linear(for_m * linear(states[-1], weight_mh), weight_hm)))
        return torch.stack(states)

    def forward(self, *tensors: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run into one buffer; keep W_mh h."""
        by_input, weight_mh, weight_hm, state = tensors
        time, (batch, d) = len(by_input), state.shape
        states = state.new_empty(time + 1, batch, d)
        states[0] = state
        factors, m = state.new_empty(time, batch, d), torch.empty_like(state)
        to_m, to_h = weight_mh.T.contiguous(), weight_hm.T.contiguous()
        for_m, for_h = (part.unbind() for part in by_input.split(d, dim=-1))
        rows = states.unbind()
        for t, factor in enumerate(factors.unbind()):
            torch.mm(rows[t], to_m, out=factor)
            torch.mul(for_m[t], factor, out=m)
            torch.addmm(for_h[t], m, to_h, out=rows[t + 1])
            rows[t + 1].tanh_()
        return states, (factors,)

    def backward(
        self, gradient: Tensor, tensors: tuple[Any, ...], states: Tensor, kept: tuple[Tensor, ...]
    ) -> tuple[Tensor | None, ...]:
        """Carry δh alone through the loop."""
        by_input, weight_mh, weight_hm, state = tensors
        (factors,) = kept
        d = state.shape[1]
        arrived, by_token, by_factor = gradient.clone(), torch.empty_like(by_input), torch.empty_like(factors)
        rows, x = arrived.unbind(), by_input[..., :d].unbind()
        by_m, by_z = (part.unbind() for part in by_token.split(d, dim=-1))
        slopes = (1 - states[1:] * states[1:]).unbind()
        for t, factor in reversed(list(enumerate(by_factor.unbind()))):
            torch.mul(slopes[t], rows[t + 1], out=by_z[t])
            torch.mm(by_z[t], weight_hm, out=by_m[t])
            torch.mul(x[t], by_m[t], out=factor)
            rows[t].addmm_(factor, weight_mh)
        m = by_input[..., :d] * factors
        by_hm = by_token[..., d:].flatten(0, 1).T @ m.flatten(0, 1)
        by_mh = by_factor.flatten(0, 1).T @ states[:-1].flatten(0, 1)
        by_token[..., :d] *= factors
        return by_token, by_mh, by_hm, arrived[0]


class MLSTMKernel(SequenceKernel):
    """An LSTM whose gates read m. Its tensors are [x^m, x^i, x^f, x^g, x^o], W_mh, W_hm and [c; h]_0."""

    def plain(self, *tensors: Any) -> Tensor:
        """Run step by step."""
        by_input, weight_mh, weight_hm, state = tensors
        d, states = weight_mh.shape[0], [state]
        for x in by_input:
            m = x[:, :d] * linear(states[-1][:, d:], weight_mh)
            states.append(torch.cat(plain_gates(x[:, d:] + linear(m, weight_hm), states[-1][:, :d]), dim=-1))
        return torch.stack(states)

    def forward(self, *tensors: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run into one buffer; keep W_mh h and the gates."""
        by_input, weight_mh, weight_hm, state = tensors
        time, batch, d = len(by_input), state.shape[0], weight_mh.shape[0]
        states = state.new_empty(time + 1, batch, 2 * d)
        states[0] = state
        factors, gates = state.new_empty(time, batch, d), state.new_empty(time, batch, 4 * d)
        m = state.new_empty(batch, d)
        to_m, to_gates = weight_mh.T.contiguous(), weight_hm.T.contiguous()
        cells, hidden = (part.unbind() for part in states.split(d, dim=-1))
        for_m, for_gates = (part.unbind() for part in by_input.split((d, 4 * d), dim=-1))
        for t, (factor, z) in enumerate(zip(factors.unbind(), gates.unbind(), strict=True)):
            torch.mm(hidden[t], to_m, out=factor)
            torch.mul(for_m[t], factor, out=m)
            torch.addmm(for_gates[t], m, to_gates, out=z)
            gates_forward(z, cells[t], cells[t + 1], hidden[t + 1])
        return states, (factors, gates)

    def backward(
        self, gradient: Tensor, tensors: tuple[Any, ...], states: Tensor, kept: tuple[Tensor, ...]
    ) -> tuple[Tensor | None, ...]:
        """Carry δc and δh alone through the loop."""
        by_input, weight_mh, weight_hm, state = tensors
        factors, gates = kept
        d = weight_mh.shape[0]
        arrived, by_token, by_factor = gradient.clone(), torch.empty_like(by_input), torch.empty_like(factors)
        by_cell, by_hidden = (part.unbind() for part in arrived.split(d, dim=-1))
        by_m, by_z = (part.unbind() for part in by_token.split((d, 4 * d), dim=-1))
        by_gate = by_token[..., d:].unflatten(-1, (4, d)).unbind()
        x, forget, rows = by_input[..., :d].unbind(), gates[..., d : 2 * d].unbind(), by_factor.unbind()
        cells = states[..., :d]
        for start, stop in stretches(len(by_input), state.shape[0] * d):
            local, q = gate_slopes(gates[start:stop], cells[start:stop], cells[start + 1 : stop + 1])
            for t in range(stop - 1, start - 1, -1):
                k = t - start
                gates_backward(local[k], q[k], forget[t], by_cell[t + 1], by_hidden[t + 1], by_cell[t], by_gate[t])
                torch.mm(by_z[t], weight_hm, out=by_m[t])
                torch.mul(x[t], by_m[t], out=rows[t])
                by_hidden[t].addmm_(rows[t], weight_mh)
        m = by_input[..., :d] * factors
        by_hm = by_token[..., d:].flatten(0, 1).T @ m.flatten(0, 1)
        by_mh = by_factor.flatten(0, 1).T @ states[:-1, :, d:].flatten(0, 1)
        by_token[..., :d] *= factors
        return by_token, by_mh, by_hm, arrived[0]
