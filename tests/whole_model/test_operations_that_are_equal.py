"""A model has the account of the same model that is written with other operations of equal value."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import unrolled
from equal_accounts import A, Read, assert_equal, everything
from unrolled.errors import UnsupportedOperationError
from whole_model_zoo import WORDS, D, E, ids

COARSE = float(torch.tensor(0.7))  # rounded to float32


def middle(model, h):
    return torch.tanh(model.middle(h))


def normalised(model, h):
    variance, mean = torch.var_mean(h, -1, keepdim=True, correction=0)
    return model.middle((h - mean) / (variance + 1e-5).sqrt())


def normalised_by_two(model, h):
    variance, mean = h.var(-1, keepdim=True, correction=0), h.mean(-1, keepdim=True)
    return model.middle((h - mean) / (variance + 1e-5).sqrt())


def standardised(_, h):
    deviation, mean = torch.std_mean(h, 1)
    return (h - mean[:, None]) / deviation[:, None]


def mapped(_, h):
    def one(given, row, same):
        first, _ = given
        return {"product": first * row, "others": [first + first.sum(), same]}

    found = torch.vmap(one, ((0, None), None, None), {"product": 0, "others": [1, None]})((h, 3), h[0], h.flip(1))
    return torch.cat((found["product"], found["others"][0].T, found["others"][1]), 1)


def filled(_, h):
    z = 2.0 * h
    z[:, 0].fill_(2.0)
    z[:, 1].zero_()
    z[:, 2].fill_(h[0, 0])
    return z


def joined(_, h):
    first = torch.full_like(h[:, :1], 2.0)
    return torch.cat((first, 0.0 * first, h[0, 0].expand(len(h), 1), 2.0 * h[:, 3:]), 1)


def unknown_replaced(_, h):
    unknown = h.masked_fill(h.abs() < 0.1, torch.nan).masked_fill(h > 0.3, torch.inf).masked_fill(h < -0.3, -torch.inf)
    return torch.nan_to_num(unknown, nan=0.5, posinf=1.5, neginf=-2.0)


def unknown_chosen(_, h):
    return h.masked_fill(h.abs() < 0.1, 0.5).masked_fill(h > 0.3, 1.5).masked_fill(h < -0.3, -2.0)


EQUAL = {
    "a map": (
        lambda _, h: torch.vmap(lambda one: torch.tanh(one) * one.sum())(h),
        lambda _, h: torch.tanh(h) * h.sum(1, keepdim=True),
    ),
    "a map of several axes, with results of its own form": (
        mapped,
        lambda _, h: torch.cat((h * h[:1], (h.sum(1, keepdim=True) + h), h.flip(1)), 1),
    ),
    "a map inside a map": (
        lambda _, h: torch.vmap(torch.vmap(lambda a, b: a * torch.sigmoid(b), (0, None)), (None, 0), 1)(h, h[0]),
        lambda _, h: h[:, None] * torch.sigmoid(h[0])[None, :, None],
    ),
    "a constant of a finer type": (
        lambda _, h: (h.float() + torch.linspace(0, 1, D, dtype=h.dtype)) @ A,
        lambda _, h: (h.float().to(h.dtype) + torch.linspace(0, 1, D, dtype=h.dtype)) @ A,
    ),
    "a complex number": (lambda _, h: ((h + 2j) * (1 + 1j)).real, lambda _, h: h - 2),
    "a parameter that is scaled, in place of a sum": (
        lambda m, h: (m.middle.bias * h.exp()).add_(h),
        lambda m, h: m.middle.bias * h.exp() + h,
    ),
    "a scatter that reads a part": (
        lambda _, h: h.scatter(1, torch.tensor([[3]] * len(h)), h).scatter_add(1, torch.tensor([[0, 1]] * len(h)), h),
        lambda _, h: torch.cat((2.0 * h[:, :2], h[:, 2:3], h[:, :1], h[:, 4:]), 1),
    ),
    "a checkpoint": (
        lambda model, h: checkpoint(middle, model, h, use_reentrant=False),
        middle,
    ),
    "var_mean": (normalised, normalised_by_two),
    "std_mean": (standardised, lambda _, h: (h - h.mean(1, keepdim=True)) / h.std(1, keepdim=True)),
    "as_tensor": (lambda _, h: torch.as_tensor(h) + torch.asarray(h), lambda _, h: h + h),
    "tensor of a tensor": (lambda _, h: torch.tensor(h), lambda _, h: h.clone()),
    "complex": (
        lambda model, h: (torch.complex(h, model.dense[: len(h)]) * torch.complex(h, 2 * h)).abs(),
        lambda model, h: (torch.view_as_complex(torch.stack((h, model.dense[: len(h)]), -1)) * (h + 2j * h)).abs(),
    ),
    "fold": (
        lambda _, h: nn.functional.fold(h.reshape(-1, 4, 2), (3, 2), (2, 2)),
        lambda _, h: torch.cat((h[:, ::2][:, :2], h[:, 1::2][:, :2] + h[:, 4::2], h[:, 5::2]), 1),
    ),
    "fill_ and zero_": (filled, joined),
    "put": (
        lambda model, h: h.put(torch.arange(2), model.middle(h).flatten()[:2]),
        lambda model, h: torch.where(torch.arange(h.numel()).view_as(h) < 2, model.middle(h), h),
    ),
    "logarithms in columns": (
        lambda _, h: torch.column_stack((h.abs().log()[:, :2], h.abs().log()[:, 2:])).exp(),
        lambda _, h: h.abs(),
    ),
    "a number at some places": (
        lambda _, h: h.index_fill(1, torch.tensor([0]), 2.0).scatter(1, torch.tensor([[1]] * len(h)), 3.0),
        lambda _, h: torch.cat((torch.full_like(h[:, :1], 2.0), torch.full_like(h[:, :1], 3.0), h[:, 2:]), 1),
    ),
    "a number at some places, in place": (
        lambda _, h: torch.relu(h).index_fill_(1, torch.tensor([0]), 2.0).scatter_(1, torch.tensor([[1]]), value=0.0),
        lambda _, h: torch.cat(
            (
                torch.full_like(h[:, :1], 2.0),
                torch.where(torch.arange(len(h)) > 0, h[:, 1].relu(), 0.0)[:, None],
                h[:, 2:].relu(),
            ),
            1,
        ),
    ),
    "xlogy": (
        lambda model, h: torch.xlogy(h, model.middle(h).abs()) + torch.special.xlog1py(h, model.middle(h).abs()),
        lambda model, h: h * model.middle(h).abs().log() + h * torch.log1p(model.middle(h).abs()),
    ),
    "xlogy of a coarser type": (
        lambda _, h: torch.xlogy(h, torch.tensor(0.3)) + torch.xlogy(h, 0.3) + torch.xlogy(0.3, h.abs()),
        lambda _, h: h * math.log(float(torch.tensor(0.3))) + h * math.log(0.3) + 0.3 * h.abs().log(),
    ),
    "xlogy of zero": (
        lambda _, h: h + torch.xlogy(torch.zeros_like(h), h - h),
        lambda _, h: h + 0.0,
    ),
    "the entropy of one": (
        lambda _, h: torch.special.entr(h.sigmoid()),
        lambda _, h: -h.sigmoid() * h.sigmoid().log(),
    ),
    "logit": (
        lambda _, h: h * torch.logit(torch.sigmoid(h), eps=1e-6),
        lambda _, h: h * (torch.sigmoid(h).log() - (1 - torch.sigmoid(h)).log()),
    ),
    "numbers of a coarser type beside value": (
        lambda _, h: torch.cat([torch.where(h > 0, h, torch.tensor(0.7)), torch.full((len(h), 1), 0.7)], 1),
        lambda _, h: torch.cat([torch.where(h > 0, h, COARSE), torch.full((len(h), 1), COARSE, dtype=h.dtype)], 1),
    ),
    "complex numbers in place of value": (
        lambda _, h: torch.where(h > 0, h, torch.tensor(COARSE + 0.2j, dtype=torch.complex128)).real,
        lambda _, h: torch.where(h > 0, h, COARSE),
    ),
    "real numbers in place of complex value": (
        lambda model, h: torch.where(h > 0, torch.complex(h, model.middle(h)), torch.tensor(0.7)).imag + h,
        lambda model, h: torch.where(h > 0, model.middle(h), 0.0) + h,
    ),
    "real value in place of complex value": (
        lambda model, h: torch.where(h > 0, torch.complex(h, h), model.middle(h)).real,
        lambda model, h: torch.where(h > 0, h, model.middle(h)),
    ),
    "hypot": (
        lambda model, h: torch.hypot(h, model.middle(h)),
        lambda model, h: (h * h + model.middle(h).square()).sqrt(),
    ),
    "hypot of shapes that differ, beside a number that is held": (
        lambda _, h: torch.hypot(h, other=torch.full((1, 1), 0.7).double()) + torch.hypot(h[:, :1], h),
        lambda _, h: (h.square() + COARSE**2).sqrt() + (h[:, :1].square() + h.square()).sqrt(),
    ),
    "dist": (
        lambda model, h: h * 0 + torch.dist(h, model.middle(h)) + torch.dist(h, model.middle(h), p=3),
        lambda model, h: h * 0 + (h - model.middle(h)).norm() + (h - model.middle(h)).abs().pow(3).sum() ** (1 / 3),
    ),
    "pairwise_distance": (
        lambda model, h: torch.nn.functional.pairwise_distance(h, model.middle(h), keepdim=True).expand_as(h),
        lambda model, h: (h - model.middle(h) + 1e-6).square().sum(1, keepdim=True).sqrt().expand_as(h),
    ),
    "pairwise_distance of order one": (
        lambda model, h: torch.nn.PairwiseDistance(1.0, eps=0.0)(h, model.middle(h))[:, None].expand_as(h),
        lambda model, h: (h - model.middle(h)).abs().sum(1, keepdim=True).expand_as(h),
    ),
    "renorm": (
        lambda _, h: torch.renorm(h, 2, 0, 0.5),
        lambda _, h: h * torch.where(h.norm(dim=1) > 0.5, 0.5 / (h.norm(dim=1) + 1e-7), 1.0)[:, None],
    ),
    "cdist": (
        lambda model, h: torch.cdist(h[:, None], model.middle(h)[:, None])[:, 0].expand_as(h),
        lambda model, h: (h - model.middle(h)).square().sum(1, keepdim=True).sqrt().expand_as(h),
    ),
    "nanmean": (lambda _, h: h.nanmean(1), lambda _, h: h.mean(1)),
    "nan_to_num": (unknown_replaced, unknown_chosen),
    "take": (lambda _, h: h.take(torch.arange(h.numel())), lambda _, h: h.reshape(-1)),
    "fmod": (lambda _, h: torch.fmod(3.0 * h, 0.7), lambda _, h: 3.0 * h - 0.7 * torch.trunc(3.0 * h / 0.7)),
    "remainder": (lambda _, h: (3.0 * h) % 0.7, lambda _, h: 3.0 * h - 0.7 * torch.floor(3.0 * h / 0.7)),
    "the remainder of a number": (
        lambda _, h: 2.0 % (0.3 + h.abs()),
        lambda _, h: 2.0 - (0.3 + h.abs()) * torch.floor(2.0 / (0.3 + h.abs())),
    ),
    "a whole quotient": (lambda _, h: h + 3.0 * h // 0.5, lambda _, h: h + torch.floor(3.0 * h / 0.5)),
    "polar": (lambda model, h: torch.polar(h, model.middle(h)).real, lambda model, h: h * model.middle(h).cos()),
    "a re-entrant checkpoint": (lambda model, h: checkpoint(middle, model, h, use_reentrant=True), middle),
}


@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad=True")
def test_equal_operations_have_equal_accounts(name):
    assert_equal(*EQUAL[name])


def test_operations_of_other_value_have_other_accounts():
    with pytest.raises(AssertionError):
        assert_equal(lambda _, h: h.exp(), lambda _, h: h.expm1())


def test_a_tensor_of_a_list_of_tensors_loses_value():
    def read(_, h):
        return torch.tensor([h[0, 0], h[0, 1]])

    with pytest.raises(
        UnsupportedOperationError, match=r"torch.tensor makes a tensor of a list's numbers.*torch.stack"
    ):
        unrolled.account(Read(read), ids(1, 3), target=1)
    unrolled.account(Read(lambda _, h: (h, read(_, h))[0]), ids(1, 3), target=1)  # no output is made of it


@pytest.mark.parametrize("how", ["add", "multiply"])
def test_a_scatter_that_torch_does_not_differentiate_is_refused_in_one_line(how):
    places = torch.tensor([[1]])
    read = Read(lambda _, h: h.scatter(1, places.expand(len(h), 1), 2.0, reduce=how))
    with pytest.raises(UnsupportedOperationError, match=r"scatter with reduce=.*use scatter_add or scatter_reduce"):
        unrolled.account(read, ids(1, 3), target=1)


def test_operations_between_two_networks():
    class Two(nn.Module):
        def __init__(self, between):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.one, self.other = nn.Embedding(WORDS, E), nn.GRU(E, D), nn.GRU(D, D)
            self.head, self.between = nn.Linear(D, 2), between

        def forward(self, tokens):
            return self.head(self.other(self.between(self.one(self.embed(tokens.T))[0]))[0][-1])

    def by_var_mean(x):
        variance, mean = torch.var_mean(x, -1, keepdim=True)
        return torch.linalg.matmul((x - mean) / variance.sqrt(), A) % 5.0

    def by_others(x):
        y = (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) @ A
        return y - 5.0 * torch.floor(y / 5.0)

    tokens = ids(1, 5)
    found, expected = (unrolled.explain(Two(each).double(), tokens, target=1) for each in (by_var_mean, by_others))
    torch.testing.assert_close(found.token_scores, expected.token_scores)
    accounts = [unrolled.account(Two(each).double(), tokens, target=1) for each in (by_var_mean, by_others)]
    torch.testing.assert_close(everything(accounts[0]), everything(accounts[1]))
    # a matrix that is sparse, with a network before and behind it
    sparse, dense = A.to_sparse(), A
    pair = (lambda x: (sparse @ x.flatten(0, 1).T).T.view_as(x), lambda x: x @ dense.T)
    scores = [unrolled.explain(Two(each).double(), tokens, target=1).token_scores for each in pair]
    torch.testing.assert_close(*scores)
