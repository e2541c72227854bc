r"""The kernel of the GRU whose reset gate stands before the product: r and z first, then U_n (r ⊙ h).

    δa = z(1-n²) ⊙ δh',   δu = δa U_n,   δz = (n - h) z(1-z) ⊙ δh',   δr = h r(1-r) ⊙ δu,
    δh += (1-z) ⊙ δh' + r ⊙ δu + [δr, δz] U_rz

with a the candidate's pre-activation and u = r ⊙ h. A step is two products each way.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from unrolled.kernels.base import SequenceKernel, stretches

__all__ = ["ResetBeforeKernel"]


class ResetBeforeKernel(SequenceKernel):
    """A GRU as first published. Its tensors are [x^r, x^z, x^n], h_0 and [U_r; U_z; U_n]."""

    @property
    def identity(self) -> Hashable:
        """There is one of it."""
        return type(self)

    def plain(self, *tensors: Any) -> Tensor:
        """Run step by step."""
        by_input, state, weight = tensors
        d, states = state.shape[1], [state]
        for x in by_input:
            h = states[-1]
            r, z = torch.sigmoid(x[:, : 2 * d] + linear(h, weight[: 2 * d])).chunk(2, dim=-1)
            n = torch.tanh(x[:, 2 * d :] + linear(r * h, weight[2 * d :]))
            states.append(h + z * (n - h))
        return torch.stack(states)

    def forward(self, *tensors: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run into one buffer; keep [r, z, n] and r ⊙ h."""
        by_input, state, weight = tensors
        time, (batch, d) = len(by_input), state.shape
        states = state.new_empty(time + 1, batch, d)
        states[0] = state
        gates, passed = torch.empty_like(by_input), state.new_empty(time, batch, d)
        to_gates, to_candidate = weight[: 2 * d].T.contiguous(), weight[2 * d :].T.contiguous()
        for_gates, for_candidate = (part.unbind() for part in by_input.split((2 * d, d), dim=-1))
        both, n = (part.unbind() for part in gates.split((2 * d, d), dim=-1))
        r, z = (part.unbind() for part in gates[..., : 2 * d].split(d, dim=-1))
        h, u = states.unbind(), passed.unbind()
        for t in range(time):
            torch.addmm(for_gates[t], h[t], to_gates, out=both[t]).sigmoid_()
            torch.mul(r[t], h[t], out=u[t])
            torch.addmm(for_candidate[t], u[t], to_candidate, out=n[t]).tanh_()
            torch.lerp(h[t], n[t], z[t], out=h[t + 1])
        return states, (gates, passed)

    def backward(
        self, gradient: Tensor, tensors: tuple[Any, ...], states: Tensor, kept: tuple[Tensor, ...]
    ) -> tuple[Tensor | None, ...]:
        """Carry δh alone through the loop."""
        by_input, state, weight = tensors
        gates, passed = kept
        d = state.shape[1]
        arrived, by_z, by_passed = gradient.clone(), torch.empty_like(by_input), torch.empty_like(passed)
        of_gates, of_candidate = weight.split((2 * d, d))
        by_reset, by_rest = (part.unbind() for part in by_z.split((d, 2 * d), dim=-1))
        by_both, by_n = (part.unbind() for part in by_z.split((2 * d, d), dim=-1))
        by_rest = [part.unflatten(-1, (2, d)) for part in by_rest]
        by_h, by_u, reset = arrived.unbind(), by_passed.unbind(), gates[..., :d].unbind()
        for start, stop in stretches(len(by_input), state.numel()):
            r, z, n = gates[start:stop].chunk(3, dim=-1)
            before = states[start:stop]
            local = torch.stack(((n - before) * (z - z * z), z * (1 - n * n)), dim=-2).unbind()
            of_reset, remains = (before * (r - r * r)).unbind(), (1 - z).unbind()
            for t in range(stop - 1, start - 1, -1):
                k = t - start
                torch.mul(local[k], by_h[t + 1].unsqueeze(1), out=by_rest[t])
                torch.mm(by_n[t], of_candidate, out=by_u[t])
                torch.mul(of_reset[k], by_u[t], out=by_reset[t])
                by_h[t].addcmul_(remains[k], by_h[t + 1]).addcmul_(reset[t], by_u[t]).addmm_(by_both[t], of_gates)
        flat = by_z.flatten(0, 1).T
        by_weight = torch.empty_like(weight)
        torch.mm(flat[: 2 * d], states[:-1].flatten(0, 1), out=by_weight[: 2 * d])
        torch.mm(flat[2 * d :], passed.flatten(0, 1), out=by_weight[2 * d :])
        return by_z, arrived[0], by_weight
