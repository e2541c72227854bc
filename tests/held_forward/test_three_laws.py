# ruff: noqa: ARG005  # every operation takes x and y
"""The three laws of every rule: the value is right; it is linear in what carries value; contributions sum to it."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from operations_zoo import OPERATIONS, X, Y
from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward import HeldForward, Rows, rule
from unrolled.held_forward.graph import check_linear


def run(operation):
    rows = Rows(nn.Module())
    x, y = rows.open("feature", "x", X), rows.open("feature", "y", Y)
    mode = HeldForward(rows)
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH), mode:  # the fused kernel has no second derivative
        result = operation(x, y)
    return result, [row.leaf for row in rows.rows]


@pytest.mark.parametrize("name", OPERATIONS)
def test_value_linearity_and_sum(name):
    operation = OPERATIONS[name]
    torch.manual_seed(1)
    expected = operation(X.clone(), Y.clone())
    torch.manual_seed(1)
    result, leaves = run(operation)
    tolerance = 1e-2 if name == "autocast" else 1e-12
    torch.testing.assert_close(result, expected, rtol=tolerance, atol=tolerance)
    if not result.requires_grad:  # all of it is held: sign, cos
        assert name in {"sign", "cos", "exp"}
        return
    check_linear(result)
    weights = torch.linspace(0.5, 1.5, result.numel(), dtype=result.dtype).reshape(result.shape)
    gradients = torch.autograd.grad((weights * result).sum(), leaves, allow_unused=True, create_graph=True)
    found = [(g, leaf) for g, leaf in zip(gradients, leaves, strict=True) if g is not None]
    for g, _ in found:  # a gradient that depends on no leaf: linear
        if g.requires_grad:
            second = torch.autograd.grad(g.sum(), leaves, allow_unused=True, retain_graph=True)
            assert not any(each is not None and bool(each.count_nonzero()) for each in second)
    total = sum((g * leaf).sum() for g, leaf in found)
    held = (weights * result).sum()
    torch.testing.assert_close(total, held.detach(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("choose", [torch.maximum, torch.minimum, torch.fmax, lambda x, y: torch.stack([x, y]).amax(0)])
def test_equal_operands_share_an_extreme_by_halves(choose):
    def parts(first, second):
        rows = Rows(nn.Module())
        opened = [rows.open("feature", "", torch.tensor([each], dtype=torch.float64)) for each in (first, second)]
        with torch.enable_grad(), HeldForward(rows):
            result = choose(*opened)
        leaves = [row.leaf for row in rows.rows]
        return [
            float((g * leaf).detach())
            for g, leaf in zip(torch.autograd.grad(result.sum(), leaves), leaves, strict=True)
        ]

    assert parts(3.0, 3.0) == [1.5, 1.5]
    assert sorted(parts(3.0, 2.0)) == [0.0, float(choose(*torch.tensor([3.0, 2.0])))]  # the control


@pytest.mark.parametrize("name", [name for name in OPERATIONS if "by value" in name])
def test_value_that_replaces_entries_is_not_a_constant(name):
    x, y = (torch.nn.Parameter(each.clone()) for each in (X, Y))
    (by_value,) = torch.autograd.grad(OPERATIONS[name](x, y).sum(), y)  # these operations are linear in pieces
    rows = Rows(nn.Module())
    opened = rows.open("feature", "x", X), rows.open("feature", "y", Y)
    with torch.enable_grad(), HeldForward(rows):
        result = OPERATIONS[name](*opened)
    (found,) = torch.autograd.grad(result.sum(), [rows.rows[1].leaf])
    torch.testing.assert_close(found, by_value)
    assert bool(found.any())


def test_a_plain_gradient_does_not_sum():
    leaf = X.clone().requires_grad_()
    value = torch.sigmoid(leaf).sum()
    (gradient,) = torch.autograd.grad(value, leaf)
    assert abs(float((gradient * leaf - torch.sigmoid(leaf)).sum().detach())) > 1e-2


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        (lambda x, y: torch.linalg.eigvalsh(x[..., :4]), "linalg_eigvalsh"),
        (lambda x, y: torch.fft.rfft(x).angle(), "angle"),
        (lambda x, y: torch.from_numpy(x.numpy()), "numpy"),
        (lambda x, y: x * float(y.sum()), "float"),
        (lambda x, y: torch.special.bessel_j0(x), "bessel"),
    ],
)
def test_what_has_no_rule_is_refused_by_name(operation, name):
    with pytest.raises(UnsupportedOperationError, match=name):
        check_linear(run(operation)[0])


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g


def test_a_custom_function_is_refused_by_name():
    result, _ = run(lambda x, y: Squared.apply(x))
    with pytest.raises(UnsupportedOperationError, match="Squared"):
        check_linear(result)


def test_a_rule_of_ones_own():
    @rule("special_bessel_j0")
    def bessel(call):
        x = call.args[0]
        return call.rows.constant(torch.ones_like(x.detach())) + x * ((call.held() - 1) / x.detach())

    from unrolled.held_forward.mode import RULES

    try:
        result, leaves = run(lambda x, y: torch.special.bessel_j0(x))
    finally:
        del RULES["special_bessel_j0"]
    gradients = torch.autograd.grad(result.sum(), leaves, allow_unused=True)
    total = sum((g * leaf).sum() for g, leaf in zip(gradients, leaves, strict=True) if g is not None)
    torch.testing.assert_close(total, torch.special.bessel_j0(X).sum())
