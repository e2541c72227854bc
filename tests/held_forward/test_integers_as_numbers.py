# every way takes the model and its ids
"""Integers that a model uses as numbers are features; those that it multiplies by are held, as masks are."""

from __future__ import annotations

import pytest
import torch

import unrolled
from computed_ids_zoo import HISTORY, IDS, E, Reads, account, assert_equal_parts

ONE = torch.ones(1, dtype=torch.float64)
NUMBERS = {
    "converted": lambda m, x: m.number(x.double()[..., None]),
    "scaled": lambda m, x: m.number(x[..., None] * (0.5 * ONE)),
    "normalised": lambda m, x: m.number((x.double()[..., None] - 3) / 7),
    "a part": lambda m, x: torch.stack([x[:, 1:].double() @ m.of_one_hot.weight.T[:2]], 1),
    "root": lambda m, x: m.number(x.double().sqrt()[..., None]),
}


@pytest.mark.parametrize("way", NUMBERS, ids=str)
def test_integers_that_are_used_as_numbers_are_features_as_floats_are(way):
    assert_equal_parts(account(NUMBERS[way]), account(NUMBERS[way], IDS.double()))


def test_an_argument_of_ids_and_numbers_has_one_part_for_each_entry():
    def way(m, x):
        return torch.cat([m.table(x[:, 0])[:, :2], x[:, 1:].double()], 1)[:, None]

    class Apart(Reads):
        def forward(self, ids, numbers, history):
            self.way = lambda m, x: torch.cat([m.table(x)[:, :2], numbers], 1)[:, None]
            return super().forward(ids, history)

    found = account(way)
    apart = unrolled.account(Apart(None), IDS[:, 0], IDS[:, 1:].double(), HISTORY, target=1)
    together = torch.cat([apart.texts["0"][:, None], apart.features["1"]], 1)
    torch.testing.assert_close(found.texts["0"], together, rtol=1e-9, atol=1e-12)
    assert not found.features
    assert not found.constants


MASK = torch.tensor([[1, 1, 0], [1, 1, 1]])


@pytest.mark.parametrize("factors", [MASK, MASK.bool(), 3 * MASK], ids=["mask", "truth", "counts"])
@pytest.mark.parametrize("own", [False, True], ids=["given", "made of ids"])
@pytest.mark.parametrize("in_place", [False, True], ids=["product", "in place"])
def test_integers_that_multiply_are_held_as_factors(factors, own, in_place):
    class Masked(Reads):
        def forward(self, ids, history, factors):
            given = (ids != 21) * int(factors.max()) if own else factors
            given = given.double()[..., None]
            self.way = lambda m, x: (m.table(x) * 1.0).mul_(given) if in_place else (1 - (1 - given)) * m.table(x)
            return super().forward(ids, history)

    found = unrolled.account(Masked(None), IDS, HISTORY, factors, target=1)
    assert_equal_parts(found, account(lambda m, x: m.table(x) * factors.double()[..., None]))


def test_a_mask_of_integers_that_is_added_adds_no_parts():
    class Masked(Reads):
        def forward(self, ids, history, mask):
            self.way = lambda m, x: (m.table(x) - (1 - mask.double())[..., None] * 1e9).amax(1, keepdim=True)
            return super().forward(ids, history)

    found = unrolled.account(Masked(None), IDS, HISTORY, MASK, target=1)
    assert_equal_parts(found, account(lambda m, x: m.table(x).masked_fill(MASK[..., None] == 0, -1e9).amax(1, True)))
    assert float(found.cancellation.max()) < 1e3


def test_a_mask_that_is_a_feature_by_itself_is_named():
    found = account(lambda m, x: m.table(x) + (x == 4).double()[..., None])
    assert set(found.constants) == {"masks"}


W = 0.1 + torch.eye(E, dtype=torch.float64)
PRODUCTS = {
    "added to value by addmm": (lambda h, n: torch.addmm(h[0], n[0], W)[None], lambda h, n: (h[0] + n[0] @ W)[None]),
    "a bias of value": (lambda h, n: torch.nn.functional.linear(n[:1], W, h[0, 0]), lambda h, n: n[:1] @ W.T + h[0, 0]),
    "linalg.matmul": (lambda h, n: torch.linalg.matmul(n, h.mT) @ n, lambda h, n: n @ h.mT @ n),
    "vecdot": (lambda h, n: torch.linalg.vecdot(h, n)[..., None] * W[0], lambda h, n: (h * n).sum(-1, True) * W[0]),
    "multi_dot": (lambda h, n: torch.linalg.multi_dot([h[0].T, n[0], W])[None], lambda h, n: (h[0].T @ n[0] @ W)[None]),
    "in place": (lambda h, n: n.clone().mul_(h) + n, lambda h, n: n * h + n),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS, ids=str)
def test_integers_in_any_product_are_held_beside_value_and_are_features_beside_weights(name):
    def written(product):
        return lambda m, x: product(m.table(x), x.double().flip(1)[..., None].expand(-1, -1, E))

    assert_equal_parts(*(account(written(product)) for product in PRODUCTS[name]))
