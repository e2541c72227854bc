r"""Kernel of the GRU whose reset gate acts before the product: r and z first, then U_n (r ⊙ h).

    δa = z(1-n²) ⊙ δh',   δu = δa U_n,   δz = (n - h) z(1-z) ⊙ δh',   δr = h r(1-r) ⊙ δu,
    δh += (1-z) ⊙ δh' + r ⊙ δu + [δr, δz] U_rz

with a the candidate's pre-activation and u = r ⊙ h. A step is two products in each direction. The cell
has the same equations in `step`; the contract of a cell holds the two versions together.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from unrolled.kernels.base import SequenceKernel, time_chunks

__all__ = ["ResetBeforeKernel"]


class ResetBeforeKernel(SequenceKernel):
    """A GRU as first published. Its tensors are [x^r, x^z, x^n], h_0 and [U_r; U_z; U_n]."""

    @property
    def identity(self) -> Hashable:
        """The type, since the kernel has no settings."""
        return type(self)

    def reference(self, *tensors: Any) -> Tensor:
        """Run step by step."""
        from_input, state, weight = tensors
        d, states = state.shape[1], [state]
        for x in from_input:
            h = states[-1]
            r, z = torch.sigmoid(x[:, : 2 * d] + linear(h, weight[: 2 * d])).chunk(2, dim=-1)
            n = torch.tanh(x[:, 2 * d :] + linear(r * h, weight[2 * d :]))
            states.append(h + z * (n - h))
        return torch.stack(states)

    def forward(self, *tensors: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run into one buffer; save [r, z, n] and u."""
        from_input, state, weight = tensors
        time, (batch, d) = len(from_input), state.shape
        states = state.new_empty(time + 1, batch, d)
        states[0] = state
        gates, reset_state = torch.empty_like(from_input), state.new_empty(time, batch, d)
        to_gates, to_candidate = weight[: 2 * d].T.contiguous(), weight[2 * d :].T.contiguous()
        for_gates, for_candidate = (part.unbind() for part in from_input.split((2 * d, d), dim=-1))
        both, n = (part.unbind() for part in gates.split((2 * d, d), dim=-1))
        r, z = (part.unbind() for part in gates[..., : 2 * d].split(d, dim=-1))
        h, u = states.unbind(), reset_state.unbind()
        for t in range(time):
            torch.addmm(for_gates[t], h[t], to_gates, out=both[t]).sigmoid_()
            torch.mul(r[t], h[t], out=u[t])
            torch.addmm(for_candidate[t], u[t], to_candidate, out=n[t]).tanh_()
            torch.lerp(h[t], n[t], z[t], out=h[t + 1])
        return states, (gates, reset_state)

    def backward(
        self, gradient: Tensor, tensors: tuple[Any, ...], states: Tensor, saved: tuple[Tensor, ...]
    ) -> tuple[Tensor | None, ...]:
        """Propagate only δh through the loop."""
        from_input, state, weight = tensors
        gates, reset_state = saved
        d = state.shape[1]
        grad_states, grad_z, grad_u = gradient.clone(), torch.empty_like(from_input), torch.empty_like(reset_state)
        of_gates, of_candidate = weight.split((2 * d, d))
        to_reset, to_rest = (part.unbind() for part in grad_z.split((d, 2 * d), dim=-1))
        to_both, to_n = (part.unbind() for part in grad_z.split((2 * d, d), dim=-1))
        to_rest = [part.unflatten(-1, (2, d)) for part in to_rest]
        to_h, to_u, reset = grad_states.unbind(), grad_u.unbind(), gates[..., :d].unbind()
        for start, stop in time_chunks(len(from_input), state.numel()):
            r, z, n = gates[start:stop].chunk(3, dim=-1)
            before = states[start:stop]
            local = torch.stack(((n - before) * (z - z * z), z * (1 - n * n)), dim=-2).unbind()
            of_reset, remains = (before * (r - r * r)).unbind(), (1 - z).unbind()
            for t in range(stop - 1, start - 1, -1):
                k = t - start
                torch.mul(local[k], to_h[t + 1].unsqueeze(1), out=to_rest[t])
                torch.mm(to_n[t], of_candidate, out=to_u[t])
                torch.mul(of_reset[k], to_u[t], out=to_reset[t])
                to_h[t].addcmul_(remains[k], to_h[t + 1]).addcmul_(reset[t], to_u[t]).addmm_(to_both[t], of_gates)
        flat = grad_z.flatten(0, 1).T
        grad_weight = torch.empty_like(weight)
        torch.mm(flat[: 2 * d], states[:-1].flatten(0, 1), out=grad_weight[: 2 * d])
        torch.mm(flat[2 * d :], reset_state.flatten(0, 1), out=grad_weight[2 * d :])
        return grad_z, grad_states[0], grad_weight
