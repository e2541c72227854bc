"""Powers and signs that torch computes at once have the account of their parts."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

import unrolled
from equal_accounts import Read, assert_equal
from whole_model_zoo import D, ids

TWOS = torch.arange(D) - 2

EQUAL = {
    "ldexp": (lambda _, h: torch.ldexp(h, TWOS), lambda _, h: h * 2.0**TWOS),
    "ldexp by names": (lambda _, h: torch.ldexp(other=TWOS, input=h), lambda _, h: h * 2.0**TWOS),
    "ldexp of an exponent with value": (
        lambda m, h: torch.ldexp(h, m.middle(h)),
        lambda m, h: h * torch.pow(2.0, m.middle(h)),
    ),
    "float_power": (lambda _, h: torch.float_power(h, 3), lambda _, h: torch.pow(h, 3)),
    "float_power of a constant": (lambda _, h: h + torch.float_power(1.5, h), lambda _, h: h + torch.pow(1.5, h)),
    "float_power of a method": (lambda _, h: h.abs().float_power(0.5), lambda _, h: h.abs().sqrt()),
    "a power for each number": (
        lambda _, h: torch.pow(h.abs(), TWOS),
        lambda _, h: torch.stack([h[:, k].abs() ** int(n) for k, n in enumerate(TWOS)], 1),
    ),
    "broken powers": (
        lambda _, h: h.abs() ** (TWOS + 2.5),
        lambda _, h: torch.stack([h[:, k].abs() ** (k + 0.5) for k in range(D)], 1),
    ),
    "equal powers of gates": (
        lambda _, h: h * torch.sigmoid(h) ** torch.full((1, D), 3.0),
        lambda _, h: h * torch.sigmoid(h) ** 3,
    ),
    "copysign": (
        lambda m, h: torch.copysign(h, m.middle(h)),
        lambda m, h: torch.where(m.middle(h) < 0, -h.abs(), h.abs()),
    ),
    "copysign of a number": (lambda _, h: torch.copysign(h, -0.0), lambda _, h: -h.abs()),
}


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_computed_at_once_has_the_account_of_its_parts(name):
    assert_equal(*EQUAL[name])


def test_the_sign_of_minus_zero_counts():
    plus, minus = torch.tensor(0.0), torch.tensor(-0.0)
    assert_equal(lambda _, h: torch.copysign(h, minus), lambda _, h: -h.abs())
    with pytest.raises(AssertionError):
        assert_equal(lambda _, h: torch.copysign(h, plus), lambda _, h: torch.copysign(h, minus))


def test_other_exponents_have_other_accounts():
    with pytest.raises(AssertionError):
        assert_equal(lambda _, h: torch.ldexp(h, TWOS), lambda _, h: torch.ldexp(h, F.relu(TWOS)))


@pytest.mark.parametrize("power", [torch.pow, torch.float_power, lambda x, n: x.clone().pow_(n)])
def test_an_example_has_the_powers_that_it_has_alone(power):
    def read(model, h):
        return power(h.abs(), 1.0 + model.middle(h)[:, :1].exp())

    tokens = ids(3, 4)
    found = unrolled.account(Read(read), tokens, target=1)
    assert found.closes
    for row in range(3):
        alone = unrolled.account(Read(read), tokens[row : row + 1], target=1)
        torch.testing.assert_close(found.tokens[row], alone.tokens[0], rtol=1e-9, atol=1e-12)
    others = unrolled.account(Read(lambda _, h: h.abs()), tokens, target=1)
    assert not torch.allclose(found.tokens, others.tokens)
