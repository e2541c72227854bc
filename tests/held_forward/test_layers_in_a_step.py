"""Steps of the user's own that hold a layer or another function: secant follows them in closed form."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from layered_steps import SERIES, D, Layered, Loop, T, judge_same_n_grams, model_with


class Layer(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, z):
        return self.function(z * 1)


def mixed(axes, layer):
    return lambda z, own: own(z.reshape(len(z), *axes)).reshape(len(z), D), layer


def plain(function):
    return (function,)


def in_place(z):
    z.mul_(2).sub_(0.1)
    z[:, 1] = 0.3
    F.relu(z, inplace=True)
    return z - 0.5


def of_a_part(z):
    z = z + 0.1
    z[:, :3].sigmoid_()
    return z


def kinked(z):
    return F.max_pool1d(z[:, None], 3, stride=1, padding=1)[:, 0]


POSITION_WISE = {
    "logsigmoid": plain(F.logsigmoid),
    "log1p": plain(lambda z: torch.log1p(z.exp())),
    "log": plain(lambda z: torch.log(z.exp() + 1)),
    "rsqrt": plain(lambda z: torch.rsqrt(z.square() + 1)),
    "softsign": plain(F.softsign),
    "hardswish": plain(lambda z: F.hardswish(3 * z)),
    "relu6": plain(lambda z: F.relu6(3 * z)),
    "prelu": (lambda z, own: own(z), nn.PReLU()),
    "one over": plain(lambda z: 1 / (1 + (-z).exp())),
    "two to the": plain(lambda z: 2**z),
    "in place": plain(in_place),
    "pad": plain(lambda z: F.pad(z, (1, 2), value=3.0)[:, 2:8]),
    "conv1d": mixed((2, 3), nn.Conv1d(2, 2, 3, padding=1)),
    "conv2d": mixed((1, 2, 3), nn.Conv2d(1, 1, 3, padding=1, bias=False)),
    "transposed": mixed((2, 3), nn.ConvTranspose1d(2, 2, 3, padding=1)),
    "batch norm": mixed((2, 3), nn.BatchNorm1d(2)),
    "average": mixed((1, D), nn.AvgPool1d(3, 1, 1)),
}
"""Functions of one sum: a slope, or a linear map."""
OTHERS = {
    "glu": plain(lambda z: F.glu(torch.cat((z, z.flip(-1)), -1))),
    "maximum": plain(lambda z: torch.maximum(z, 0.5 * z.flip(-1) + 0.1)),
    "minimum": plain(lambda z: torch.min(z, torch.full_like(z, 0.1))),
    "group norm": mixed((2, 3), nn.GroupNorm(1, 2)),
    "softmax": plain(lambda z: F.softmax(3 * z, -1)),
    "log_softmax": plain(lambda z: F.log_softmax(z, -1)),
    "normalize": plain(lambda z: F.normalize(z, dim=-1)),
    "layer norm": (lambda z, own: own(z), nn.LayerNorm(D)),
}


def model_of(name):
    return model_with(*{**POSITION_WISE, **OTHERS}[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [*POSITION_WISE, *OTHERS])
def test_the_account_of_the_step_is_exact_and_a_unigram_has_one_meaning(name):
    model = model_of(name)
    last = unrolled.explain_batch(model, SERIES[:, -1:], target=1, rnn="cell")
    for found, alone in zip(unrolled.explain_batch(model, SERIES, target=1), last, strict=True):
        assert abs(found.ledger.remainder) < 1e-12
        assert found.residual < 1e-12
        assert not any("quadrature" in note for note in found.notes)
        assert found.contribution(T - 1, T) == pytest.approx(alone.contribution(0, 1), abs=1e-12)
    assert abs(unrolled.explain(model, SERIES[:1], target=1, expansion="zero").ledger.remainder) > 1e-4


@pytest.mark.parametrize("name", ["pad", "conv1d", "conv2d", "transposed", "batch norm", "average"])
def test_of_a_linear_layer_the_secant_is_the_mean_jacobian(name):
    model = model_of(name)
    found, mean = (unrolled.explain(model, SERIES[:1], target=1, expansion=each) for each in ("secant", "path"))
    torch.testing.assert_close(found.token_scores, mean.token_scores, atol=1e-5, rtol=0)


WITHOUT_SHIFTS = {
    "softmax": lambda shift: lambda z: torch.softmax(z + shift(z), -1),
    "log_softmax": lambda shift: lambda z: torch.log_softmax(z + shift(z), -1),
}


@pytest.mark.parametrize("name", WITHOUT_SHIFTS)
def test_what_is_added_to_all_of_its_operand_changes_no_n_gram_of_a_softmax(name):
    shifts = [torch.zeros_like, lambda z: 2.0 - 15.0 * z[:, :1]]
    models = [model_with(WITHOUT_SHIFTS[name](shift)) for shift in shifts]
    found, expected = (unrolled.explain(model, SERIES[:1], target=1).triangle.contributions for model in models)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    of_values = model_with(lambda z: torch.exp(z + shifts[1](z)) * 0.1)  # the control: of exp alone it does
    assert float((unrolled.explain(of_values, SERIES[:1], target=1).token_scores - found.sum(0)).abs().max()) > 0.1


@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax])
def test_a_mask_of_minus_infinity_is_one_of_a_large_number(function):
    def masked(number):
        mask = torch.tensor([False, True, False, False, True, False])
        return lambda z: function(z.masked_fill(mask, number), -1).masked_fill(mask, 0.0)

    for expansion in ("secant", "shares"):
        found, expected = (
            unrolled.explain(model_with(masked(number)), SERIES[:1], target=1, expansion=expansion)
            for number in (-torch.inf, -1e6)
        )
        assert abs(found.ledger.remainder) < 1e-12
        torch.testing.assert_close(found.token_scores, expected.token_scores, rtol=0, atol=1e-12)


def halves(z):
    return z[:, 3:], z[:, :3]


PARTS = {
    "hstack": (lambda z: torch.hstack(halves(z)), lambda z: torch.cat(halves(z), 1)),
    "column_stack": (lambda z: torch.column_stack(halves(z)), lambda z: torch.cat(halves(z), 1)),
    "at least one axis": (lambda z: torch.atleast_1d(z, z.sin())[1] + z, lambda z: z.sin() + z),
    "at least two axes": (lambda z: torch.atleast_2d(z.sigmoid()) * z, lambda z: z.sigmoid() * z),
    "at least three axes": (lambda z: torch.atleast_3d(z)[..., 0] * z, lambda z: z * z),
    "broadcast_tensors": (
        lambda z: sum(torch.broadcast_tensors(z, z[:, :1], torch.ones(6, dtype=z.dtype))),
        lambda z: z + z[:, :1] + 1,
    ),
    "meshgrid": (
        lambda z: torch.stack([sum(torch.meshgrid(r[:2], r[2:5], indexing="ij")).reshape(-1) for r in z]),
        lambda z: (z[:, :2, None] + z[:, None, 2:5]).flatten(1),
    ),
    "scatter by name": (
        lambda z: (
            torch.ones_like(z).scatter(dim=1, index=torch.tensor([[0, 2]]).expand(len(z), 2), value=0.5) * z.sin()
        ),
        lambda z: torch.tensor([0.5, 1, 0.5, 1, 1, 1], dtype=z.dtype) * z.sin(),
    ),
    "scatter of a source by name": (
        lambda z: z.scatter(dim=1, index=torch.tensor([[0, 2]]).expand(len(z), 2), src=z[:, 3:5]),
        lambda z: torch.stack([z[:, 3], z[:, 1], z[:, 4], z[:, 3], z[:, 4], z[:, 5]], 1),
    ),
    "result_type": (lambda z: z.to(torch.result_type(z, 1)) * z.sigmoid(), lambda z: z * z.sigmoid()),
    "deepcopy": (lambda z: copy.deepcopy(z.sigmoid()) * z, lambda z: z.sigmoid() * z),
    "renorm": (
        lambda z: torch.renorm(z, 2, 0, 0.7),
        lambda z: z * torch.where(z.norm(dim=1) > 0.7, 0.7 / (z.norm(dim=1) + 1e-7), 1.0)[:, None],
    ),
    "dropout in place of parts": (  # in evaluation nothing is written
        lambda z: torch.cat([F.dropout(each, 0.5, training=False, inplace=True).sin() for each in halves(z)], 1),
        lambda z: torch.cat(halves(z), 1).sin(),
    ),
    "lerp": (lambda z: torch.lerp(z, z.flip(1), z.sigmoid()), lambda z: z + z.sigmoid() * (z.flip(1) - z)),
    "pairwise_distance": (
        lambda z: z + F.pairwise_distance(*halves(z), keepdim=True),
        lambda z: z + (z[:, 3:] - z[:, :3] + 1e-6).square().sum(1, keepdim=True).sqrt(),
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_an_operation_has_the_n_grams_of_its_parts(name):
    judge_same_n_grams([model_with(function) for function in PARTS[name]])


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_shares_follow_an_operation_as_they_follow_its_parts(name):
    models = [model_with(function) for function in PARTS[name]]
    scores = [unrolled.explain(model, SERIES[:1], target=1, expansion="shares").token_scores for model in models]
    torch.testing.assert_close(*scores)


@pytest.mark.slow
@pytest.mark.parametrize(("function", "converges"), [(of_a_part, True), (kinked, False)])
def test_what_increments_cannot_follow_is_integrated(function, converges):
    torch.manual_seed(1)
    model = Loop(Layered(function)).double()
    series = SERIES[:1, :3]  # quadrature of the kinked function is long, and reaches its end
    found = unrolled.explain(model, series, target=1)
    noted = [note for note in found.notes if "stands in for the expansion secant" in note]
    assert bool(noted) is not converges
    assert abs(found.ledger.remainder) < (1e-6 if converges else 1e-3)
    assert not any("rounding" in note for note in found.notes)
    assert unrolled.account(model, series, target=1).closes


def test_a_gate_that_is_computed_in_place_keeps_its_value_at_zero():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), Layer(lambda z: torch.sigmoid_(z) * 2), nn.Linear(4, 2)).double()
    plain = nn.Sequential(model[0], Layer(lambda z: torch.sigmoid(z) * 2), model[2])
    found, expected = (unrolled.account(each, SERIES[:, 0], target=1) for each in (model, plain))
    assert found.closes
    torch.testing.assert_close(found.features["0"], expected.features["0"], atol=1e-14, rtol=0)


@pytest.mark.slow
def test_a_step_that_nothing_follows_says_so_and_not_to_use_what_was_used():
    def jumps(z):
        return z + 100 * (1 / (1 + (-300 * z).exp())) * torch.mode(z, dim=-1, keepdim=True)[0]

    torch.manual_seed(0)
    model = Loop(Layered(jumps)).double()  # two steps: the quadrature is slow
    found = unrolled.explain(model, SERIES[:1, :2], target=1)
    about = [note for note in found.notes if "quadrature" in note]
    assert len(about) == 1
    assert "stands in for the expansion secant has not converged" in about[0]
    assert "mode has no rule" in about[0]
    assert "use the expansion secant" not in about[0]
    asked = unrolled.explain(model, SERIES[:1, :2], target=1, expansion="path")
    assert any("use the expansion secant, which needs no quadrature" in note for note in asked.notes)
