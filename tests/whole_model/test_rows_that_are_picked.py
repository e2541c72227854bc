"""Rows of a table that a model computes, and weights of a bag's vectors, count as in an index and a product."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from whole_model_zoo import WORDS, D, E, ids

PLACES = torch.tensor([[0, 2], [1, 1], [4, 3]])
LENGTH = 5


class Reader(nn.Module):
    """Reads states at places that it is given."""

    def __init__(self, pick):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(WORDS, E), nn.GRU(E, D, batch_first=True), nn.Linear(D, 2)
        self.pick = pick

    def forward(self, tokens, places):
        states = self.rnn(self.embed(tokens))[0]
        return self.head(self.pick(states.flatten(0, 1), places + LENGTH * torch.arange(len(tokens))[:, None]))


PICKS = {
    "embedding": lambda states, places: F.embedding(places, states).sum(1),
    "embedding with padding": lambda states, places: F.embedding(places, states, padding_idx=7).sum(1),
    "embedding_bag": lambda states, places: F.embedding_bag(places, states, mode="sum"),
    "the mean of a bag": lambda states, places: 2.0 * F.embedding_bag(places, states),
    "a gate": lambda states, places: F.embedding(places, torch.sigmoid(states)).mul(states[places]).sum(1),
}


def parts(model, *args):
    found = unrolled.account(model.double(), *args, target=1)
    assert found.closes
    return found, [
        *found.texts.values(),
        *found.features.values(),
        sum(found.biases.values(), torch.zeros_like(found.output)),
        sum(found.constants.values(), torch.zeros_like(found.output)),
    ]


def plain(states, places):
    return states[places].sum(1)


def gated(states, places):
    return (torch.sigmoid(states)[places] * states[places]).sum(1)


@pytest.mark.parametrize("name", PICKS)
def test_states_that_are_looked_up_as_a_table_keep_their_tokens(name):
    tokens = ids(3, LENGTH)
    found, numbers = parts(Reader(PICKS[name]), tokens, PLACES)
    assert list(found.texts) == ["0"]  # the places are no tokens
    assert found.tokens.abs().max() > 1e-3
    expected = parts(Reader(gated if name == "a gate" else plain), tokens, PLACES)[1]
    torch.testing.assert_close(numbers, expected, rtol=1e-9, atol=1e-12)


def test_other_places_have_another_account():
    tokens = ids(3, LENGTH)
    found, other = (parts(Reader(plain), tokens, places)[0].tokens for places in (PLACES, (PLACES + 1) % LENGTH))
    assert float((found - other).abs().max()) > 1e-3


class Bag(nn.Module):
    """A sum of weighed vectors."""

    def __init__(self, weighed, learned=False):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.head, self.weigh = nn.Embedding(WORDS, E), nn.Linear(E, 2), nn.Linear(E, 1)
        self.weighed, self.learned = weighed, learned

    def forward(self, tokens, weights=None):
        if self.learned:  # by the token before
            weights = torch.sigmoid(self.weigh(self.embed(tokens)))[..., 0].roll(1, 1)
        return self.head(self.weighed(self.embed.weight, tokens, weights))


def by_bag(table, tokens, weights):
    return F.embedding_bag(tokens, table, per_sample_weights=weights, mode="sum")


def by_product(table, tokens, weights):
    return (F.embedding(tokens, table) * weights[..., None]).sum(1)


@pytest.mark.parametrize("learned", [False, True])
def test_the_weights_of_a_bag_are_factors(learned):
    args = (ids(3, LENGTH), *(() if learned else (torch.rand(3, LENGTH, dtype=torch.float64) + 0.1,)))
    found, expected = (parts(Bag(each, learned), *args)[1] for each in (by_bag, by_product))
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_a_mask_is_held_among_the_weights_of_a_bag():
    tokens, mask = ids(3, LENGTH), torch.tensor([[1.0, 1, 0, 1, 1]] * 3, dtype=torch.float64)
    found, numbers = parts(Bag(by_bag), tokens, mask)
    torch.testing.assert_close(numbers, parts(Bag(by_product), tokens, mask)[1], rtol=1e-9, atol=1e-12)
    assert not found.tokens[:, 2].any()
    weighed, _ = parts(Bag(by_bag), tokens, 0.7 * mask)  # the control: numbers take a share of the product
    assert float((weighed.tokens - 0.7 * found.tokens).abs().max()) > 1e-3
