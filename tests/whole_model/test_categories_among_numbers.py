"""A column of categories in a table of numbers is credited with what its embedding contributes."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import unrolled

V, D = 9, 4
CODES = torch.tensor([[3, 1, 4, 1, 5], [2, 6, 5, 3, 8]])
NUMBERS = torch.randn(2, 5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
TABLE = torch.cat([NUMBERS[..., :1], CODES[..., None].double(), NUMBERS[..., 1:]], dim=-1)


class Reads(nn.Module):
    """Reads a table whose second column holds categories, or codes and numbers apart."""

    def __init__(self, code, cell=nn.GRU):
        super().__init__()
        torch.manual_seed(3)
        self.code = code
        self.embed, self.net, self.head = nn.Embedding(V, D), cell(D + 2, D, batch_first=True), nn.Linear(D, 2)

    def forward(self, table: Tensor, codes: Tensor | None = None) -> Tensor:
        numbers = table if codes is not None else table[..., [0, 2]]
        vectors = self.code(self.embed, table[..., 1]) if codes is None else self.embed(codes)
        return self.head(self.net(torch.cat([vectors, numbers], dim=-1))[0][:, -1])


WAYS = {
    "long": lambda embed, x: embed(x.long()),
    "to": lambda embed, x: embed(x.to(torch.int64)),
    "to by name": lambda embed, x: embed(x.to(dtype=torch.long)),
    "int": lambda embed, x: embed(x.int()),
    "type": lambda embed, x: embed(x.type(torch.LongTensor)),
    "type as": lambda embed, x: embed(x.type_as(CODES)),
    "rounded": lambda embed, x: embed(x.round().long()),
    "floored": lambda embed, x: embed((x + 0.25).floor().int()),
    "bins": lambda embed, x: embed(torch.bucketize(x.contiguous(), torch.arange(V).to(x))),
    "an offset": lambda embed, x: embed((x + 20).long() - 20),
    "a scale": lambda embed, x: embed((x * 2).long() // 2),
    "moved": lambda embed, x: embed(x.t().contiguous().long()).transpose(0, 1),
    "step by step": lambda embed, x: torch.stack([embed(x[:, t].long()) for t in range(x.shape[1])], dim=1),
    "a table": lambda embed, x: embed.weight[x.long()],
    "one-hot": lambda embed, x: F.one_hot(x.long(), V).to(x) @ embed.weight,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_category_is_credited_as_its_code_in_an_argument_of_its_own_would_be(way):
    model = Reads(WAYS[way]).double()
    found = unrolled.account(model, TABLE, target=1)
    apart = unrolled.account(model, NUMBERS, CODES, target=1)
    assert found.closes
    assert not found.constants
    torch.testing.assert_close(found.features["0"][..., 1], apart.texts["1"], atol=1e-12, rtol=0)
    torch.testing.assert_close(found.features["0"][..., [0, 2]], apart.features["0"], atol=1e-12, rtol=0)
    assert float(found.features["0"][..., 1].abs().min()) > 1e-6


@pytest.mark.parametrize("way", WAYS)
def test_explain_says_the_same_of_it(way):
    model = Reads(WAYS[way]).double()
    account = unrolled.account(model, TABLE[:1], target=1)
    found = unrolled.explain(model, TABLE[:1], target=1)
    assert found.features.rest_of == "biases"
    assert tuple(found.feature_scores.shape) == (5, 3)
    torch.testing.assert_close(found.feature_scores, account.features["0"][0], atol=1e-12, rtol=0)


def test_in_a_loop_of_cells_too():
    class Loop(Reads):
        def __init__(self):
            super().__init__(WAYS["long"])
            self.net = nn.GRUCell(D + 2, D)

        def forward(self, table: Tensor) -> Tensor:
            h = torch.zeros(len(table), D, dtype=table.dtype)
            for t in range(table.shape[1]):
                h = self.net(torch.cat([self.code(self.embed, table[:, t, 1]), table[:, t, [0, 2]]], dim=-1), h)
            return self.head(h)

    model = Loop().double()
    account = unrolled.account(model, TABLE, target=1)
    for b, found in enumerate(unrolled.explain_batch(model, TABLE, target=1)):
        torch.testing.assert_close(found.feature_scores, account.features["0"][b], atol=1e-12, rtol=0)


def test_codes_of_floating_point_alone_are_tokens():
    class Codes(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(3)
            self.embed, self.net, self.head = nn.Embedding(V, D), nn.GRU(D, D, batch_first=True), nn.Linear(D, 2)

        def forward(self, codes: Tensor) -> Tensor:
            return self.head(self.net(self.embed(codes.long()))[0][:, -1])

    model = Codes().double()
    found, expected = (unrolled.account(model, each, target=1) for each in (CODES.double(), CODES))
    torch.testing.assert_close(found.tokens, expected.tokens, atol=1e-12, rtol=0)
    assert found.words == expected.words
    with pytest.raises(unrolled.UsageError, match="not numbers"):
        _ = unrolled.explain(model, CODES[:1].double(), target=1).feature_scores


def test_an_integer_of_several_numbers_is_none_of_theirs():
    model = Reads(lambda embed, x: embed((x - x.roll(1, 1)).abs().long())).double()
    found = unrolled.account(model, TABLE, target=1)
    assert not bool(found.features["0"][..., 1].any())
    assert "long" in found.constants
    assert any("long" in note for note in found.notes)
    assert unrolled.explain(model, TABLE[:1], target=1).features.rest_of == "held results and biases"


class OfOneColumn(nn.Module):
    def __init__(self, ids):
        super().__init__()
        torch.manual_seed(3)
        self.ids, self.embed, self.head = ids, nn.Embedding(V, D), nn.Linear(D, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.embed(self.ids(x).long()).mean(1))


COARSE = {torch.bfloat16: 600, torch.float16: 3000}
"""Types of arguments, with more entries than the type has whole numbers."""


@pytest.mark.parametrize("dtype", COARSE)
def test_in_a_coarse_type_the_entries_of_a_long_argument_are_told_apart(dtype):
    codes = torch.randint(V, (1, COARSE[dtype]), generator=torch.Generator().manual_seed(0))
    model = OfOneColumn(lambda x: x)
    found, expected = (unrolled.account(model, each, target=1).tokens for each in (codes.to(dtype), codes))
    torch.testing.assert_close(found, expected)
    assert len(found.unique()) > 5


@pytest.mark.parametrize("dtype", [*COARSE, torch.float32])
def test_a_mean_of_two_numbers_is_not_the_number_that_stands_between_them(dtype):
    x = torch.tensor([[4.0, 1.0, 2.0]], dtype=dtype)
    with pytest.raises(unrolled.UnsupportedOperationError, match="held last: long"):
        unrolled.account(OfOneColumn(lambda x: (x[:, :1] + x[:, 2:]) / 2), x, target=1)
    found = unrolled.account(OfOneColumn(lambda x: x[:, 1:2]), x, target=1).tokens
    assert found.nonzero().tolist() == [[0, 1]]  # the control


@pytest.mark.parametrize(("dtype", "pair"), [(torch.bfloat16, (5, 19)), (torch.float32, (65, 95))])
def test_nor_the_one_before_the_second_where_the_numbers_of_the_two_lie_far_apart(dtype, pair):
    x = torch.zeros(1, 200, dtype=dtype)
    x[0, list(pair)] = torch.tensor([2.0, 4.0], dtype=dtype)
    with pytest.raises(unrolled.UnsupportedOperationError, match="held last: long"):
        unrolled.account(OfOneColumn(lambda x: x[:, list(pair)].mean(1, keepdim=True)), x, target=1)
    found = unrolled.account(OfOneColumn(lambda x: x[:, pair[1:]]), x, target=1).tokens
    assert found.nonzero().tolist() == [[0, pair[1]]]  # the control
