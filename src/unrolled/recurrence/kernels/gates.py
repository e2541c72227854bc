r"""An LSTM's point-wise part, z = [i, f, g, o] → (c', h'), forward in place and backward in two halves.

What can be known of all steps at once, L = [g i(1-i), c f(1-f), i(1-g²), \tanh(c') o(1-o)] and q = o (1 - \tanh² c'),
is computed for a stretch of them; a step back then is δc' += q ⊙ δh', δz = L ⊙ [δc', δc', δc', δh'],
δc += f ⊙ δc'.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["gate_slopes", "gates_backward", "gates_forward", "plain_gates"]


def plain_gates(z: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """Compute c' and h' in differentiable operations.

    Args:
        z: pre-activations, shape (…, 4·d).
        before: c, shape (…, d).

    Returns:
        c' and h'.
    """
    i, f, g, o = z.chunk(4, dim=-1)
    cell = torch.sigmoid(f) * before + torch.sigmoid(i) * torch.tanh(g)
    return cell, torch.sigmoid(o) * torch.tanh(cell)


def gates_forward(z: Tensor, before: Tensor, cell: Tensor, hidden: Tensor) -> None:
    """Turn the pre-activations into gates where they stand, and write c' and h'.

    Args:
        z: pre-activations, then gates, shape (batch, 4·d).
        before: c, shape (batch, d).
        cell: where c' goes.
        hidden: where h' goes.
    """
    d = z.shape[-1] // 4
    z[:, : 2 * d].sigmoid_()
    z[:, 2 * d : 3 * d].tanh_()
    z[:, 3 * d :].sigmoid_()
    i, f, g, o = z.split(d, dim=-1)
    torch.mul(f, before, out=cell)
    cell.addcmul_(i, g)
    torch.tanh(cell, out=hidden)
    hidden.mul_(o)


def gate_slopes(gates: Tensor, before: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
    """Compute L and q.

    Args:
        gates: [i, f, g, o], shape (time, batch, 4·d).
        before: c, shape (time, batch, d).
        cells: c', shape (time, batch, d).

    Returns:
        L, shape (time, batch, 4, d), and q, shape (time, batch, d).
    """
    i, _, g, o = gates.chunk(4, dim=-1)
    squashed = torch.tanh(cells)
    slopes = torch.addcmul(gates, gates, gates, value=-1).unflatten(-1, (4, -1))
    slopes[..., 0, :] *= g
    slopes[..., 1, :] *= before
    slopes[..., 2, :] = i * (1 - g * g)
    slopes[..., 3, :] *= squashed
    return slopes, o * (1 - squashed * squashed)


def gates_backward(
    slopes: Tensor, q: Tensor, forget: Tensor, by_cell: Tensor, by_hidden: Tensor, by_before: Tensor, out: Tensor
) -> None:
    """Take one step back through the gates.

    Args:
        slopes: L, shape (batch, 4, d).
        q: shape (batch, d).
        forget: f, shape (batch, d).
        by_cell: δc' from outside and from the step behind, to which h' adds its share.
        by_hidden: δh'.
        by_before: δc, to which is added.
        out: where δz goes, shape (batch, 4, d).
    """
    by_cell.addcmul_(q, by_hidden)
    torch.mul(slopes[:, :3], by_cell.unsqueeze(1), out=out[:, :3])
    torch.mul(slopes[:, 3], by_hidden, out=out[:, 3])
    by_before.addcmul_(forget, by_cell)
