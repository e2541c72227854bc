"""Steps of a network that read nothing of the arguments: their biases, and what they read, have their own names."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

import unrolled
from unrolled.cells import recurrent
from whole_model_zoo import WORDS, D, E, ids


class Decoder(nn.Module):
    """An encoder, and a decoder whose first steps read what it is not given: a start vector or nothing."""

    def __init__(self, decode, kind, start):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.encoder, self.head = nn.Embedding(WORDS, E), nn.GRU(E, D, batch_first=True), nn.Linear(D, 2)
        self.decoder, self.start = kind(E, D), nn.Parameter(torch.randn(E))
        self.decode, self.begin = decode, start

    def forward(self, tokens):
        state = self.encoder(self.embed(tokens))[1][0]
        return self.head(self.decode(self.decoder, self.begin(self, state), state))


def cell(decoder, begin, state):
    return decoder(begin, decoder(begin, state))


def network(decoder, begin, state):
    return decoder(begin.expand(3, *begin.shape), state[None])[0][-1]


def packed(decoder, begin, state):
    return decoder(pack_sequence(list(begin[:, None].expand(-1, 3, -1))), state[None])[1][0]


def stacked(decoder, begin, state):
    return decoder(begin.expand(3, *begin.shape), state.expand(2, *state.shape).contiguous())[0][-1]


DECODERS = {
    "a cell": (cell, nn.GRUCell),
    "a network": (network, nn.GRU),
    "a network of two layers": (stacked, lambda size, units: nn.GRU(size, units, 2)),
    "a packed network": (packed, nn.GRU),
    "a network of ours": (network, lambda size, units: recurrent("mi_gru", size, units)),
}
STARTS = {
    "a parameter": lambda model, state: model.start.expand(len(state), E),
    "a word": lambda model, state: model.embed(torch.ones(len(state), dtype=torch.int64)),
    "the likeliest class": lambda model, state: model.embed(model.head(state).argmax(1)),
    "zeros": lambda _, state: torch.zeros(len(state), E, dtype=state.dtype),
    "ones": lambda _, state: torch.ones(len(state), E, dtype=state.dtype),
}


def parts(decoder, start, expansion="secant"):
    decode, kind = DECODERS[decoder]
    model = Decoder(decode, kind, start).double()
    tokens = ids(3, 4)
    found = unrolled.account(model, tokens, target=1, expansion=expansion)
    assert found.closes
    named = {**found.biases, **found.constants}
    return found.tokens, {name: part for name, part in named.items() if float(part.abs().max()) > 1e-12}


@pytest.mark.quick_diagonal(4)  # quick: every decoder and start
@pytest.mark.parametrize("expansion", ["secant", "shares"])
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("decoder", DECODERS)
def test_they_are_those_of_steps_that_read_the_same_beside_nothing_of_the_arguments(decoder, start, expansion):
    def beside_nothing(model, state):
        return STARTS[start](model, state) + 0.0 * model.start.sum() * state[:, :E]

    torch.manual_seed(1)
    tokens, named = parts(decoder, STARTS[start], expansion)
    torch.manual_seed(1)
    expected_tokens, expected = parts(decoder, beside_nothing, expansion)
    torch.testing.assert_close(tokens, expected_tokens, rtol=1e-9, atol=1e-12)
    assert set(named) == set(expected)
    for name in named:
        torch.testing.assert_close(named[name], expected[name], rtol=1e-9, atol=1e-12)


def test_another_start_has_another_part():
    found = {name: parts("a cell", STARTS[name])[1] for name in STARTS}
    assert {"start", "decoder.bias_ih"} <= set(found["a parameter"])
    assert "embed.weight" in found["a word"]
    assert "argmax" in found["the likeliest class"]
    assert set(found["zeros"]) == {"encoder.bias_ih_l0", "encoder.bias_hh_l0", "head.bias"} | {
        f"decoder.bias_{kind}" for kind in ("ih", "hh")
    }


def pooled_place(scores):
    return nn.functional.max_pool1d(scores, scores.shape[-1], return_indices=True)[1]


PLACES = {
    "max": lambda scores: scores.max(1)[1],
    "topk": lambda scores: scores.topk(1)[1][:, 0],
    "sort": lambda scores: scores.sort(1, descending=True).indices[:, 0],
    "kthvalue": lambda scores: scores.kthvalue(scores.shape[1], 1).indices,
    "max_pool1d_with_indices": lambda scores: pooled_place(scores[:, None])[:, 0, 0],
    "adaptive_max_pool2d": lambda scores: nn.AdaptiveMaxPool2d(1, True)(scores[:, None, None])[1].flatten(),
}


@pytest.mark.parametrize("name", PLACES)
def test_the_place_of_the_largest_is_held_however_it_is_found(name):
    """The judge is argmax: the same class by another operation."""

    def start(model, state):
        return model.embed(PLACES[name](model.head(state)))

    torch.manual_seed(1)
    tokens, named = parts("a cell", start)
    torch.manual_seed(1)
    expected_tokens, expected = parts("a cell", STARTS["the likeliest class"])
    assert torch.equal(tokens, expected_tokens)
    assert torch.equal(named[name], expected["argmax"])
    assert "embed.weight" not in named


def one_hot(table, place):
    return nn.functional.one_hot(place, len(table)).to(table)


READS = {
    "index": lambda table, place: table[place],
    "index_select": lambda table, place: table.index_select(0, place),
    "gather": lambda table, place: table.gather(0, place[:, None].expand(-1, table.shape[1])),
    "take_along_dim": lambda table, place: torch.take_along_dim(table, place[:, None].expand(-1, table.shape[1]), 0),
    "one by one": lambda table, place: torch.stack([table[each] for each in place]),
    "a product from the right": lambda table, place: (table.T @ one_hot(table, place).T).T,
    "einsum": lambda table, place: torch.einsum("vd,bv->bd", table, one_hot(table, place)),
    "a sum of products": lambda table, place: (table * one_hot(table, place)[..., None]).sum(1),
    "a mask": lambda table, place: table.masked_fill(one_hot(table, place)[..., None] == 0, 0.0).sum(1),
}


@pytest.mark.parametrize("name", READS)
def test_what_is_read_at_a_held_place_is_held_however_it_is_read(name):
    """The judge is the module of the table: it reads the same row."""

    def start(model, state):
        return READS[name](model.embed.weight, model.head(state).argmax(1))

    torch.manual_seed(1)
    tokens, named = parts("a cell", start)
    torch.manual_seed(1)
    expected_tokens, expected = parts("a cell", STARTS["the likeliest class"])
    assert torch.equal(tokens, expected_tokens)
    assert set(named) == set(expected)
    torch.testing.assert_close(named["argmax"], expected["argmax"], rtol=0, atol=0)


@pytest.mark.parametrize("name", ["index", "index_select", "gather"])
def test_a_row_of_a_parameter_that_is_no_table_is_held_as_well(name):
    def start(model, state):
        return READS[name](model.head.weight[:, :E], model.head(state).argmax(1))

    named = parts("a cell", start)[1]
    assert "argmax" in named
    assert "head.weight" not in named
