"""A gate is a gate however it is written: operations that change no number of it change no contribution."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from written_complements import COMPLEMENTS

X = torch.randn(2, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
MASK = torch.tensor([1.0, 0.0, 1.0, 1.0], dtype=torch.float64)
OPEN = MASK == 1


class Model(nn.Module):
    """Reads four gates and four contents."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(torch.sigmoid(x[:, :4]), x[:, 4:] * 1)


def account(function, model=Model):
    found = unrolled.account(model(function), X, target=lambda output: output.sum(dim=1))
    assert float(found.remainder.abs().max()) < 1e-14
    return found.features["0"], found.constants.get("constants", torch.zeros(2, dtype=X.dtype))


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-14)


def packed(z):
    given = nn.utils.rnn.pack_padded_sequence(z[..., None], torch.tensor([4, 4]), batch_first=True)
    return torch.stack(given.data.unflatten(0, (4, 2)).unbind(0), 1)[..., 0]


def packed_and_padded(z):
    given = nn.utils.rnn.pack_sequence(list(z))
    return nn.utils.rnn.pad_packed_sequence(given, batch_first=True, padding_value=0.3)[0]


def written_in_place(z):
    result = torch.zeros_like(z)
    for place in range(4):
        result[:, place] = z[:, place]
    return result


IDENTITIES = {
    "clone": lambda z: z.clone(),
    "detach": lambda z: z.detach(),
    "data": lambda z: z.data,
    "contiguous": lambda z: z.t().contiguous().t(),
    "double": lambda z: z.double(),
    "to": lambda z: z.to(torch.float64),
    "type_as": lambda z: z.type_as(X),
    "as_tensor": torch.as_tensor,
    "nan_to_num": torch.nan_to_num,
    "expand_as": lambda z: z[:, :, None].expand_as(z[:, :, None])[:, :, 0],
    "view_as": lambda z: z.view(8).view_as(z),
    "reshape_as": lambda z: z.reshape(8).reshape_as(z),
    "flatten": lambda z: z.flatten().unflatten(0, (2, 4)),
    "unbind": lambda z: torch.stack(z.unbind(1), 1),
    "permute": lambda z: z.permute(1, 0).permute(1, 0),
    "mT": lambda z: z.mT.T,
    "movedim": lambda z: z.movedim(0, 1).swapaxes(0, 1),
    "flip": lambda z: z.flip(1).fliplr(),
    "roll": lambda z: z.roll(1, 1).roll(3, 1),
    "repeat": lambda z: z.repeat(1, 2)[:, 4:],
    "repeat_interleave": lambda z: z.repeat_interleave(2, 1)[:, ::2],
    "tile": lambda z: z.tile(2)[:, :4],
    "gather": lambda z: z.gather(1, torch.arange(4).expand(2, 4)),
    "index_select": lambda z: z.index_select(1, torch.arange(4)),
    "split": lambda z: torch.cat(z.split([1, 3], 1), 1),
    "tensor_split": lambda z: torch.hstack(z.tensor_split(2, 1)),
    "unfold": lambda z: z.unfold(1, 2, 2).flatten(1),
    "diag_embed": lambda z: z.diag_embed().diagonal(dim1=1, dim2=2),
    "tril": lambda z: z.tril(9),
    "stack": lambda z: torch.stack([z, z])[1],
    "cat with a constant": lambda z: torch.cat([z, torch.ones(2, 1, dtype=z.dtype)], 1)[:, :4],
    "pad": lambda z: F.pad(z, (1, 1), value=0.3)[:, 1:5],
    "pad by reflection": lambda z: F.pad(z[:, None], (1, 1), mode="reflect")[:, 0, 1:5],
    "upsample": lambda z: F.interpolate(z[:, None], scale_factor=2)[:, 0, ::2],
    "broadcast": lambda z: torch.broadcast_tensors(X[0, :4], z)[1],
    "packed": packed,
    "packed and padded": packed_and_padded,
    "pad_sequence": lambda z: nn.utils.rnn.pad_sequence([z[0], z[1], z[1].new_zeros(5)], True, 0.3)[:2, :4],
    "written": written_in_place,
    "index_put": lambda z: torch.zeros_like(z).index_put((torch.arange(2)[:, None], torch.arange(4)), z),
    "index_copy": lambda z: torch.ones_like(z).index_copy(1, torch.arange(4), z),
    "scatter": lambda z: torch.zeros_like(z).scatter(1, torch.arange(4).expand(2, 4), z),
    "scatter a number": lambda z: F.pad(z, (0, 1)).scatter(1, torch.full((2, 1), 4), 0.3)[:, :4],
    "masked_scatter": lambda z: torch.zeros_like(z).masked_scatter(torch.ones(2, 4) > 0, z),
    "select_scatter": lambda z: torch.zeros(2, 1, 4, dtype=z.dtype).select_scatter(z, 1, 0)[:, 0],
    "sort": lambda z: z.sort(1).values.gather(1, z.argsort(1).argsort(1)),
    "topk": lambda z: z.topk(4, 1)[0].gather(1, z.argsort(1, descending=True).argsort(1)),
    "max": lambda z: torch.stack([z, 0 * z], 1).max(1).values,
    "amax": lambda z: z[:, None].amax(1),
    "dropout": lambda z: F.dropout(z, 0.5, False),
    "positive": lambda z: +z,
    "minus twice": lambda z: z.neg().neg(),
    "times one": lambda z: 1 * z,
    "times ones": lambda z: z * torch.ones(4, dtype=z.dtype),
    "half of twice": lambda z: (2 * z) / 2,
    "plus zero": lambda z: z + 0,
    "plus one minus one": lambda z: (z + 1) - torch.ones_like(z),
    "complement twice": lambda z: 1 - (1 - z),
    "clamp": lambda z: z.clamp(0, 1),
    "clamp from below": lambda z: z.clamp_min(torch.zeros_like(z)),
    "masked_fill of nothing": lambda z: z.masked_fill(torch.zeros(2, 4) > 0, 3.0),
    "where": lambda z: torch.where(torch.ones(2, 4) > 0, z, 0.0),
    "copy in place": lambda z: torch.empty_like(z).copy_(z),
    "in place": lambda z: z.mul_(2).sub_(1).add_(1).div_(2),
    "clamp in place": lambda z: z.clamp_(0, 1),
    "re-arranged in place": lambda z: z.t_().t_().unsqueeze_(0).squeeze_(0),
    "a result by out": lambda z: torch.mul(z, 1, out=torch.empty_like(z)),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_an_identity_operation_on_a_gate_changes_no_contribution(name):
    expected = account(lambda z, c: z * c)
    assert not expected[1].any()  # a gate that is used as one makes no constant
    assert_same(account(lambda z, c: IDENTITIES[name](z) * c), expected)


def sigmoid_in_place(x):
    z = x[:, :4] * 1
    z.sigmoid_()
    return z * x[:, 4:]


def times_in_place(z, c):
    c *= z
    return c


PRODUCTS = {
    "the other order": lambda z, c: c * z,
    "in place": times_in_place,
    "mul_": lambda z, c: c.mul_(z),
    "in place of the gate": lambda z, c: z.mul_(c),
    "addcmul": lambda z, c: torch.addcmul(torch.zeros_like(c), z, c),
    "lerp": lambda z, c: torch.lerp(torch.zeros_like(c), c, z),
    "einsum": lambda z, c: torch.einsum("bd,bd->bd", z, c),
    "bmm": lambda z, c: torch.bmm(z[:, None], c[:, :, None])[:, 0],
    "matmul with a diagonal": lambda z, c: (torch.diag_embed(z) @ c[..., None])[..., 0],
    "inner product": lambda z, c: torch.stack([torch.dot(*each) for each in zip(z, c, strict=True)])[:, None],
}
"""Ways to write z ⊙ c, or its sum."""


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_with_a_gate_is_written_in_any_way(name):
    assert_same(account(PRODUCTS[name]), account(lambda z, c: z * c))


class OfNumbers(Model):
    def forward(self, x):
        return self.function(x)


def test_a_sigmoid_in_place_makes_a_gate():
    assert_same(account(sigmoid_in_place, OfNumbers), account(lambda z, c: z * c))


@pytest.mark.parametrize("name", COMPLEMENTS)
def test_a_complement_is_written_in_any_way(name):
    assert_same(account(lambda z, c: COMPLEMENTS[name](z) * c), account(lambda z, c: (1 - z) * c))


SCALED = {
    "a mask": (lambda z, c: (z * MASK) * c, lambda z, c: (z * c) * MASK),
    "a mask of truths": (lambda z, c: (z * OPEN) * c, lambda z, c: (z * c) * OPEN),
    "twice": (lambda z, c: (2 * z) * c, lambda z, c: 2 * (z * c)),
    "a divisor with value": (lambda z, c: (z / c.exp()) * c, lambda z, c: (z * c) / c.exp()),
    "a masked part": (lambda z, c: z.masked_fill(~OPEN, 0.0) * c, lambda z, c: (z * c).masked_fill(~OPEN, 0.0)),
    "a part that is open": (lambda z, c: torch.where(OPEN, z, 1.0) * c, lambda z, c: torch.where(OPEN, z * c, c)),
    "a bound": (lambda z, c: z.clamp(max=0.5) * c, lambda z, c: torch.where(z < 0.5, z * c, 0.5 * c)),
    "one more": (lambda z, c: (1 + z) * c, lambda z, c: c + z * c),
    "a held result more": (lambda z, c: (z + c.exp()) * c, lambda z, c: z * c + c.exp() * c),
    "less than a held result": (lambda z, c: (c.softmax(1) - z) * c, lambda z, c: c.softmax(1) * c - z * c),
    "joined gates": (
        lambda z, c: torch.cat([z[:, :2], 1 - z[:, 2:]], 1) * c,
        lambda z, c: torch.cat([z[:, :2] * c[:, :2], c[:, 2:] - z[:, 2:] * c[:, 2:]], 1),
    ),
    "a gate beside a held result": (
        lambda z, c: torch.cat([z[:, :2], c[:, 2:].exp()], 1) * c,
        lambda z, c: torch.cat([z[:, :2] * c[:, :2], c[:, 2:].exp() * c[:, 2:]], 1),
    ),
    "a matrix of gates": (
        lambda z, c: z.view(2, 2, 2) @ c.view(2, 2, 2),
        lambda z, c: (z.view(2, 2, 2, 1) * c.view(2, 1, 2, 2)).sum(2),
    ),
}
"""A factor before the product with the content, or behind it."""


@pytest.mark.parametrize("name", SCALED)
def test_a_factor_or_a_number_may_stand_before_the_product_or_behind_it(name):
    before, behind = (lambda z, c, f=each: f(z, c).flatten(1) for each in SCALED[name])
    assert_same(account(before), account(behind))


OF_GATES = {
    "first the gates": (lambda z, c: (z * z.flip(1)) * c, lambda z, c: z * (z.flip(1) * c)),
    "from the left": (lambda z, c: z * z.flip(1) * z.roll(1, 1) * c, lambda z, c: z * (z.flip(1) * (z.roll(1, 1) * c))),
    "from the right": (
        lambda z, c: (z * (z.flip(1) * z.roll(1, 1))) * c,
        lambda z, c: z * (z.flip(1) * (z.roll(1, 1) * c)),
    ),
    "with a factor": (lambda z, c: (0.5 * z) * (z.flip(1) * MASK) * c, lambda z, c: z * (z.flip(1) * (0.5 * MASK * c))),
    "complements": (lambda z, c: ((1 - z) * (1 - z.flip(1))) * c, lambda z, c: (1 - z) * ((1 - z.flip(1)) * c)),
    "the complement": (lambda z, c: (1 - z * z.flip(1)) * c, lambda z, c: c - z * (z.flip(1) * c)),
    "re-arranged": (lambda z, c: (z[:, None] * z[:, None].flip(2))[:, 0] * c, lambda z, c: z * (z.flip(1) * c)),
    "joined with gates": (
        lambda z, c: torch.cat([z[:, :2], z[:, 2:] * z[:, :2]], 1) * c,
        lambda z, c: torch.cat([z[:, :2] * c[:, :2], z[:, 2:] * (z[:, :2] * c[:, 2:])], 1),
    ),
    "in place": (lambda z, c: (z.clone().mul_(z.flip(1))) * c, lambda z, c: z * (z.flip(1) * c)),
    "in a matrix product": (
        lambda z, c: (torch.diag_embed(z * z.flip(1)) @ c[..., None])[..., 0],
        lambda z, c: z * (z.flip(1) * c),
    ),
    "of logarithms": (lambda z, c: (z.log() + z.flip(1).log()).exp() * c, lambda z, c: z * (z.flip(1) * c)),
    "a square": (lambda z, c: z.square() * c, lambda z, c: z * (z * c)),
    "a power": (lambda z, c: z**3 * c, lambda z, c: z * (z * (z * c))),
    "prod": (lambda z, c: z.prod(1, keepdim=True) * c, lambda z, c: in_turn(z[:, None], c[..., None])[..., 0]),
    "prod without an axis": (
        lambda z, c: z.view(2, 2, 2).prod(2) * c[:, :2],
        lambda z, c: in_turn(z.view(2, 2, 2), c[:, :2, None])[..., 0],
    ),
}
"""Gates that are multiplied before the content, and one after the other."""


def in_turn(gates, content):
    for gate in gates.split(1, -1):
        content = gate * content
    return content


@pytest.mark.parametrize("name", OF_GATES)
def test_gates_may_be_multiplied_before_the_content(name):
    before, one_by_one = (lambda z, c, f=each: f(z, c) for each in OF_GATES[name])
    assert_same(account(before), account(one_by_one))


@pytest.mark.parametrize("form", [lambda z: z.cumprod(1), lambda z: z.log().cumsum(1).exp()])
def test_a_cumulative_product_of_gates_is_held(form):
    (found, _), (by_gates, _) = account(lambda z, c: form(z) * c), account(lambda z, c: (z * z.flip(1)) * c)
    assert not found[:, :4].any()
    assert bool(by_gates[:, :4].all())  # the control


def test_a_product_of_gates_alone_is_shared_by_halves():
    numbers = torch.sigmoid(X[:, :4])
    halves = account(lambda z, c: 0.5 * z * numbers.flip(1) + 0.5 * numbers * z.flip(1) + 0 * c)
    assert_same(account(lambda z, c: z * z.flip(1) + 0 * c), halves)
    scaled = account(lambda z, c: 0.5 * z * numbers.flip(1) * c.exp() + 0.5 * numbers * z.flip(1) * c.exp())
    assert_same(account(lambda z, c: (z * z.flip(1)) * c.exp())[:1], scaled[:1])


NO_GATES = {
    "a tanh of the same value": lambda z, c: (0.5 + 0.5 * torch.tanh(0.5 * (z / (1 - z.detach())).log())) * c,
    "behind a content": lambda z, c: ((z + c) - c) * c,
    "the root of the square": lambda z, c: z.square().sqrt() * c,
    "added to nothing": lambda z, c: torch.zeros_like(z).index_add(1, torch.arange(4), z) * c,
    "a sum with nothing": lambda z, c: torch.stack([z, 0 * z]).sum(0) * c,
}


@pytest.mark.parametrize("name", NO_GATES)
def test_what_is_no_gate_has_another_account_though_its_value_is_the_same(name):
    """The control: the test above can tell a gate from an ordinary factor."""
    found, expected = account(NO_GATES[name]), account(lambda z, c: z * c)
    torch.testing.assert_close(sum(p.sum() for p in found), sum(p.sum() for p in expected))
    assert float((found[0] - expected[0]).abs().max()) > 0.01


def test_an_operation_that_changes_a_gate_changes_the_account():
    found, expected = account(lambda z, c: (z * MASK) * c), account(lambda z, c: z * c)
    assert float((found[0] - expected[0]).abs().max()) > 0.01


def test_what_is_nothing_at_zero_is_a_content():
    """Some write the tanh of an LSTM as 2 σ(2x) - 1."""

    def written(tanh):
        return lambda x: torch.sigmoid(x[:, :4]) * tanh(x[:, 4:])

    by_sigmoid = account(written(lambda x: 2 * torch.sigmoid(2 * x) - 1), OfNumbers)
    assert_same(by_sigmoid, account(written(torch.tanh), OfNumbers))
