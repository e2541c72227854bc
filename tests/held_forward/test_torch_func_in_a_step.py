"""A step of the user's own that differentiates by torch.func, as a step down a gradient does."""

from __future__ import annotations

import pytest
import torch

import unrolled
from layered_steps import SERIES, model_with
from unrolled.errors import UnsupportedOperationError


def by_torch_func(z):
    return torch.func.grad(lambda y: (y**3).sum())(z)


def explained(function, expansion, max_order):
    return unrolled.explain(model_with(function), SERIES[:1], target=1, expansion=expansion, max_order=max_order)


@pytest.mark.parametrize("max_order", [None, 1])
@pytest.mark.parametrize("expansion", ["secant", "path", "operating", "zero", "taylor(2)"])
def test_n_grams_are_those_of_the_derivative_in_closed_form(expansion, max_order):
    found = explained(by_torch_func, expansion, max_order)
    expected = explained(lambda z: 3 * z**2, expansion, max_order)
    within = 1e-6 if expansion == "secant" else 1e-12  # of such a step it is a quadrature
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, rtol=0, atol=within)
    assert found.exact == expected.exact
    assert abs(found.ledger.ngrams) > 0.01


def test_shares_refuse_it():
    with pytest.raises(UnsupportedOperationError, match=r"uses torch\.func"):
        explained(by_torch_func, "shares", None)
