"""Quotients, norms and deviations in a step of the user's own, of the state alone and beside the input."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from layered_steps import SERIES, D, Loop, judge_same_n_grams
from unrolled.held_forward.increments.increments import SecantIncrements, ShareIncrements


class OfTheState(nn.Module):
    """A cell whose function reads the state alone, which is empty at the first step."""

    def __init__(self, function):
        super().__init__()
        self.x, self.h, self.function = nn.Linear(3, D), nn.Linear(D, D, bias=False), function

    def forward(self, x, h):
        return torch.tanh(self.x(x) + self.function(self.h(h)))


def of_the_state(function):
    torch.manual_seed(3)
    made = Loop(OfTheState(function)).double()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5)
    return made


NORMALISED = {
    "normalize": lambda z: F.normalize(z, dim=-1),
    "divided": lambda z: z / (z.norm(dim=-1, keepdim=True) + 1e-6),
    "layer norm": lambda z: F.layer_norm(z, (D,)),
    "group norm": lambda z: F.group_norm(z, 2),
    "rms norm by hand": lambda z: z * torch.rsqrt(z.square().mean(-1, keepdim=True) + 1e-6),
    "inverse power": lambda z: (z.square().mean(-1, keepdim=True) + 1e-6) ** -0.5 * z,
    "in place": lambda z: z * z.square().mean(-1, keepdim=True).add_(1e-6).rsqrt_(),
}


@pytest.mark.parametrize("name", NORMALISED)
def test_a_normalised_state_has_no_large_terms_though_the_first_state_is_empty(name):
    model = of_the_state(NORMALISED[name])
    for expansion in ("secant", "shares"):
        found = unrolled.explain(model, SERIES[:1], target=1, expansion=expansion)
        assert abs(found.ledger.remainder) < 1e-12
        assert found.cancellation < 30  # by a product with 1 / b, above a thousand
        assert not any("quadrature" in note for note in found.notes)
    assert abs(unrolled.explain(model, SERIES[:1], target=1, expansion="zero").ledger.remainder) > 1e-3


OF_NOTHING = {
    "norm": lambda z: z.norm(dim=-1, keepdim=True),
    "root": lambda z: z.square().sum(-1, keepdim=True).sqrt(),
}


@pytest.mark.parametrize("expansion", ["secant", "shares"])
@pytest.mark.parametrize("name", OF_NOTHING)
def test_the_norm_of_an_empty_state_is_followed(name, expansion):
    found = unrolled.explain(of_the_state(OF_NOTHING[name]), SERIES[:1], target=1, expansion=expansion)
    assert abs(found.ledger.remainder) < 1e-12
    assert bool(found.triangle.contributions.isfinite().all())


QUOTIENTS = {
    "div": lambda a, b: a / b,
    "reciprocal": lambda a, b: torch.reciprocal(b) * a,
    "rsqrt": lambda a, b: a * torch.rsqrt(b.square()),
    "power": lambda a, b: a * b**-1,
}


@pytest.mark.parametrize("name", QUOTIENTS)
def test_a_quotient_times_its_divisor_has_the_increments_of_the_dividend(name):
    generator = torch.Generator().manual_seed(0)
    (a0, a1), (b0, b1) = torch.randn(2, 2, 1, 5, dtype=torch.float64, generator=generator)
    b0, b1 = b0.abs() + 0.1, b1.abs() + 0.1
    for moves_a, moves_b in ((1, 0), (0, 1), (1, 1)):
        mode = SecantIncrements()
        a, b = mode.follow(moves_a * (a1 - a0), a0, a1), mode.follow(moves_b * (b1 - b0), b0, b1)
        with mode:
            quotient = QUOTIENTS[name](a, b)
            back = quotient * b
            by_product = torch.einsum("bi,bi->bi", a, torch.reciprocal(b))
        torch.testing.assert_close(back, a, atol=1e-12 if name != "rsqrt" else 1.0, rtol=0)
        if moves_a and moves_b:
            torch.testing.assert_close(quotient, a1 / b1 - a0 / b0)
        elif moves_a:
            assert float((quotient - by_product).abs().max()) > 1e-3  # the control: a product with 1 / b


def test_a_divisor_may_change_its_sign():
    a0, a1, b0, b1 = torch.tensor([[[0.5]], [[2.0]], [[-1.0]], [[1.0]]], dtype=torch.float64)
    mode = SecantIncrements()
    with mode:
        found = mode.follow(a1 - a0, a0, a1) / mode.follow(b1 - b0, b0, b1)
    torch.testing.assert_close(found, a1 / b1 - a0 / b0)


HELD = {
    "var": lambda z: z.var(-1, keepdim=True),
    "exp2": torch.exp2,
    "log2": lambda z: torch.log2(z * z),
    "atan2": lambda z: torch.atan2(z, z * z),
    "negative power": lambda z: (1 + z * z) ** -1,
    "one over": lambda z: 1 / (1 + z * z),
    "running product": lambda z: z.cumprod(-1),
    "floor": torch.floor,
    "sign": torch.sign,
    "larger": lambda z: (z > 0).to(z.dtype),
    "largest": lambda z: z.argmax(-1, keepdim=True).to(z.dtype),
}


@pytest.mark.parametrize("name", HELD)
def test_shares_hold_what_an_account_holds(name):
    z = torch.randn(1, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mode, function = ShareIncrements(), HELD[name]
    block = mode.follow(z.clone(), torch.zeros_like(z), z)
    with mode:
        found = block * function(block)
    torch.testing.assert_close(found, z * function(z), rtol=0, atol=1e-14)
    account = unrolled.account(_Model(lambda x: x * function(x)), z, target=lambda output: output.sum(1))
    torch.testing.assert_close(account.features["0"], found, rtol=0, atol=1e-14)


class _Model(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def centred(z):
    return z - z.mean(-1, keepdim=True)


def squares(z):
    return centred(z).square().sum(-1, keepdim=True)


def by_rows(function):
    return lambda z: torch.stack([function(row) for row in z])


PAIRS = {
    "var": (lambda z: z.var(-1, keepdim=True), lambda z: squares(z) / (D - 1)),
    "var of all": (by_rows(lambda r: r * r.var(unbiased=False)), lambda z: z * (squares(z) / D)),
    "correction": (lambda z: torch.var(z, dim=1, correction=0, keepdim=True), lambda z: squares(z) / D),
    "layer norm by std": (
        lambda z: centred(z) / (z.std(-1, keepdim=True) + 0.1),
        lambda z: centred(z) / ((squares(z) / (D - 1)).sqrt() + 0.1),
    ),
    "std_mean": (lambda z: torch.std_mean(z, 1, keepdim=True)[0], lambda z: (squares(z) / (D - 1)).sqrt()),
    "norm of all": (by_rows(lambda r: r * r.norm()), lambda z: z * z.square().sum(-1, keepdim=True).sqrt()),
    "linalg.norm": (lambda z: torch.linalg.norm(z, dim=1, keepdim=True), lambda z: (z * z).sum(1, keepdim=True).sqrt()),
    "sum of sizes": (lambda z: z.norm(p=1, dim=1, keepdim=True), lambda z: z.abs().sum(1, keepdim=True)),
    "power of three": (lambda z: z.norm(3, 1, True), lambda z: (z.abs() ** 3).sum(1, keepdim=True) ** (1 / 3)),
    "hypot": (lambda z: torch.hypot(z, z.flip(1)), lambda z: torch.sqrt(z.square() + z.flip(1).square())),
    "cosine": (
        lambda z: F.cosine_similarity(z, z.flip(1) + 1, dim=1)[:, None],
        lambda z: (F.normalize(z, dim=1) * F.normalize(z.flip(1) + 1, dim=1)).sum(1, keepdim=True),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_norm_has_the_n_grams_of_its_formula(name):
    judge_same_n_grams([of_the_state(lambda z, each=each: each(z + 0.1)) for each in PAIRS[name]])
