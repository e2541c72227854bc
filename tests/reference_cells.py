"""The cells' equations once more: one example, one step, one matrix at a time. Nothing imports the package.

A reference takes weights by name, x of shape (input,), and the flat state; it returns the next flat state.
"""

from __future__ import annotations

import torch
from torch import Tensor

Weights = dict[str, Tensor]


def sigmoid(a: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-a))


def elman(w: Weights, x: Tensor, h: Tensor) -> Tensor:
    return torch.tanh(w["weight_ih"] @ x + w["bias_ih"] + w["weight_hh"] @ h + w["bias_hh"])


def gru(w: Weights, x: Tensor, h: Tensor) -> Tensor:
    Wr, Wz, Wn = w["weight_ih"].split(len(h))
    Ur, Uz, Un = w["weight_hh"].split(len(h))
    br, bz, bn = w["bias_ih"].split(len(h))
    cr, cz, cn = w["bias_hh"].split(len(h))
    r = sigmoid(Wr @ x + br + Ur @ h + cr)
    z = sigmoid(Wz @ x + bz + Uz @ h + cz)
    n = torch.tanh(Wn @ x + bn + r * (Un @ h + cn))
    return (1 - z) * n + z * h


def gru_before(w: Weights, x: Tensor, h: Tensor) -> Tensor:
    Wr, Wz, Wn = w["weight_ih"].split(len(h))
    Ur, Uz, Un = w["weight_hh"].split(len(h))
    br, bz, bn = w["bias"].split(len(h))
    r = sigmoid(Wr @ x + Ur @ h + br)
    z = sigmoid(Wz @ x + Uz @ h + bz)
    n = torch.tanh(Wn @ x + Un @ (r * h) + bn)
    return (1 - z) * h + z * n


def gated(pre: list[Tensor], c: Tensor) -> Tensor:
    """The LSTM's memory, from the pre-activations of i, f, g, o."""
    i, f, o = (sigmoid(pre[k]) for k in (0, 1, 3))
    new = f * c + i * torch.tanh(pre[2])
    return torch.cat([new, o * torch.tanh(new)])


def lstm(w: Weights, x: Tensor, s: Tensor) -> Tensor:
    c, h = s.chunk(2)
    pre = w["weight_ih"] @ x + w["bias_ih"] + w["weight_hh"] @ h + w["bias_hh"]
    return gated(list(pre.split(len(h))), c)


def tensor_rnn(w: Weights, x: Tensor, h: Tensor) -> Tensor:
    U = torch.zeros(len(h), len(h), dtype=h.dtype)
    for k, each in enumerate(w["weight_hh"].split(len(h))):
        U = U + x[k] * each
    return torch.tanh(w["weight_ih"] @ x + U @ h + w["bias"])


def mrnn(w: Weights, x: Tensor, h: Tensor) -> Tensor:
    Wmx, Whx = w["weight_ih"].split(len(h))
    m = (Wmx @ x) * (w["weight_mh"] @ h)
    return torch.tanh(Whx @ x + w["weight_hm"] @ m + w["bias"])


def mlstm(w: Weights, x: Tensor, s: Tensor) -> Tensor:
    c, h = s.chunk(2)
    d = len(h)
    m = (w["weight_ih"][:d] @ x) * (w["weight_mh"] @ h)
    gates = zip(w["weight_ih"][d:].split(d), w["weight_hm"].split(d), w["bias"].split(d), strict=True)
    return gated([W @ x + U @ m + b for W, U, b in gates], c)


def integrated(w: Weights, gate: int, a: Tensor, b: Tensor) -> Tensor:
    """α*(W x)*(U h) + β1*(U h) + β2*(W x) + b for one gate."""
    d = len(a)
    rows = slice(gate * d, (gate + 1) * d)
    return w["alpha"][rows] * a * b + w["beta_hidden"][rows] * b + w["beta_input"][rows] * a + w["bias"][rows]


def mi_rnn(w: Weights, x: Tensor, h: Tensor) -> Tensor:
    return torch.tanh(integrated(w, 0, w["weight_ih"] @ x, w["weight_hh"] @ h))


def mi_gru(w: Weights, x: Tensor, h: Tensor) -> Tensor:
    W, U = w["weight_ih"].split(len(h)), w["weight_hh"].split(len(h))
    r = sigmoid(integrated(w, 0, W[0] @ x, U[0] @ h))
    z = sigmoid(integrated(w, 1, W[1] @ x, U[1] @ h))
    n = torch.tanh(integrated(w, 2, W[2] @ x, r * (U[2] @ h)))
    return (1 - z) * n + z * h


def mi_lstm(w: Weights, x: Tensor, s: Tensor) -> Tensor:
    c, h = s.chunk(2)
    W, U = w["weight_ih"].split(len(h)), w["weight_hh"].split(len(h))
    return gated([integrated(w, a, W[a] @ x, U[a] @ h) for a in range(4)], c)


def choose(P: Tensor, key: Tensor, h: Tensor, x: Tensor) -> Tensor:
    """The next key: softmax(P [k; h; x])."""
    a = torch.exp(P @ torch.cat([key, h, x]))
    return a / a.sum()


def mixed(key: Tensor, stacked: Tensor) -> Tensor:
    """Σ_j k_j U_j, built as the papers write it."""
    return sum(k * U for k, U in zip(key, stacked.split(len(stacked) // len(key)), strict=True))


def mmrnn(w: Weights, x: Tensor, s: Tensor) -> Tensor:
    K = len(w["weight_kk"])
    h = s[K:]
    P = torch.cat([w["weight_kk"], w["weight_kh"], w["weight_kx"]], dim=1)
    key = choose(P, s[:K], h, x)
    return torch.cat([key, torch.tanh(mixed(key, w["weight_hh"]) @ h + w["weight_ih"] @ x + w["bias"])])


def mmlstm(w: Weights, x: Tensor, s: Tensor) -> Tensor:
    K, d = w["weight_kk"].shape[1], w["weight_hh"].shape[1]
    keys, c, h = s.split([4 * K, d, d])
    new_keys, pre = [], []
    for a in range(4):
        rows = slice(a * K, (a + 1) * K)
        P = torch.cat([w["weight_kk"][a], w["weight_kh"][rows], w["weight_kx"][rows]], dim=1)
        key = choose(P, keys[rows], h, x)
        U = mixed(key, w["weight_hh"].split(K * d)[a])
        pre.append(U @ h + w["weight_ih"].split(d)[a] @ x + w["bias"].split(d)[a])
        new_keys.append(key)
    return torch.cat([*new_keys, gated(pre, c)])


def shift(size: int, by: int) -> Tensor:
    """The matrix that moves entries down by ``by``; its transpose moves them up."""
    S = torch.zeros(size, size, dtype=torch.float64)
    for k in range(size - by):
        S[k + by, k] = 1
    return S


def dyck(w: Weights, x: Tensor, h: Tensor) -> Tensor:
    g = sigmoid(w["weight"][0] @ x)
    down = shift(len(h), len(x))
    top = torch.cat([x, torch.zeros(len(h) - len(x), dtype=h.dtype)])
    return (g * down + (1 - g) * down.T) @ h + g * top


def memorising(w: Weights, x: Tensor, h: Tensor) -> Tensor:  # noqa: ARG001  # it is what it is, not what it holds
    return torch.cat([x, h[: len(h) - len(x)]])


STEPS = {
    "elman": elman,
    "gru": gru,
    "gru_before": gru_before,
    "lstm": lstm,
    "tensor_rnn": tensor_rnn,
    "mrnn": mrnn,
    "mlstm": mlstm,
    "mi_rnn": mi_rnn,
    "mi_gru": mi_gru,
    "mi_lstm": mi_lstm,
    "mmrnn": mmrnn,
    "mmlstm": mmlstm,
    "dyck": dyck,
    "memorising": memorising,
}
