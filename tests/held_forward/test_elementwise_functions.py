"""Functions of one number are opened in a model and in a step of a user's own, by each of their names."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from unrolled.held_forward import rule
from unrolled.held_forward.increments.increments import SecantIncrements
from unrolled.held_forward.mode import RULES
from unrolled.held_forward.rules.activation import ELEMENTWISE

X = 0.9 * torch.rand(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 0.05
NAMED_OTHERWISE = {
    "log_sigmoid": F.logsigmoid,
    "threshold": lambda x: F.threshold(x, 0.1, 0.0),
    "rrelu": F.rrelu,
}
FUNCTIONS = {
    name: NAMED_OTHERWISE.get(name)
    or getattr(F, name, None)
    or getattr(torch, name, None)
    or getattr(torch.special, name.removeprefix("special_"))
    for name in sorted(ELEMENTWISE)
}
STRAIGHT = frozenset("relu relu6 leaky_relu hardtanh abs rrelu selu elu celu".split())
"""Those that are lines for positive numbers below one."""
SYNONYMS = {
    "arctan": ("atan", torch.arctan),
    "arcsinh": ("asinh", lambda x: x.arcsinh()),
    "arctanh": ("atanh", torch.arctanh),
    "special.expm1": ("expm1", torch.special.expm1),
    "special.erf": ("erf", torch.special.erf),
}


class Model(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def account(function):
    return unrolled.account(Model(function), X, target=lambda output: output.sum(1))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_function_rises_from_zero_is_its_operands(name):
    function = FUNCTIONS[name]
    found, at_zero = account(function), function(torch.zeros_like(X))
    assert found.closes
    torch.testing.assert_close(found.features["0"], function(X) - at_zero, rtol=1e-12, atol=1e-14)
    constants = sum(found.constants.values(), torch.zeros(3, dtype=X.dtype))
    torch.testing.assert_close(constants, at_zero.sum(1), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_function_rises_along_the_line_of_increments_is_theirs(name):
    function, base = FUNCTIONS[name], 0.5 * X + 0.02
    mode = SecantIncrements()
    block = mode.follow(X - base, base, X)
    with mode:
        moved = function(block)
    torch.testing.assert_close(moved, function(X) - function(base), rtol=1e-9, atol=1e-10)
    assert torch.allclose(moved, function(X - base), atol=1e-4) == (name in STRAIGHT)  # the control: it matters where


KINKED = {
    "relu": torch.relu,
    "abs": torch.abs,
    "leaky_relu": F.leaky_relu,
    "clamp": lambda x: x.clamp(0, 1),
    "sqrt": lambda x: x.square().sqrt(),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", KINKED)
def test_a_short_line_of_increments_across_a_kink_rises_as_the_function_does(name, dtype):
    short = 0.3 * torch.finfo(dtype).eps ** 0.33
    base, end = (torch.tensor(ends, dtype=dtype) * short for ends in ([-0.9, -0.2, 0.3], [0.6, 0.7, -0.5]))
    function, mode = KINKED[name], SecantIncrements()
    block = mode.follow(end - base, base, end)
    with mode:
        moved = function(block)
    rise = function(end) - function(base)
    torch.testing.assert_close(moved, rise, rtol=1e-4, atol=1e-4 * short)
    middle = (0.5 * (base + end)).requires_grad_()
    (slope,) = torch.autograd.grad(function(middle).sum(), middle)
    assert float((slope * (end - base) - rise).abs().max()) > 0.05 * short  # the control: no derivative gives it


ROUNDED = {"gelu": (F.gelu, -5.0), "tanhshrink": (F.tanhshrink, 0.01), "silu": (F.silu, -80.0)}
"""Functions, and where their values are much smaller than what they subtract, but for the last."""


@pytest.mark.parametrize("name", ROUNDED)
def test_on_a_short_line_the_rounding_of_a_small_value_is_not_its_slope(name):
    function, place = ROUNDED[name]
    base = torch.tensor([place])
    end, mode = base + 4e-7 * base.abs().clamp_min(1.0), SecantIncrements()
    block = mode.follow(torch.stack([torch.ones(1), end - base - 1]), base[None], end[None])
    with mode:
        moved = function(block)
    credited = float(moved[0])
    exact = base.double().requires_grad_()
    (slope,) = torch.autograd.grad(function(exact), exact)
    assert credited == pytest.approx(float(slope), rel=0.01)
    quotient = float((function(end) - function(base)) / (end - base))
    assert (quotient == pytest.approx(float(slope), rel=0.01)) == (name == "silu")  # the control


@pytest.mark.parametrize("name", SYNONYMS)
def test_a_synonym_has_the_account_of_the_function(name):
    plain, function = SYNONYMS[name]
    found, expected = account(function), account(FUNCTIONS[plain])
    assert torch.equal(found.features["0"], expected.features["0"])


def test_a_rule_may_be_registered_by_any_name_of_an_operation(monkeypatch):
    monkeypatch.delitem(RULES, "digamma", raising=False)
    try:
        rule("special_digamma")(lambda call: call.args[0] * (call.held() / call.args[0].detach()))
        found = account(torch.digamma)
    finally:
        del RULES["digamma"]
    torch.testing.assert_close(found.features["0"], torch.digamma(X))
    with pytest.raises(unrolled.UnsupportedOperationError, match="digamma has no rule"):
        account(torch.digamma)  # the control: without a rule
