"""A second implementation of table 1: n-grams as products of dense matrices, one sequence at a time, in float64.

A reference takes a state dict and x of shape (time, input); it returns the table v_{i:t}, shape (end, start, size).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from reference_affine import AFFINE

Weights = dict[str, Tensor]


def vector(w: Weights, x: Tensor) -> Tensor:
    """g(x) = tanh(W x + b)."""
    return torch.tanh(w["token.weight"] @ x + w["token.bias"])


def filled(time: int, of) -> Tensor:
    """The table whose entry (end, start) is ``of(start, end)``, or zero where that is None."""
    entries = [[of(i, t) if i <= t else None for i in range(time)] for t in range(time)]
    size = max(len(v) for row in entries for v in row if v is not None)
    return torch.stack([torch.stack([torch.zeros(size).double() if v is None else v for v in row]) for row in entries])


def vm(w: Weights, x: Tensor) -> Tensor:
    def product(i: int, t: int) -> Tensor:
        v = vector(w, x[i])
        for k in range(i + 1, t + 1):
            v = v * vector(w, x[k])
        return v

    return filled(len(x), product)


def mm(_: Weights, x: Tensor) -> Tensor:
    n = math.isqrt(x.shape[1])

    def product(i: int, t: int) -> Tensor:
        M = torch.eye(n).double()
        for k in range(i, t + 1):
            M = M @ x[k].view(n, n)
        return M.flatten()

    return filled(len(x), product)


def va_w(w: Weights, x: Tensor) -> Tensor:
    d = w["weight"].shape[1]
    C = w["weight"].split(d)
    return filled(len(x), lambda i, t: C[t - i] @ vector(w, x[i]) if t - i < len(C) else None)


def va_ew(w: Weights, x: Tensor) -> Tensor:
    return filled(len(x), lambda i, t: torch.linalg.matrix_power(w["weight_hh"], t - i) @ vector(w, x[i]))


def of_cell(w: Weights, name: str, x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    cell = {key.removeprefix("cell."): value for key, value in w.items()}
    pairs = [AFFINE[name](cell, token) for token in x]
    return [g for g, _ in pairs], [A for _, A in pairs]


def mvm_r(w: Weights, x: Tensor) -> Tensor:
    g, A = of_cell(w, "mvma_me", x)

    def bigram(i: int, t: int) -> Tensor | None:
        if t == 0:
            return g[0]
        return A[i] @ g[t] if i == t - 1 else None

    return filled(len(x), bigram)


def matrix_vector(name: str):
    def table(w: Weights, x: Tensor) -> Tensor:
        g, A = of_cell(w, name, x)
        d = w["cell.weight_hh"].shape[1]

        def product(i: int, t: int) -> Tensor:
            W = torch.eye(len(g[0])).double()
            for k in range(t, i, -1):
                W = W @ A[k]
            return (W @ g[i])[-d:]

        return filled(len(x), product)

    return table


TABLES = {
    "vm": vm,
    "mm": mm,
    "va_w": va_w,
    "va_ew": va_ew,
    "mvm_r": mvm_r,
    **{f"mvm_{x}": matrix_vector(f"mvma_{x}") for x in ("e", "g", "l")},
    **{f"mvma_{x}": matrix_vector(f"mvma_{x}") for x in ("e", "g", "l", "me")},
}

LONGEST = {"vm", "mm", "mvm_e", "mvm_g", "mvm_l"}
"""Models whose context is v_{1:t} alone; for the others it is the sum of all n-grams that end at t."""


def contexts(name: str, table: Tensor) -> Tensor:
    """Shape (time, size)."""
    return table[:, 0] if name in LONGEST else table.sum(dim=1)
