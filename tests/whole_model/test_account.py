"""The account closes whatever the model is."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import unrolled
from sizes_of_cells import SLOTS
from unrolled.cells import CELLS, recurrent
from whole_model_zoo import (
    Bag,
    Classifier,
    D,
    Decoder,
    E,
    Hierarchy,
    Loop,
    Siamese,
    Sorted,
    Tagger,
    Transformer,
    ids,
)

LENGTHS = torch.tensor([7, 3, 5])
KINDS = [nn.RNN, nn.GRU, nn.LSTM]


def padded():
    tokens = ids(3, 7)
    for row, length in enumerate(LENGTHS):
        tokens[row, length:] = 0
    return tokens


def gap(found):
    """The largest remainder, relative to the largest part."""
    scale = torch.maximum(found.movement.abs(), found.output.abs())
    return float((found.remainder.abs() / scale).max())


def checked(model, *args, bound=1e-12, **kwargs):
    """Account for the model's output, whose value, batch and sum are as they should be."""
    model = model.double().eval()
    found = unrolled.account(model, *args, **kwargs)
    assert gap(found) < bound, found
    assert found.closes
    assert max(float(one.remainder.abs()) for one in found) == pytest.approx(float(found.remainder.abs().max()))
    return found


@pytest.mark.quick_diagonal(4)  # quick: every network, every pooling, each number of layers
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("pool", ["last", "mean", "max", "attention"])
def test_kinds_layers_directions_and_poolings(kind, layers, both, pool):
    model = Classifier(kind, layers, both, pool)
    for parameter in model.rnn.parameters():
        parameter.data.mul_(3)
    checked(model, padded(), target=1)


@pytest.mark.quick_diagonal(2)  # quick: every head, packed and not
@pytest.mark.parametrize("head", ["linear", "mlp", "norm", "gated"])
@pytest.mark.parametrize("packed", [False, True])
def test_heads_and_packing(head, packed):
    model, tokens = Classifier(nn.LSTM, 2, True, "max", head, packed), padded()
    lengths = (LENGTHS,) if packed else ()
    found = checked(model, tokens, *lengths, target=2)
    assert found.tokens.shape == (3, 7)
    if packed:
        assert not found.tokens[1, 3:].any()
    for b, one in enumerate(found):
        alone = unrolled.account(model, tokens[b : b + 1], *(each[b : b + 1] for each in lengths), target=2)
        torch.testing.assert_close(one.tokens, alone.tokens, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(one.output, alone.output)
        for name, part in alone.biases.items():
            torch.testing.assert_close(one.biases[name], part, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in CELLS.names() if name not in SLOTS])
def test_networks_of_our_cells(name):
    model = Classifier(pool="mean")
    model.rnn = recurrent(name, E, D, num_layers=2, bidirectional=False, batch_first=True)
    checked(model, padded(), target=1)


def test_a_network_of_our_cells_takes_a_packed_sequence():
    model = Classifier(pool="mean", packed=True)
    model.rnn = recurrent("mi_lstm", E, D, num_layers=1, bidirectional=True, batch_first=True)
    model.head[0] = nn.Linear(2 * D, 6)
    checked(model, padded(), LENGTHS, target=1)


@pytest.mark.quick_diagonal(2)  # quick: every expansion, both networks
@pytest.mark.parametrize(
    "expansion", ["secant", "shares", "shares(0.5)", "path", "operating", "gates", "mean(operating, gates)"]
)
@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_every_exact_expansion_closes(kind, expansion):
    model = Classifier(kind, 2, True).double()
    found = unrolled.account(model, padded(), target=1, expansion=expansion)
    assert found.exact
    assert gap(found) < (1e-5 if expansion == "path" else 1e-12)
    assert found.expansion == expansion
    if expansion in ("secant", "shares", "shares(0.5)"):
        assert (
            not found.constants
        )  # others credit to the vector of a step what depends on the state, and padding has none


def test_an_inexact_expansion_says_what_it_leaves_out():
    found = unrolled.account(Classifier(nn.LSTM).double(), padded(), target=1, expansion="zero")
    assert gap(found) > 1e-3
    assert not found.closes
    assert "the expansion zero is not exact" in found.notes[0]


@pytest.mark.parametrize("cell", [nn.RNNCell, nn.GRUCell, nn.LSTMCell])
def test_a_loop_over_a_cell_equals_the_network(cell):
    model = Loop(cell)
    found = checked(model, ids(3, 6), target=1)
    assert found.initial.abs().min() > 1e-4  # the learned first state is a row of its own
    torch.manual_seed(1)
    tokens = ids(2, 6)
    whole = Classifier(getattr(nn, cell.__name__.removesuffix("Cell")), 1, False, "last", "linear").double()
    loop = Loop(cell).double()
    loop.first.data.zero_()
    loop.embed, loop.head = whole.embed, whole.head
    loop.cell.load_state_dict({name.removesuffix("_l0"): value for name, value in whole.rnn.state_dict().items()})
    one, other = (unrolled.account(each, tokens, target=1) for each in (whole, loop))
    torch.testing.assert_close(one.output, other.output)
    torch.testing.assert_close(one.tokens, other.tokens, rtol=1e-9, atol=1e-12)
    assert gap(other) < 1e-12


def test_two_texts_share_one_encoder():
    found = checked(Siamese(), ids(3, 5), ids(3, 4), target=1)
    assert {name: tuple(part.shape) for name, part in found.texts.items()} == {"0": (3, 5), "1": (3, 4)}
    assert found.tokens.shape == (3, 9)
    assert all(part.abs().max() > 1e-3 for part in found.texts.values())
    torch.testing.assert_close(found.tokens.sum(1), found.inputs)


def test_several_networks():
    found = checked(Hierarchy(), ids(2, 3, 4), target=1)
    assert found.tokens.shape == (2, 3, 4)


def test_an_attention_decoder_called_step_by_step():
    model = Decoder()
    found = checked(model, ids(2, 5), goal=ids(2, 4), target=lambda out: out[:, -1, 3])
    assert set(found.texts) == {"0", "goal"}
    assert all(part.abs().max() > 1e-4 for part in found.texts.values())


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_words(mode):
    model = Bag(mode)
    found = checked(model, ids(3, 6), target=1)
    assert found.tokens.shape == (3, 6)
    flat = checked(model, ids(10), torch.tensor([0, 4, 7]), target=1)
    # a text without an axis of examples gets one: each example has its own words
    assert flat.tokens.shape == (3, 10)
    assert not flat.tokens[0, 4:].any()
    assert not flat.tokens[2, :7].any()


def test_a_model_without_a_recurrent_network():
    tokens = padded()
    found = checked(Transformer(), tokens, target=1)
    assert set(found.biases) >= {"place", "head.bias", "body.layers.0.linear1.bias"}


@pytest.mark.parametrize("batch_first", [True, False])
def test_features_and_one_output_a_position(batch_first):
    x = torch.randn(4, 7, 3).double()
    found = checked(Tagger(batch_first), x, target=lambda out: out[:, 2, 1])
    assert found.features["0"].shape == x.shape


@pytest.mark.parametrize("batch_first", [True, False])
def test_as_many_examples_as_tokens(batch_first):
    """The shapes cannot tell which axis counts examples: the gradients do."""
    torch.manual_seed(0)
    x = torch.randn(4, 4, 3).double()
    model = Tagger(batch_first).double()
    found = checked(model, x, target=lambda out: out[:, 2, 1])
    for b, one in enumerate(found):
        alone = unrolled.account(model, x[b : b + 1], target=lambda out: out[:, 2, 1])
        torch.testing.assert_close(one.features["0"], alone.features["0"], rtol=1e-9, atol=1e-12)
        assert one.ledger == pytest.approx(alone.ledger, abs=1e-12)


def test_time_first_arguments():
    class TimeFirst(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.rnn, self.head = nn.Embedding(20, E), nn.GRU(E, D), nn.Linear(D, 2)

        def forward(self, tokens):
            return self.head(self.rnn(self.embed(tokens))[0][-1])

    for shape in ((6, 3), (4, 4)):
        tokens, model = ids(*shape), TimeFirst().double()
        found = checked(model, tokens, target=1)
        assert found.tokens.shape == shape
        for b, one in enumerate(found):
            alone = unrolled.account(model, tokens[:, b : b + 1], target=1)
            torch.testing.assert_close(one.tokens, alone.tokens, rtol=1e-9, atol=1e-12)
            assert one.words == alone.words


@pytest.mark.parametrize("restores", [True, False])
def test_a_model_that_sorts_its_batch(restores):
    model, tokens = Sorted(restores).double().eval(), padded()
    lengths = torch.tensor([3, 7, 5])
    tokens = tokens[[1, 0, 2]]
    words = [list("abc") + ["-"] * 4, list("defghij"), list("klmno") + ["-"] * 2]
    found = checked(model, tokens, lengths, target=1, tokens=words)
    order = range(3) if restores else lengths.argsort(descending=True).tolist()
    for one, row in zip(found, order, strict=True):
        alone = unrolled.account(model, tokens[row : row + 1], lengths[row : row + 1], target=1)
        torch.testing.assert_close(one.tokens, alone.tokens, rtol=1e-9, atol=1e-12)
        assert list(one.words[0]) == words[row]


def test_a_text_that_all_examples_share():
    class Question(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.rnn = nn.Embedding(20, E), nn.GRU(E, D, batch_first=True)

        def forward(self, question, answers):
            asked = self.rnn(self.embed(question)[None])[1][0]
            given = self.rnn(self.embed(answers))[1][0]
            return (asked * given).sum(-1, keepdim=True)

    found = checked(Question(), ids(4), ids(3, 5), target=0)
    assert found.texts["0"].shape == (3, 4)  # an axis of examples in front
    assert found.texts["1"].shape == (3, 5)


def test_a_part_of_a_model_is_the_source():
    model, tokens = Classifier(nn.GRU, 1, True, "mean"), padded()
    found = checked(model, tokens, target=1, of="embed")
    assert found.features["embed"].shape == (3, 7, E)
    assert found.tokens is None
    whole = unrolled.account(model, tokens, target=1)
    torch.testing.assert_close(found.features["embed"].sum(-1), whole.tokens)


def test_packed_arguments_and_nested_ones():
    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.LSTM(3, D), nn.Linear(D, 2)

        def forward(self, given):
            states, _ = pad_packed_sequence(self.rnn(given["x"][0])[0])
            return self.head(states.sum(0))

    x = pack_padded_sequence(torch.randn(5, 3, 3).double(), torch.tensor([5, 4, 2]))
    found = checked(Packed(), {"x": [x]}, target=1)
    assert found.features["0.x.0"].shape == (3, 11, 3)  # of each example, among all packed positions
    assert [int(part.any(dim=-1).sum()) for part in found.features["0.x.0"]] == [5, 4, 2]


def test_the_predicted_class_is_the_target_that_is_left_out():
    model, tokens = Classifier(nn.GRU).double(), padded()
    found = unrolled.account(model, tokens)
    torch.testing.assert_close(found.output, model(tokens).max(1).values.detach())
    assert found.target == "the predicted class"
    assert unrolled.account(model, tokens[:1]).target == f"output {int(model(tokens[:1]).argmax())}"


@pytest.mark.parametrize("kind", KINDS)
def test_float32(kind):
    model = Classifier(kind, 2, True, "attention", "norm")
    found = unrolled.account(model, padded(), target=1)
    assert found.output.dtype == torch.float32
    assert gap(found) < 1e-5
    assert found.closes


def test_growth_is_noted_and_what_misses_its_sum_does_not_close():
    torch.manual_seed(2)  # about every second network of this size grows so
    model = Classifier(nn.GRU, 1, False, "last", "linear")
    for parameter in model.rnn.parameters():
        parameter.data.mul_(40)
    found = unrolled.account(model, ids(1, 400), target=1)
    assert float(found.cancellation) > 30
    assert not found.closes
    text = " ".join(found.notes)
    assert "times as large as their sum: compare the expansion shares" in text
    assert "use float64" in text
    assert unrolled.account(model.double(), ids(1, 400), target=1).closes  # what rounds does not show what float64 does


def test_the_steps_of_numbers_have_words_and_an_example_without_steps_has_none():
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(6, 2))
    series, numbers = torch.randn(2, 3, 2), torch.randn(2, 6)
    assert unrolled.account(model, series, target=1).words == (("x0", "x1", "x2"),) * 2
    assert unrolled.account(model, series, target=1, tokens=[list("abc")] * 2).words == (("a", "b", "c"),) * 2
    assert unrolled.account(model, numbers, target=1).words == ()
