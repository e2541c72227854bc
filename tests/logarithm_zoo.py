"""Held runs of operations on logarithms of value, and what x and y contribute by them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from unrolled.held_forward import HeldForward, Rows
from unrolled.held_forward.graph import check_linear

torch.manual_seed(0)
X = torch.randn(2, 5, 4, dtype=torch.float64)
Y = torch.randn(2, 5, 4, dtype=torch.float64)
X[0, 0, 0] = 0.0
C = torch.randn(2, 5, 4, dtype=torch.float64)
MASK = torch.rand(2, 5, 4) > 0.4
INDEX = torch.randint(0, 5, (2, 5, 4))


def positive(x):
    return F.relu(x) + 0.5


def log_positive(x):
    return positive(x).log()


def log_signed(x):
    """Compute log x of any sign: log |x| + iπ for a negative number."""
    return torch.complex(x.abs().maximum(x.new_tensor(1e-12)).log(), torch.pi * (x < 0).to(x))


def run(operation, x=X, y=Y):
    rows = Rows(nn.Module())
    opened = rows.open("feature", "x", x), rows.open("feature", "y", y)
    mode = HeldForward(rows)
    with torch.enable_grad(), mode:
        result = operation(*opened)
    return result, [row.leaf for row in rows.rows]


def weights_of(result):
    return torch.linspace(0.5, 1.5, result.numel(), dtype=result.dtype).reshape(result.shape)


def credit(gradient, leaf):
    """Multiply; what no one reads counts as zero. torch 2.4 computes exp(-inf + 0i) = nan, which a model cuts off."""
    return torch.where(gradient == 0, 0.0, gradient * leaf)


def contributions(operation):
    """Return what x and y contribute, and all else together."""
    result, leaves = run(operation)
    gradients = torch.autograd.grad((weights_of(result) * result).sum(), leaves, allow_unused=True)
    parts = [
        torch.zeros_like(leaf) if g is None else credit(g, leaf).detach()
        for g, leaf in zip(gradients, leaves, strict=True)
    ]
    return parts[0], parts[1], sum((each.sum() for each in parts[2:]), torch.zeros((), dtype=X.dtype))


def assert_value_linearity_and_sum(operation):
    expected = operation(X.clone(), Y.clone())
    result, leaves = run(operation)
    torch.testing.assert_close(result.detach(), expected, rtol=1e-12, atol=1e-12)
    check_linear(result)
    whole = (weights_of(result) * result).sum()
    gradients = torch.autograd.grad(whole, leaves, allow_unused=True, create_graph=True)
    found = [(g, leaf) for g, leaf in zip(gradients, leaves, strict=True) if g is not None]
    for g, _ in found:  # a gradient that depends on no leaf: linear
        if g.requires_grad:
            second = torch.autograd.grad(g.sum(), leaves, allow_unused=True, retain_graph=True)
            assert not any(each is not None and bool(each.count_nonzero()) for each in second)
    total = sum(credit(g, leaf).sum() for g, leaf in found)
    torch.testing.assert_close(total, whole.detach(), rtol=1e-11, atol=1e-11)


def assert_same_contributions(one, other):
    for found, expected in zip(contributions(one), contributions(other), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
