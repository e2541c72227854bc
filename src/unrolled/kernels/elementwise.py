r"""The element-wise updates of gated kernels: an activation, the gates of an LSTM, the gates of a GRU.

Each forward pass works in place on the pre-activations. The backward pass computes the slopes of many steps at once, so
that a step in its loop is two or three operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from unrolled.kernels.gated import Backward, ElementwiseUpdate, Forward, Gradients
from unrolled.linalg.activations import TANH, Activation

__all__ = ["ActivationUpdate", "GRUUpdate", "LSTMUpdate"]

_IN_PLACE: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh_,
    "sigmoid": torch.sigmoid_,
    "relu": torch.relu_,
}


class ActivationUpdate(ElementwiseUpdate):
    """h' = φ(z), with δz = φ'(z) ⊙ δh' and φ one of tanh, sigmoid and relu, whose slope follows from its value."""

    saved_count = 0

    def __init__(self, activation: Activation = TANH) -> None:
        self.activation = activation

    def reference(self, x: Tensor, product: Tensor, state: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Compute φ(z)."""
        return (self.activation(x + product),)

    def forward(self, from_input: Tensor, states: Tensor, weights: Sequence[Tensor]) -> Forward:
        """Prepare the forward pass."""
        rows, apply = states[1:, :, -from_input.shape[-1] :].unbind(), _IN_PLACE[self.activation.name]

        def step(t: int) -> None:
            apply(rows[t])

        return from_input.unbind(), rows, step, ()

    def backward(self, states: Tensor, saved: Sequence[Tensor], grad_states: Tensor, grad_z: Tensor) -> Backward:
        """Prepare the backward pass."""
        d = grad_z.shape[-1]
        hidden, grad_hidden, out = states[1:, :, -d:], grad_states[1:, :, -d:].unbind(), grad_z.unbind()
        local: dict[int, Tensor] = {}

        def slopes(start: int, stop: int) -> None:
            values = hidden[start:stop]
            local.update(zip(range(start, stop), self.activation.slope(values, values).unbind(), strict=True))

        def step(t: int) -> None:
            torch.mul(local.pop(t), grad_hidden[t], out=out[t])

        return slopes, step, lambda: (grad_z,)


class LSTMUpdate(ElementwiseUpdate):
    r"""c' = f ⊙ c + i ⊙ g, h' = o ⊙ \tanh(c'), from z = [i, f, g, o].

    L = [g i(1-i), c f(1-f), i(1-g²), \tanh(c') o(1-o)] and q = o (1 - \tanh² c') are computed for many steps at once. A
    backward step is then δc' += q ⊙ δh', δz = L ⊙ [δc', δc', δc', δh'], δc += f ⊙ δc'.
    """

    saved_count = 1

    def reference(self, x: Tensor, product: Tensor, state: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Compute c' and h'."""
        i, f, g, o = (x + product).chunk(4, dim=-1)
        before = state[:, -2 * i.shape[-1] : -i.shape[-1]]
        cell = torch.sigmoid(f) * before + torch.sigmoid(i) * torch.tanh(g)
        return cell, torch.sigmoid(o) * torch.tanh(cell)

    def forward(self, from_input: Tensor, states: Tensor, weights: Sequence[Tensor]) -> Forward:
        """Prepare the forward pass; z becomes the gates in place."""
        d = from_input.shape[-1] // 4
        z = torch.empty_like(from_input)
        cells, hidden = states[..., -2 * d : -d].unbind(), states[..., -d:].unbind()
        i, f, g, o = (part.unbind() for part in z.split(d, dim=-1))
        i_and_f = z[..., : 2 * d].unbind()

        def step(t: int) -> None:
            i_and_f[t].sigmoid_()
            g[t].tanh_()
            o[t].sigmoid_()
            torch.mul(f[t], cells[t], out=cells[t + 1])
            cells[t + 1].addcmul_(i[t], g[t])
            torch.tanh(cells[t + 1], out=hidden[t + 1])
            hidden[t + 1].mul_(o[t])

        return from_input.unbind(), z.unbind(), step, (z,)

    def backward(self, states: Tensor, saved: Sequence[Tensor], grad_states: Tensor, grad_z: Tensor) -> Backward:
        """Prepare the backward pass."""
        (gates,) = saved
        d = grad_z.shape[-1] // 4
        cells, forget = states[..., -2 * d : -d], gates[..., d : 2 * d].unbind()
        grad_cell, grad_hidden = grad_states[..., -2 * d : -d].unbind(), grad_states[..., -d:].unbind()
        of_cell, of_output = grad_z.unflatten(-1, (4, d))[:, :, :3].unbind(), grad_z[..., 3 * d :].unbind()
        local: dict[int, tuple[Tensor, Tensor, Tensor]] = {}

        def slopes(start: int, stop: int) -> None:
            i, _, g, o = gates[start:stop].chunk(4, dim=-1)
            squashed = torch.tanh(cells[start + 1 : stop + 1])
            found = torch.addcmul(gates[start:stop], gates[start:stop], gates[start:stop], value=-1)
            found = found.unflatten(-1, (4, d))
            found[..., 0, :] *= g
            found[..., 1, :] *= cells[start:stop]
            found[..., 2, :] = i * (1 - g * g)
            found[..., 3, :] *= squashed
            q = o * (1 - squashed * squashed)
            each = zip(found[..., :3, :].unbind(), found[..., 3, :].unbind(), q.unbind(), strict=True)
            local.update(zip(range(start, stop), each, strict=True))

        def step(t: int) -> None:
            by_three, by_output, q = local.pop(t)
            here = grad_cell[t + 1]
            here.addcmul_(q, grad_hidden[t + 1])
            torch.mul(by_three, here.unsqueeze(1), out=of_cell[t])
            torch.mul(by_output, grad_hidden[t + 1], out=of_output[t])
            grad_cell[t].addcmul_(forget[t], here)

        return slopes, step, lambda: (grad_z,)


class GRUUpdate(ElementwiseUpdate):
    r"""r, z = σ(…), n = \tanh(x^n + r ⊙ m), h' = n + z ⊙ (h - n), where m, the product, has its own bias.

    The factors of δh' for r, z and m, L = [k m r(1-r), (h - n) z(1-z), k r], are computed for many steps at once;
    k = (1-z)(1-n²) is the factor for x^n.
    """

    saved_count = 2
    weight_count = 1

    def reference(self, x: Tensor, product: Tensor, state: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Compute h'."""
        (bias,) = weights
        d = state.shape[-1]
        r, z = torch.sigmoid(x[:, : 2 * d] + product[:, : 2 * d]).chunk(2, dim=-1)
        m = product[:, 2 * d :] if bias is None else product[:, 2 * d :] + bias
        n = torch.tanh(x[:, 2 * d :] + r * m)
        return (n + z * (state - n),)

    def forward(self, from_input: Tensor, states: Tensor, weights: Sequence[Tensor]) -> Forward:
        """Prepare the forward pass; the pre-activations become [r, z, m] in place."""
        (bias,) = weights
        d = states.shape[-1]
        sums = from_input.clone()
        sums[..., 2 * d :] = 0 if bias is None else bias
        # a copy for one token of one sequence too, where contiguous() would return the input to be overwritten
        candidates = from_input[..., 2 * d :].clone(memory_format=torch.contiguous_format)
        r, z, m = (part.unbind() for part in sums.split(d, dim=-1))
        rows, n, hidden, both = sums.unbind(), candidates.unbind(), states.unbind(), sums[..., : 2 * d].unbind()

        def step(t: int) -> None:
            both[t].sigmoid_()
            n[t].addcmul_(r[t], m[t]).tanh_()
            torch.lerp(n[t], hidden[t], z[t], out=hidden[t + 1])

        return rows, rows, step, (sums, candidates)

    def backward(self, states: Tensor, saved: Sequence[Tensor], grad_states: Tensor, grad_z: Tensor) -> Backward:
        """Prepare the backward pass."""
        gates, candidates = saved
        d = states.shape[-1]
        through, update = grad_states.unbind(), gates[..., d : 2 * d].unbind()
        out = grad_z.unflatten(-1, (3, d)).unbind()
        by_candidate = torch.empty_like(candidates)
        local: dict[int, Tensor] = {}

        def slopes(start: int, stop: int) -> None:
            r, z, m = gates[start:stop].chunk(3, dim=-1)
            n = candidates[start:stop]
            by_n = 1 - n * n
            by_n = torch.addcmul(by_n, by_n, z, value=-1, out=by_candidate[start:stop])
            found = gates.new_empty(*n.shape[:2], 3, d)
            by_r, by_update, by_m = found.unbind(-2)
            torch.mul(by_n, r, out=by_m)
            torch.mul(by_m, m, out=by_r)
            by_r.addcmul_(by_r, r, value=-1)
            torch.sub(states[start:stop], n, out=by_update)
            by_update.mul_(torch.addcmul(z, z, z, value=-1))
            local.update(zip(range(start, stop), found.unbind(), strict=True))

        def step(t: int) -> None:
            torch.mul(local.pop(t), through[t + 1].unsqueeze(1), out=out[t])
            through[t].addcmul_(update[t], through[t + 1])

        def gradients() -> Gradients:
            grad_bias = grad_z[..., 2 * d :].sum((0, 1))
            torch.mul(by_candidate, grad_states[1:], out=grad_z[..., 2 * d :])
            return grad_z, grad_bias

        return slopes, step, gradients
