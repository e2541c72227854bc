"""One step of torch's cells as g, A and C by the formulas of the secant, and n-grams by loops over dense matrices.

Written from the formulas, for one sequence; it imports nothing of ours. The state of an LSTM is [c; h].
"""

from __future__ import annotations

import torch

sigmoid, tanh = torch.sigmoid, torch.tanh


def slope(function, start, end):
    """(φ(end) - φ(start)) / (end - start), entry by entry."""
    step = end - start
    same = step.abs() < 1e-12
    middle = start + step / 2
    derivative = {sigmoid: sigmoid(middle) * (1 - sigmoid(middle)), tanh: 1 - tanh(middle) ** 2}[function]
    return torch.where(same, derivative, (function(end) - function(start)) / torch.where(same, 1.0, step))


def rnn_step(w, u, b, bh, x0, x, h):
    a, z = w @ x0 + b + bh, w @ x + b + bh + u @ h
    s = torch.diag(slope(tanh, a, z))
    return tanh(a), s @ u, s @ w


def lstm_step(w, u, b, bh, x0, x, state):
    d = len(state) // 2
    c, h = state[:d], state[d:]
    a, z = (w @ x0 + b + bh).chunk(4), (w @ x + b + bh + u @ h).chunk(4)
    (i0, f0, o0), (i, f, o) = ([sigmoid(part[k]) for k in (0, 1, 3)] for part in (a, z))
    g0, g = tanh(a[2]), tanh(z[2])
    si, sf, so = (slope(sigmoid, a[k], z[k]) for k in (0, 1, 3))
    sg = slope(tanh, a[2], z[2])
    diag = torch.diag

    def through(m):  # what a product with these matrices adds to c
        mi, mf, mg, _ = m.chunk(4)
        return diag(sf * c / 2) @ mf + diag((i0 + i) / 2 * sg) @ mg + diag((g0 + g) / 2 * si) @ mi

    cell0, cell = i0 * g0, f * c + i * g
    sc = slope(tanh, cell0, cell)
    of_cell, of_gate = diag((o0 + o) / 2 * sc), diag((tanh(cell0) + tanh(cell)) / 2 * so)
    by_c, by_h, by_x = diag((f0 + f) / 2), through(u), through(w)
    top = torch.cat((by_c, by_h), dim=1)
    low = torch.cat((of_cell @ by_c, of_cell @ by_h + of_gate @ u.chunk(4)[3]), dim=1)
    inputs = torch.cat((by_x, of_cell @ by_x + of_gate @ w.chunk(4)[3]))
    return torch.cat((cell0, o0 * tanh(cell0))), torch.cat((top, low)), inputs


def gru_step(w, u, b, bh, x0, x, h):
    ar, az, an = (w @ x0 + b).chunk(3)
    hr, hz, hn = (u @ h).chunk(3)
    cr, cz, beta = bh.chunk(3)
    xr, xz, xn = (w @ (x - x0)).chunk(3)
    r0, z0, r, z = sigmoid(ar + cr), sigmoid(az + cz), sigmoid(ar + cr + xr + hr), sigmoid(az + cz + xz + hz)
    m = hn + beta
    pre0, pre = an + r0 * beta, an + xn + r * m
    n0, n = tanh(pre0), tanh(pre)
    sr, sz, sn = (
        slope(sigmoid, ar + cr, ar + cr + xr + hr),
        slope(sigmoid, az + cz, az + cz + xz + hz),
        slope(tanh, pre0, pre),
    )
    diag = torch.diag
    ur, uz, un = u.chunk(3)
    wr, wz, wn = w.chunk(3)
    outer, by_z = diag((1 - (z0 + z) / 2) * sn), diag(sz * (h - n0 - n) / 2)
    state = outer @ (diag((r0 + r) / 2) @ un + diag(sr * (beta + m) / 2) @ ur) + by_z @ uz + diag((z0 + z) / 2)
    inputs = outer @ (wn + diag(sr * (beta + m) / 2) @ wr) + by_z @ wz
    return (1 - z0) * n0, state, inputs


def terms(gs, matrices):
    """v_{i:t} = A_t … A_{i+1} g_i by loops: a dictionary of (i, t)."""
    found = {}
    for i, g in enumerate(gs):
        v = g
        for t in range(i, len(gs)):
            v = g if t == i else matrices[t] @ v
            found[i, t] = v
    return found
