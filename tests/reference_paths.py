"""A deep bidirectional network by brute force: every path from a token to a state, one at a time, in float64.

Nothing here imports the package.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from reference import elman_step, gru_step, layer_weights, lstm_step


def secant_slope(phi, a, b):
    return torch.where(
        (b - a).abs() > 1e-9,
        (phi(b) - phi(a)) / (b - a),
        1 - torch.tanh(a) ** 2 if phi is torch.tanh else phi(a) * (1 - phi(a)),
    )


def secant_parts(w, u0, du, s, lstm):
    """g, A, C and the next state of one step whose input moves from u0 to u0 + du."""
    d = w["weight_hh"].shape[1]
    sig, tanh = torch.sigmoid, torch.tanh
    a = w["weight_ih"] @ u0 + w["bias_ih"]
    z = a + w["weight_ih"] @ du
    h = s[-d:]
    bh = w["bias_hh"]
    v = w["weight_hh"] @ h + bh
    W, U = w["weight_ih"].split(d), w["weight_hh"].split(d)
    if lstm:
        c = s[:d]
        phi = (sig, sig, tanh, sig)
        low, high = (a + bh).split(d), (z + v).split(d)
        (i0, f0, g0, o0), (i, f, g, o) = ([p(q) for p, q in zip(phi, each, strict=True)] for each in (low, high))
        S = [secant_slope(p, q, r) for p, q, r in zip(phi, low, high, strict=True)]
        c0, c1 = i0 * g0, f * c + i * g
        by = [(g0 + g) / 2 * S[0], c / 2 * S[1], (i0 + i) / 2 * S[2]]
        q = (o0 + o) / 2 * secant_slope(tanh, c0, c1)
        last = (tanh(c0) + tanh(c1)) / 2 * S[3]

        def rows(M):
            top = sum(k[:, None] * m for k, m in zip(by, M, strict=False))
            return top, q[:, None] * top + last[:, None] * M[3]

        top_h, bottom_h = rows(U)
        top_x, bottom_x = rows(W)
        keep = torch.diag((f0 + f) / 2)
        A = torch.cat([torch.cat([keep, top_h], 1), torch.cat([q[:, None] * keep, bottom_h], 1)])
        return torch.cat([c0, o0 * tanh(c0)]), A, torch.cat([top_x, bottom_x]), torch.cat([c1, o * tanh(c1)])
    (ar, az, an), (zr, zz, zn) = a.split(d), z.split(d)
    (br, bz, bn), (vr, vz, vn) = bh.split(d), v.split(d)
    r0, z0, r, zed = sig(ar + br), sig(az + bz), sig(zr + vr), sig(zz + vz)
    Sr, Sz = secant_slope(sig, ar + br, zr + vr), secant_slope(sig, az + bz, zz + vz)
    start, end = an + r0 * bn, zn + r * vn
    n0, n = tanh(start), tanh(end)
    by_n = (1 - (z0 + zed) / 2) * secant_slope(tanh, start, end)
    by_z, by_r = Sz * (h - n0 - n) / 2, by_n * Sr * (bn + vn) / 2
    A = (
        torch.diag((z0 + zed) / 2)
        + by_n[:, None] * ((r0 + r) / 2)[:, None] * U[2]
        + by_r[:, None] * U[0]
        + by_z[:, None] * U[1]
    )
    C = by_n[:, None] * W[2] + by_r[:, None] * W[0] + by_z[:, None] * W[1]
    return (1 - z0) * n0, A, C, (1 - zed) * n + zed * h


def parts_by_jacobians(step, x0, du, s, expansion):
    """g, A, C of ``operating`` (the Jacobian at the end) or ``path`` (its mean from (x0, 0) to (x0 + du, s))."""
    jacobian = torch.func.jacrev(step, argnums=(0, 1))
    if expansion == "operating":
        c, a = jacobian(x0 + du, s)
        return step(x0 + du, s) - a @ s - c @ du, a, c
    nodes, weights = np.polynomial.legendre.leggauss(40)
    found = [jacobian(x0 + (1 + n) / 2 * du, (1 + n) / 2 * s) for n in nodes]
    c, a = (sum(w / 2 * each[k] for w, each in zip(weights, found, strict=True)) for k in (0, 1))
    return step(x0, torch.zeros_like(s)), a, c


@dataclass
class Opened:
    """g, A and C of every layer, direction and token."""

    g: dict[tuple[int, int, int], Tensor]
    A: dict[tuple[int, int, int], Tensor]
    C: dict[tuple[int, int, int], Tensor]
    layers: int
    time: int
    hidden: int


def opened(rnn: nn.RNNBase, x: Tensor, expansion: str) -> Opened:
    """Expand a network on one sequence, x of shape (time, input)."""
    time, d = len(x), rnn.hidden_size
    lstm = isinstance(rnn, nn.LSTM)
    of_kind = {nn.RNN: elman_step, nn.GRU: gru_step, nn.LSTM: lstm_step}[type(rnn)]
    found = Opened({}, {}, {}, rnn.num_layers, time, d)
    alone, moved = list(x), [torch.zeros_like(each) for each in x]
    for layer in range(rnn.num_layers):
        hidden, base = [[None] * time for _ in range(2)], [[None] * time for _ in range(2)]
        for way in (0, 1):
            w = layer_weights(rnn, layer, way == 1)
            state = torch.zeros(2 * d if lstm else d).double()
            for t in range(time) if way == 0 else reversed(range(time)):
                step = lambda v, s, w=w: of_kind(w, v, s)
                if expansion == "secant" and not isinstance(rnn, nn.RNN):
                    g, a, c, _ = secant_parts(w, alone[t], moved[t], state, lstm)
                else:
                    g, a, c = parts_by_jacobians(step, alone[t], moved[t], state, expansion)
                state = step(alone[t] + moved[t], state)
                place = (layer, way, t)
                found.g[place], found.A[place], found.C[place] = g, a, c
                hidden[way][t], base[way][t] = state[-d:], g[-d:]
        alone = [torch.cat([base[0][t], base[1][t]]) for t in range(time)]
        moved = [torch.cat([hidden[0][t], hidden[1][t]]) - alone[t] for t in range(time)]
    return found


def paths(net: Opened) -> Iterator[tuple[int, int, int, int, int, int, Tensor]]:
    """Every path: (token, layer, direction, position, leftmost, rightmost, its vector in that layer's state)."""

    def walk(token, level, way, t, low, high, vector, alone):
        yield token, level, way, t, low, high, vector
        after = t + 1 if way == 0 else t - 1
        if 0 <= after < net.time:
            on = net.A[level, way, after] @ vector
            yield from walk(token, level, way, after, min(low, after), max(high, after), on, False)
        if not alone and level + 1 < net.layers:  # what a token alone makes is in g of the layer above
            both = torch.zeros(2 * net.hidden).double()
            both[way * net.hidden : (way + 1) * net.hidden] = vector[-net.hidden :]
            for turn in (0, 1):
                up = net.C[level + 1, turn, t] @ both
                yield from walk(token, level + 1, turn, t, low, high, up, False)

    for (level, way, t), g in net.g.items():
        yield from walk(t, level, way, t, t, t, g, True)
