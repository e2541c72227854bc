"""Masks and integers that a model puts beside numbers are accounted for as the same numbers of floating point."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

X = torch.randn(2, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
MASK = torch.tensor([[1, 0, 1], [0, 0, 1]])


class Reads(nn.Module):
    def __init__(self, way):
        super().__init__()
        torch.manual_seed(1)
        self.way, self.head = way, nn.Linear(6, 2)
        self.double()

    def forward(self, x, given):
        return self.head(self.way(x, given))


def assigned(x, given):
    made = torch.zeros(2, 6, dtype=x.dtype)
    made[:, :3] = x
    made[:, 3:] = given
    return made


def assigned_first(x, given):
    made = torch.zeros(2, 6, dtype=x.dtype)
    made[:, 3:] = given
    made[:, :3] = x
    return made


def copied(x, given):
    made = torch.zeros(2, 6, dtype=x.dtype)
    made[:, :3].copy_(x)
    made[:, 3:].copy_(given)
    return made


def joined(x, given):
    return torch.cat([x, given.to(x.dtype)], 1)


WAYS = {
    "cat": lambda x, given: torch.cat([x, given], 1),
    "cat by name": lambda x, given: torch.cat(tensors=[x, given], dim=1),
    "hstack": lambda x, given: torch.hstack([x, given]),
    "stack": lambda x, given: torch.stack([x, given], 1).flatten(1),
    "assigned": assigned,
    "assigned first": assigned_first,
    "copied": copied,
}


@pytest.mark.parametrize("given", [MASK, MASK.bool(), 3 * MASK + 2], ids=["mask", "truth", "integers"])
@pytest.mark.parametrize("way", WAYS)
def test_what_stands_beside_numbers_is_accounted_for(way, given):
    found = unrolled.account(Reads(WAYS[way]), X, given, target=1)
    expected = unrolled.account(Reads(joined), X, given, target=1)
    assert found.closes
    for name, part in expected.features.items():
        torch.testing.assert_close(found.features[name], part, atol=1e-12, rtol=0)
    added = sum(expected.constants.values(), torch.zeros(2, dtype=X.dtype))
    torch.testing.assert_close(sum(found.constants.values(), torch.zeros_like(added)), added, atol=1e-12, rtol=0)


def test_integers_that_a_model_puts_beside_numbers_itself_are_constants():
    found = unrolled.account(Reads(lambda x, _: torch.cat([x, torch.arange(3).expand(2, 3)], 1)), X, MASK, target=1)
    assert found.closes
    assert set(found.constants) == {"constants"}
    assert float(found.constants["constants"].abs().min()) > 1e-3


def test_integers_that_pick_places_stay_an_index():
    def way(x, given):
        made = torch.zeros(2, 6, dtype=x.dtype)
        made[torch.arange(2)[:, None], given] = x
        return made

    places = torch.tensor([[5, 0, 3], [1, 2, 4]])
    found = unrolled.account(Reads(way), X, places, target=1)
    assert found.closes
    assert set(found.features) == {"0"}
    torch.testing.assert_close(found.features["0"], X * Reads(way).head.weight[1].detach()[places], atol=1e-12, rtol=0)
