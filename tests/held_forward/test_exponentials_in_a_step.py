"""Sums of exponentials, attention and gates in log space, in a step of the user's own."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import unrolled
from layered_steps import SERIES, D, judge_same_n_grams, model_with


def slots(z):
    return z.reshape(-1, 2, 3)


def attention(**options):
    return lambda z: F.scaled_dot_product_attention(slots(z), slots(0.5 * z), slots(z + 1), **options).reshape(-1, D)


def by_hand(scale, mask=None):
    def attended(z):
        scores = slots(z) @ slots(0.5 * z).mT * scale
        scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
        return (scores.softmax(-1) @ slots(z + 1)).reshape(-1, D)

    return attended


EARLIER = torch.ones(2, 2, dtype=torch.bool).tril()
PAIRS = {
    "logsumexp": (lambda z: z - torch.logsumexp(z, 1, keepdim=True), lambda z: torch.log_softmax(z, 1)),
    "of one axis": (lambda z: z - torch.logsumexp(z, dim=-1)[:, None], lambda z: torch.log_softmax(z, 1)),
    "logaddexp": (lambda z: torch.logaddexp(z, z.flip(1)), lambda z: torch.stack((z, z.flip(1))).logsumexp(0)),
    "attention": (attention(), by_hand(3**-0.5)),
    "causal": (attention(is_causal=True, scale=0.7), by_hand(0.7, EARLIER)),
    "masked": (attention(attn_mask=EARLIER), by_hand(3**-0.5, EARLIER)),
    "gate": (lambda z: torch.exp(F.logsigmoid(z)) * z.flip(1), lambda z: torch.sigmoid(z) * z.flip(1)),
    "stabilised gate": (
        lambda z: torch.exp(F.logsigmoid(z) - 0.3) * z.flip(1),
        lambda z: torch.sigmoid(z) * torch.exp(torch.tensor(-0.3, dtype=torch.float64)) * z.flip(1),
    ),
}


@pytest.mark.quick_diagonal(2)  # quick: every name, both expansions
@pytest.mark.parametrize("expansion", ["secant", "shares"])
@pytest.mark.parametrize("name", PAIRS)
def test_n_grams_are_those_of_the_same_numbers_written_otherwise(name, expansion):
    judge_same_n_grams([model_with(function) for function in PAIRS[name]], expansion)


def test_by_shares_any_other_exponential_is_held():
    functions = [lambda z: torch.exp(F.logsigmoid(z)) * z, lambda z: torch.exp(F.softplus(z)) * z]
    gate, other = (unrolled.explain(model_with(f), SERIES[:1], target=1, expansion="shares") for f in functions)
    held = model_with(lambda z: F.softplus(z).exp().detach() * z)
    same = unrolled.explain(held, SERIES[:1], target=1, expansion="shares")
    torch.testing.assert_close(other.triangle.contributions, same.triangle.contributions, rtol=0, atol=1e-12)
    assert not torch.allclose(gate.triangle.contributions, other.triangle.contributions, atol=1e-3)


@pytest.mark.parametrize("exponent", [2j, torch.tensor([1j, 2.0, 0.5j, 3j, -1.0, 1.0])])
def test_by_shares_powers_with_complex_exponents_are_held(exponent):
    functions = [
        lambda z: ((z.abs() + 1) ** exponent).real * z,
        lambda z: ((z.abs() + 1) ** exponent).real.detach() * z,
    ]
    found, held = (unrolled.explain(model_with(f), SERIES[:1], target=1, expansion="shares") for f in functions)
    assert abs(found.ledger.remainder) < 1e-12
    torch.testing.assert_close(found.triangle.contributions, held.triangle.contributions, rtol=0, atol=1e-12)


@pytest.mark.parametrize("exponent", [2j, -1 + 1j, 3 + 0j, torch.tensor(0.5 + 2j)])
def test_by_secant_a_step_with_a_complex_exponent_is_exact(exponent):
    found = unrolled.explain(model_with(lambda z: ((z.abs() + 1) ** exponent).real), SERIES[:1], target=1)
    assert found.exact
    assert abs(found.ledger.remainder) < 1e-12
    if exponent == 3:
        same = unrolled.explain(model_with(lambda z: (z.abs() + 1) ** 3), SERIES[:1], target=1)
        torch.testing.assert_close(found.triangle.contributions, same.triangle.contributions, rtol=0, atol=1e-12)
