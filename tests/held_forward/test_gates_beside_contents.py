"""A gate that a model puts beside contents in one tensor counts as it does in a tensor of its own."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled

H = 3
X = torch.randn(2, 5 * H, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


class Step(nn.Module):
    """f ⊙ c + i ⊙ tanh g, of which a function computes i, f and tanh g from their sums."""

    def __init__(self, activated):
        super().__init__()
        self.activated = activated
        self.register_parameter("weight", nn.Parameter(torch.full((H,), 0.3, dtype=torch.float64)))

    def forward(self, x):
        i, f, g = self.activated(x[:, : 3 * H] * 1.0, self.weight)
        return f * x[:, 3 * H : 4 * H] + i * g


def account(model):
    found = unrolled.account(model, X, target=lambda output: output.sum(dim=1))
    assert found.closes
    return found.features["0"], found.output - found.movement


def apart(z, _):
    return z[:, :H].sigmoid(), z[:, H : 2 * H].sigmoid(), z[:, 2 * H :].tanh()


def in_place(z, _):
    z[:, : 2 * H].sigmoid_()
    z[:, 2 * H :].tanh_()
    return z.chunk(3, 1)


def in_place_of_a_view(z, _):
    z = z.view(2, 3, H)
    z[:, 2].tanh_()
    z[:, :2].sigmoid_()
    return z.unbind(1)


def in_place_under_views(z, _):
    parts = [z[:, k * H : (k + 1) * H] for k in range(3)]
    z[:, : 2 * H].sigmoid_()
    parts[2].tanh_()
    return parts


def written(z, _):
    z[:, 2 * H :] = z[:, 2 * H :].tanh()
    z[:, : 2 * H] = z[:, : 2 * H].sigmoid()
    return z.split(H, 1)


def copied(z, _):
    result = torch.zeros_like(z)
    result[:, : 2 * H].copy_(z[:, : 2 * H].sigmoid())
    result.narrow(1, 2 * H, H).copy_(z[:, 2 * H :].tanh())
    return result.tensor_split(3, 1)


def chosen(z, _):
    return torch.where(torch.arange(3 * H) < 2 * H, z.sigmoid(), z.tanh()).unfold(1, H, H).unbind(1)


def beside_a_parameter(z, weight):
    joined = torch.cat([z[:, : 2 * H].sigmoid(), weight.expand(2, H), z[:, 2 * H :].tanh()], 1)
    return joined[:, :H], joined[:, H : 2 * H], joined[:, 3 * H :]


def scaled(z, _):
    """tanh z = 2 σ(2z) - 1."""
    twice = torch.where(torch.arange(3 * H) < 2 * H, 1.0, 2.0).double()
    return (twice * (twice * z).sigmoid() - (twice - 1)).chunk(3, 1)


FORMS = {
    "cat": lambda z, _: torch.cat([z[:, : 2 * H].sigmoid(), z[:, 2 * H :].tanh()], 1).chunk(3, 1),
    "stack": lambda z, _: torch.stack(apart(z, _)),
    "where": chosen,
    "a mask": lambda z, _: z.sigmoid().masked_scatter(torch.arange(3 * H) >= 2 * H, z[:, 2 * H :].tanh()).chunk(3, 1),
    "in place": in_place,
    "in place of a view": in_place_of_a_view,
    "in place under views": in_place_under_views,
    "written": written,
    "copied": copied,
    "beside a parameter": beside_a_parameter,
    "scaled": scaled,
}


@pytest.mark.parametrize("name", FORMS)
def test_activations_in_one_tensor_have_the_account_of_those_apart(name):
    for found, expected in zip(account(Step(FORMS[name])), account(Step(apart)), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)


def test_a_gate_that_is_written_over_the_real_parts_of_complex_numbers_closes():
    def real_parts(z, _):
        numbers = torch.complex(z, z)
        torch.view_as_real(numbers)[..., 0].sigmoid_()
        return numbers.real.chunk(3, 1)

    assert float(account(Step(real_parts))[0][:, : 3 * H].abs().min()) > 0


def test_a_factor_of_the_same_value_that_is_no_gate_has_another_account():
    """The control: (1 + tanh(z / 2)) / 2 = σ(z), and it is no gate."""

    def no_gates(z, _):
        return torch.cat([0.5 + 0.5 * (0.5 * z[:, : 2 * H]).tanh(), z[:, 2 * H :].tanh()], 1).chunk(3, 1)

    assert float((account(Step(no_gates))[0] - account(Step(apart))[0]).abs().max()) > 0.01


class Products(nn.Module):
    """Products of two tensors, and of these and a content: gates and contents in every combination."""

    def __init__(self, multiplied):
        super().__init__()
        self.multiplied = multiplied

    def forward(self, x):
        a, b, c, d, q = x.split(H, 1)
        return self.multiplied([(a.sigmoid(), b.sigmoid()), (c, b.sigmoid()), (a.sigmoid(), d), (c, d)], q)


def one_by_one(pairs, q):
    return torch.cat([torch.cat([a * b, (a * b) * q], 1) for a, b in pairs], 1)


def joined(pairs, q):
    a, b = (torch.stack(each) for each in zip(*pairs, strict=True))
    return torch.cat([a * b, (a * b) * q], 2).transpose(0, 1).flatten(1)


def joined_in_place(pairs, q):
    a, b = (torch.stack(each) for each in zip(*pairs, strict=True))
    product = a.clone().mul_(b)
    return torch.cat([product, q.expand(4, 2, H).clone().mul_(product)], 2).transpose(0, 1).flatten(1)


@pytest.mark.parametrize("form", [joined, joined_in_place])
def test_products_of_joined_tensors_have_the_account_of_those_of_their_parts(form):
    weights = torch.linspace(0.3, 1.7, 8 * H, dtype=torch.float64)
    found, expected = (
        unrolled.account(Products(each), X, target=lambda output: output @ weights) for each in (form, one_by_one)
    )
    assert found.closes
    torch.testing.assert_close(found.features["0"], expected.features["0"], rtol=0, atol=1e-13)


def test_sums_of_joined_tensors_have_the_account_of_the_sums_of_their_parts():
    def by_einsum(pairs, q):
        return torch.einsum("kbe,be->b", torch.stack([a for a, _ in pairs]), q)[:, None]

    def by_parts(pairs, q):
        return sum((a * q).sum(1, keepdim=True) for a, _ in pairs)

    found, expected = (unrolled.account(Products(each), X, target=0) for each in (by_einsum, by_parts))
    torch.testing.assert_close(found.features["0"], expected.features["0"], rtol=0, atol=1e-13)


def test_the_sum_of_a_gate_and_a_content_is_no_gate():
    """The control: the sum counts as a content, also where the content adds zero."""

    def model(factor):
        return Products(lambda pairs, q: factor(pairs[0][0], q) * pairs[3][0])

    found = [
        unrolled.account(model(each), X, target=lambda output: output.sum(dim=1)).features["0"]
        for each in (lambda z, q: z + 0 * q, lambda z, q: torch.cat([z, q], 1)[:, :H])
    ]
    assert float((found[0] - found[1]).abs().max()) > 0.01


class BesideBias(nn.Module):
    """A gate of each number, times what a layer makes of zeros."""

    def __init__(self, layer):
        super().__init__()
        self.layer, self.bias = layer, nn.Parameter(torch.randn(4))
        self.double()

    def forward(self, x):
        return (torch.sigmoid(x) * self.layer(torch.zeros_like(x), self.bias)).sum(dim=1, keepdim=True)


OF_ZEROS = {
    "linear": lambda zeros, b: F.linear(zeros, torch.eye(4).to(zeros), b),
    "a convolution": lambda zeros, b: F.conv1d(zeros[..., None], torch.eye(4).to(zeros)[..., None], b)[..., 0],
    "a layer norm": lambda zeros, b: F.layer_norm(zeros, (4,), 1 - b, bias=b),
    "a group norm": lambda zeros, b: F.group_norm(zeros, 2, 1 - b, b),
    "a product and a sum": lambda zeros, b: zeros @ torch.eye(4).to(zeros) + b,
    "a sum and a product": lambda zeros, b: b + F.linear(zeros, torch.eye(4).to(zeros)),
    "columns": lambda zeros, b: (torch.eye(4).to(zeros) @ zeros.T + b[:, None]).T,
    "vectors": lambda zeros, b: torch.stack([torch.mv(torch.eye(4).to(zeros), each) + b for each in zeros]),
    "a part of an einsum": lambda zeros, b: (
        torch.einsum("be,ed->bd", zeros, torch.ones(4, 8).to(zeros)).chunk(2, 1)[1] + b
    ),
    "two products": lambda zeros, b: zeros @ torch.eye(4).to(zeros) + zeros @ torch.ones(4, 4).to(zeros) + b,
    "addmm": lambda zeros, b: torch.addmm(b, zeros, torch.eye(4).to(zeros)),
    "baddbmm": lambda zeros, b: torch.baddbmm(b[None, None], zeros[None], torch.eye(4).to(zeros)[None])[0],
}


@pytest.mark.parametrize("layer", OF_ZEROS)
def test_a_gate_shares_its_product_with_a_bias_that_a_layer_gives_for_zeros(layer):
    model, x = BesideBias(OF_ZEROS[layer]), torch.randn(2, 4, dtype=torch.float64)
    found = unrolled.account(model, x, target=0)
    risen, b = torch.sigmoid(x) - 0.5, model.bias.detach()
    torch.testing.assert_close(found.features["0"], 0.25 * risen * b)
    torch.testing.assert_close(found.biases["bias"], ((0.5 + 0.75 * risen) * b).sum(dim=1))


@pytest.mark.parametrize("factor", [lambda _, b: b, lambda zeros, b: zeros + b, lambda zeros, b: b.expand_as(zeros)])
def test_a_gate_keeps_its_product_with_a_parameter_that_is_a_factor(factor):
    model, x = BesideBias(factor), torch.randn(2, 4, dtype=torch.float64)
    found = unrolled.account(model, x, target=0)
    torch.testing.assert_close(found.features["0"], (torch.sigmoid(x) - 0.5) * model.bias.detach())
