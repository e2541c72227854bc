"""Independent references in float64: plain loops over one sequence, dense matrices, formulas copied from nobody's code.

Nothing here imports the package. Each function works on one example: inputs (time, input), no batch.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

Weights = dict[str, Tensor]


def layer_weights(rnn: nn.RNNBase, layer: int = 0, reverse: bool = False) -> Weights:
    """One layer's weights in float64, with zeros where there is no bias."""
    suffix = f"_l{layer}" + ("_reverse" if reverse else "")
    weights = {k: getattr(rnn, k + suffix).detach().double() for k in ("weight_ih", "weight_hh")}
    for name in ("bias_ih", "bias_hh"):
        weights[name] = (
            getattr(rnn, name + suffix).detach().double()
            if rnn.bias
            else torch.zeros(len(weights["weight_ih"])).double()
        )
    if rnn.proj_size:
        weights["weight_hr"] = getattr(rnn, "weight_hr" + suffix).detach().double()
    return weights


def elman_step(w: Weights, x: Tensor, s: Tensor, phi: str = "tanh") -> Tensor:
    return getattr(torch, phi)(w["weight_ih"] @ x + w["bias_ih"] + w["weight_hh"] @ s + w["bias_hh"])


def gru_step(w: Weights, x: Tensor, h: Tensor) -> Tensor:
    d = len(h)
    i, j = w["weight_ih"] @ x + w["bias_ih"], w["weight_hh"] @ h + w["bias_hh"]
    r, z = torch.sigmoid(i[:d] + j[:d]), torch.sigmoid(i[d : 2 * d] + j[d : 2 * d])
    n = torch.tanh(i[2 * d :] + r * j[2 * d :])
    return (1 - z) * n + z * h


def lstm_step(w: Weights, x: Tensor, s: Tensor) -> Tensor:
    d = len(w["weight_ih"]) // 4
    c, h = s[:d], s[d:]
    a = w["weight_ih"] @ x + w["bias_ih"] + w["weight_hh"] @ h + w["bias_hh"]
    i, f, g, o = (
        torch.sigmoid(a[:d]),
        torch.sigmoid(a[d : 2 * d]),
        torch.tanh(a[2 * d : 3 * d]),
        torch.sigmoid(a[3 * d :]),
    )
    c = f * c + i * g
    h = o * torch.tanh(c)
    return torch.cat([c, w["weight_hr"] @ h if "weight_hr" in w else h])


STEPS = {nn.RNN: elman_step, nn.GRU: gru_step, nn.LSTM: lstm_step}


def gru_zero_jacobian(w: Weights, x: Tensor) -> Tensor:
    """Spec 2.1, the closed form at h = 0, n with r * b_hn."""
    d = w["weight_hh"].shape[1]
    i, b = w["weight_ih"] @ x + w["bias_ih"], w["bias_hh"]
    r, z = torch.sigmoid(i[:d] + b[:d]), torch.sigmoid(i[d : 2 * d] + b[d : 2 * d])
    n = torch.tanh(i[2 * d :] + r * b[2 * d :])
    Ur, Uz, Un = w["weight_hh"].split(d)
    slope = (1 - z) * (1 - n**2)
    return (
        torch.diag(z)
        + torch.diag(-n * z * (1 - z)) @ Uz
        + torch.diag(slope * r) @ Un
        + torch.diag(slope * b[2 * d :] * r * (1 - r)) @ Ur
    )


def lstm_zero_jacobian(w: Weights, x: Tensor) -> Tensor:
    """Spec 2.1, blocks [[B, D], [E, F]] at s = 0."""
    d = w["weight_hh"].shape[1]
    a = w["weight_ih"] @ x + w["bias_ih"] + w["bias_hh"]
    i, f, g, o = (
        torch.sigmoid(a[:d]),
        torch.sigmoid(a[d : 2 * d]),
        torch.tanh(a[2 * d : 3 * d]),
        torch.sigmoid(a[3 * d :]),
    )
    Ui, _, Ug, Uo = w["weight_hh"].split(d)
    B = torch.diag(f)
    D = torch.diag(g * i * (1 - i)) @ Ui + torch.diag(i * (1 - g**2)) @ Ug
    q = torch.diag(o * (1 - torch.tanh(i * g) ** 2))
    return torch.cat(
        [
            torch.cat([B, D], 1),
            torch.cat([q @ B, q @ D + torch.diag(torch.tanh(i * g) * o * (1 - o)) @ Uo], 1),
        ]
    )


def gru_activation(w: Weights, x: Tensor) -> tuple[Tensor, Tensor]:
    """Sequence-level features, eq. 10-11, with both biases of a gate in x^a."""
    d = w["weight_hh"].shape[1]
    a = w["weight_ih"] @ x + w["bias_ih"] + w["bias_hh"]
    xr, xz, xn = a.split(d)
    _, Uz, Un = w["weight_hh"].split(d)
    A = (
        torch.eye(d).double() / 2
        + Un / 4
        + torch.diag(xz) / 4
        - torch.diag(xn) @ Uz / 4
        + torch.diag(xr - xz - xz * xr / 2) @ Un / 8
    )
    return xn / 2 - xn * xz / 4, A


def lstm_activation(w: Weights, x: Tensor) -> tuple[Tensor, Tensor]:
    """Sequence-level features, eq. 16."""
    d = w["weight_hh"].shape[1]
    a = w["weight_ih"] @ x + w["bias_ih"] + w["bias_hh"]
    xi, xf, xg, xo = a.split(d)
    Ui, _, Ug, Uo = w["weight_hh"].split(d)
    gc = (xi + 2) * xg / 4
    B = torch.diag(xf + 2) / 4
    D = torch.diag(xi + 2) @ Ug / 4 + torch.diag(xg) @ Ui / 4
    E = torch.diag(xo + 2) @ B / 4
    F = torch.diag(xo + 2) @ D / 4 + torch.diag(gc) @ Uo / 4
    return torch.cat([gc, (xo + 2) * gc / 4]), torch.cat([torch.cat([B, D], 1), torch.cat([E, F], 1)])


def gru_secant(w: Weights, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """(g, A) of the secant, term by term: z = a + b with a of the input alone and b of the state."""
    d = len(h)
    a_r, a_z, a_n = (w["weight_ih"] @ x + w["bias_ih"]).split(d)
    U_r, U_z, U_n = w["weight_hh"].split(d)
    beta_r, beta_z, beta_n = w["bias_hh"].split(d)
    a_r, a_z, b_r, b_z, b_n = a_r + beta_r, a_z + beta_z, U_r @ h, U_z @ h, U_n @ h
    r0, z0, r, z = (torch.sigmoid(v) for v in (a_r, a_z, a_r + b_r, a_z + b_z))
    S_r, S_z = (r - r0) / b_r, (z - z0) / b_z
    m = b_n + beta_n
    start, end = a_n + r0 * beta_n, a_n + r * m
    n0, n = torch.tanh(start), torch.tanh(end)
    S_n = (n - n0) / (end - start)
    by_n = (1 - (z0 + z) / 2) * S_n
    A = (
        torch.diag(by_n * (r0 + r) / 2) @ U_n
        + torch.diag(by_n * S_r * (beta_n + m) / 2) @ U_r
        + torch.diag(S_z * (h - n0 - n) / 2) @ U_z
        + torch.diag((z0 + z) / 2)
    )
    return (1 - z0) * n0, A


def lstm_secant(w: Weights, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """(g, A) of the secant, term by term."""
    d = len(w["weight_ih"]) // 4
    c, h = s[:d], s[d:]
    a = (w["weight_ih"] @ x + w["bias_ih"] + w["bias_hh"]).split(d)
    U = w["weight_hh"].split(d)
    b = [u @ h for u in U]
    phi = (torch.sigmoid, torch.sigmoid, torch.tanh, torch.sigmoid)
    i0, f0, g0, o0 = (p(z) for p, z in zip(phi, a, strict=True))
    i, f, g, o = (p(z + v) for p, z, v in zip(phi, a, b, strict=True))
    S_i, S_f, S_g, S_o = ((new - old) / v for new, old, v in zip((i, f, g, o), (i0, f0, g0, o0), b, strict=True))
    c0, c1 = i0 * g0, f * c + i * g
    S_c = (torch.tanh(c1) - torch.tanh(c0)) / (c1 - c0)
    B = torch.diag((f0 + f) / 2)
    D = torch.diag(S_f * c / 2) @ U[1] + torch.diag((i0 + i) * S_g / 2) @ U[2] + torch.diag((g0 + g) * S_i / 2) @ U[0]
    q = torch.diag((o0 + o) * S_c / 2)
    last = torch.diag((torch.tanh(c0) + torch.tanh(c1)) * S_o / 2) @ U[3]
    start = torch.cat([c0, o0 * torch.tanh(c0)])
    return start, torch.cat([torch.cat([B, D], 1), torch.cat([q @ B, q @ D + last], 1)])


def jacobian(step, x: Tensor, s: Tensor) -> Tensor:
    """∂f/∂s by reverse mode."""
    return torch.autograd.functional.jacobian(lambda v: step(x, v), s)


def affine(step, rule: str, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """(g, A) of one step by the definitions of spec 2.1, 2.3, 2.4, with 20 Gauss nodes for the path."""
    zero = torch.zeros_like(s)
    if rule == "zero":
        return step(x, zero), jacobian(step, x, zero)
    if rule == "operating":
        A = jacobian(step, x, s)
        return step(x, s) - A @ s, A
    if rule == "path":
        nodes, weights = np.polynomial.legendre.leggauss(20)
        A = sum(0.5 * w * jacobian(step, x, (0.5 + 0.5 * a) * s) for a, w in zip(nodes, weights, strict=True))
        return step(x, zero), A
    if rule.startswith("taylor"):
        order = int(rule[7:-1]) if "(" in rule else 2
        along = lambda a: jacobian(step, x, a * s)
        # derivatives of α -> J(x, αs) from its polynomial fit near 0: exact enough in float64 for low orders
        points = 0.02 * torch.cos(torch.pi * (torch.arange(12).double() + 0.5) / 12)
        values = torch.stack([along(a).flatten() for a in points])
        fit = torch.linalg.lstsq((points[:, None] / 0.02) ** torch.arange(12).double(), values).solution
        A = sum(fit[j] / 0.02**j / (j + 1) for j in range(order))
        return step(x, zero), A.view(len(s), len(s))
    raise ValueError(rule)


def run(step, xs: Tensor, s: Tensor) -> list[Tensor]:
    states = [s]
    for x in xs:
        states.append(step(x, states[-1]))
    return states


def ngrams(steps: list[tuple[Tensor, Tensor]]) -> Tensor:
    """v_{i:t} = A_t … A_{i+1} g_i by matrix-vector products, one at a time: shape (end, start, state)."""
    T, n = len(steps), len(steps[0][0])
    out = torch.zeros(T, T, n, dtype=torch.float64)
    for i in range(T):
        v = steps[i][0]
        out[i, i] = v
        for t in range(i + 1, T):
            v = steps[t][1] @ v
            out[t, i] = v
    return out


def stack_step(rnn: nn.RNNBase):
    """A uni-directional stack as one step over all layers' states."""
    base = next(k for k in STEPS if isinstance(rnn, k))
    weights = [layer_weights(rnn, k) for k in range(rnn.num_layers)]
    out = rnn.proj_size or rnn.hidden_size
    size = out + (rnn.hidden_size if base is nn.LSTM else 0)

    def step(x: Tensor, s: Tensor) -> Tensor:
        new = []
        for w, part in zip(weights, s.split(size), strict=True):
            if base is nn.RNN:
                new.append(elman_step(w, x, part, rnn.nonlinearity))
            else:
                new.append(STEPS[base](w, x, part))
            x = new[-1][-out:]
        return torch.cat(new)

    return step, size * rnn.num_layers


def relative(a: Tensor, b: Tensor) -> float:
    return float((a - b).norm() / max(float(b.norm()), math.ulp(1.0)))
