"""g and A of every affine cell as dense matrices, one token at a time, copied from the papers' formulas alone.

A reference takes weights by name and x of shape (input,); it returns g and A, which act on the flat state.
"""

from __future__ import annotations

import torch
from torch import Tensor, diag

from reference import gru_activation, gru_zero_jacobian, lstm_activation, lstm_zero_jacobian
from reference_cells import gru, lstm

Weights = dict[str, Tensor]
Affine = tuple[Tensor, Tensor]


def with_both_biases(w: Weights, x: Tensor) -> Tensor:
    return w["weight_ih"] @ x + w["bias_ih"] + w["bias_hh"]


def blocks(B: Tensor, D: Tensor, E: Tensor, F: Tensor) -> Tensor:
    return torch.cat([torch.cat([B, D], 1), torch.cat([E, F], 1)])


def simplified_gru(w: Weights, x: Tensor) -> Affine:
    d = w["weight_hh"].shape[1]
    g, _ = gru_activation(w, x)
    return g, torch.eye(d).double() / 2 + w["weight_hh"][2 * d :] / 4


def simplified_lstm(w: Weights, x: Tensor) -> Affine:
    d = w["weight_hh"].shape[1]
    g, _ = lstm_activation(w, x)
    eye, Ug = torch.eye(d).double(), w["weight_hh"][2 * d : 3 * d]
    return g, blocks(eye / 2, Ug / 2, eye / 4, Ug / 4)


def gru_variant(w: Weights, x: Tensor) -> Affine:
    """Eq. 21."""
    d = w["weight_hh"].shape[1]
    xr, xz, xn = with_both_biases(w, x).split(d)
    Ur, Uz, Un = w["weight_hh"].split(d)
    A = (
        Un / 4
        + 7 / 10 * torch.eye(d).double()
        - diag(xn) @ Uz / 4
        + diag(xz) @ Ur / 4
        + diag(xr - xz - xr * xz) @ Un / 8
    )
    return xn / 2 - xn * xz / 4, A


def lstm_variant(w: Weights, x: Tensor) -> Affine:
    """Eq. 22."""
    d = w["weight_hh"].shape[1]
    xi, xf, xg, xo = with_both_biases(w, x).split(d)
    Ui, Uf, Ug, Uo = w["weight_hh"].split(d)
    gc = xi * xg / 4 + xg / 2
    B = diag(xf + 2.4 + 12 / 5 * xi + 0.4 * xg) / 4
    D = diag(xi + 2) @ Ug / 4 + diag(xg) @ Ui / 4 + diag(xf) @ Uf / 10
    E = diag(xo) @ B / 4 + B / 2
    F = diag(xo + 2) @ D / 4 + diag(gc + xf / 10 + xo / 10) @ Uo / 4
    return torch.cat([gc, xo * gc / 4 + gc / 2]), blocks(B, D, E, F)


def mvma_e(w: Weights, x: Tensor) -> Affine:
    g = torch.tanh(with_both_biases(w, x))
    return g, diag(1 - g**2) @ w["weight_hh"]


def mvma_g(w: Weights, x: Tensor) -> Affine:
    return gru(w, x, torch.zeros(w["weight_hh"].shape[1]).double()), gru_zero_jacobian(w, x)


def mvma_l(w: Weights, x: Tensor) -> Affine:
    return lstm(w, x, torch.zeros(2 * w["weight_hh"].shape[1]).double()), lstm_zero_jacobian(w, x)


def mvma_me(w: Weights, x: Tensor) -> Affine:
    d = w["weight_hh"].shape[1]
    scale, g = torch.tanh(w["weight_ih"] @ x + w["bias_ih"]).split(d)
    return g, 0.25 * diag(scale) @ w["weight_hh"] + 0.5 * torch.eye(d).double()


AFFINE = {
    "approx_gru": gru_activation,
    "approx_lstm": lstm_activation,
    "gru_variant": gru_variant,
    "lstm_variant": lstm_variant,
    "mvma_e": mvma_e,
    "mvma_g": mvma_g,
    "mvma_l": mvma_l,
    "mvma_me": mvma_me,
    "simplified_gru": simplified_gru,
    "simplified_lstm": simplified_lstm,
}
