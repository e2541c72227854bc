"""Networks of Keras on its PyTorch backend: every layer opens, an LSTM as torch.nn's with the same weights."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import torch
from torch import nn

import unrolled

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # it warns of its own calls

IDS = torch.tensor([[4, 7, 2, 9, 5, 3]])
PADDED = torch.tensor([[4, 7, 2, 9, 0, 0]])
LAYERS = {
    "LSTM": lambda layers: layers.LSTM(5),
    "GRU": lambda layers: layers.GRU(5),
    "GRU, reset before": lambda layers: layers.GRU(5, reset_after=False),
    "SimpleRNN": lambda layers: layers.SimpleRNN(5),
    "relu": lambda layers: layers.LSTM(5, activation="relu"),
    "backwards": lambda layers: layers.LSTM(5, go_backwards=True),
    "both ways": lambda layers: layers.Bidirectional(layers.LSTM(5)),
    "GRU both ways": lambda layers: layers.Bidirectional(layers.GRU(5), merge_mode="sum"),
    "cells above one another": lambda layers: layers.RNN([layers.LSTMCell(5), layers.GRUCell(4)]),
    "unrolled": lambda layers: layers.LSTM(5, unroll=True),
    "dropout": lambda layers: layers.LSTM(5, dropout=0.5, recurrent_dropout=0.5),
}


@pytest.fixture(scope="module")
def keras(tmp_path_factory):
    """Keras on its PyTorch backend: it reads both variables when it is imported, which takes seconds."""
    os.environ["KERAS_BACKEND"] = "torch"
    os.environ["KERAS_HOME"] = str(tmp_path_factory.mktemp("keras"))  # where it writes its settings
    return pytest.importorskip("keras", reason="needs the extra [dev]")


@pytest.fixture
def layers(keras):
    return keras.layers


@pytest.fixture
def built(keras):
    return lambda *middle, **options: model_of(keras, *middle, **options)


def model_of(keras, *middle, mask=False, kind="int32"):
    """A model of an embedding, layers and a head."""
    keras.utils.set_random_seed(0)
    before = [keras.Input((6,), dtype=kind), keras.layers.Embedding(10, 4, mask_zero=mask)]
    model = keras.Sequential([*before, *middle, keras.layers.Dense(2)])
    for weight in model.weights:  # biases that are not zero
        weight.assign(weight + 0.1 * torch.randn(weight.shape))
    return model.eval()


def in_torch(model):
    """torch.nn's LSTM with the weights of such a model."""

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.lstm, self.out = nn.Embedding(10, 4), nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 2)

        def forward(self, ids):
            return self.out(self.lstm(self.embedding(ids))[0][:, -1])

    network = Network().eval()
    table, kernel, recurrent, bias, head, head_bias = (each.value.detach() for each in model.weights)
    lstm = network.lstm
    pairs = [
        (network.embedding.weight, table),
        (lstm.weight_ih_l0, kernel.T),
        (lstm.weight_hh_l0, recurrent.T),
        (lstm.bias_ih_l0, bias),
        (lstm.bias_hh_l0, torch.zeros(20)),
        (network.out.weight, head.T),
        (network.out.bias, head_bias),
    ]
    with torch.no_grad():
        for mine, theirs in pairs:
            mine.copy_(theirs)
    return network


@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_has_n_grams_and_an_account_that_sum_to_the_output(built, layers, name):
    model = built(LAYERS[name](layers))
    output = model(IDS)[0, 0].item()
    found, account = unrolled.explain(model, IDS, target=0), unrolled.account(model, IDS, target=0)
    assert found.exact
    assert found.ledger.logit == pytest.approx(output, abs=1e-6)
    assert abs(found.ledger.remainder) < 1e-5 * max(1.0, abs(output))
    assert len(list(found.ngrams())) > 5
    assert account.closes
    assert account.tokens.abs().min() > 0


def test_an_lstm_has_the_n_grams_of_torch_with_the_same_weights(built, layers):
    model = built(layers.LSTM(5))
    theirs = unrolled.explain(in_torch(model), IDS, target=0)
    mine = unrolled.explain(model, IDS, target=0)
    scores = [{(each.start, each.stop): each.score for each in found.ngrams()} for found in (mine, theirs)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-4, abs=1e-6)
    assert mine.tokens == theirs.tokens


def test_a_layer_runs_as_before_afterwards(built, layers):
    model = built(layers.LSTM(5))
    before = model(IDS)
    unrolled.explain(model, IDS, target=0)
    assert (model.layers[1].use_cudnn, model.layers[1].unroll) == ("auto", False)
    torch.testing.assert_close(model(IDS), before, rtol=0, atol=0)


def test_masked_padding_contributes_nothing(built, layers):
    model = built(layers.LSTM(5, return_sequences=True), layers.GRU(5), mask=True)
    account = unrolled.account(model, PADDED, target=0)
    assert account.closes
    assert account.tokens.flatten()[:4].abs().min() > 1e-4
    assert not account.tokens.flatten()[4:].any()
    scores = unrolled.explain(model, PADDED, target=0).token_scores
    assert scores.flatten()[:4].abs().min() > 1e-5
    assert not scores.flatten()[4:].any()


def test_layers_above_one_another_are_one_stack(built, layers):
    model = built(layers.LSTM(5, return_sequences=True), layers.Dropout(0.5), layers.GRU(5))
    found = unrolled.explain(model, IDS, target=0)
    assert len(found.sequences) == 1
    assert found.tokens == ("4", "7", "2", "9", "5", "3")
    assert found.exact


def test_ids_that_keras_makes_floats_and_ids_again_are_tokens(built, layers):
    model, floats = built(layers.LSTM(5)), built(layers.LSTM(5), kind="float32")
    floats.set_weights(model.get_weights())
    one, other = (unrolled.account(each, IDS, target=0) for each in (model, floats))
    torch.testing.assert_close(one.tokens, other.tokens, rtol=0, atol=0)


def test_a_saved_model_opens_alike(keras, built, layers, tmp_path):
    model = built(layers.Bidirectional(layers.LSTM(5)))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    first, second = (unrolled.explain(each, IDS, target=0) for each in (model, loaded))
    assert list(first.ngrams()) == list(second.ngrams())


def test_functional_models_and_subclasses_open(keras, layers):
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding, self.lstm, self.out = layers.Embedding(10, 4), layers.LSTM(5), layers.Dense(2)

        def call(self, ids):
            return self.out(self.lstm(self.embedding(ids)))

    ids = keras.Input((6,), dtype="int32")
    texts = layers.GRU(5, return_sequences=True)(layers.Embedding(10, 4)(ids))
    functional = keras.Model(ids, layers.Dense(2)(layers.GlobalAveragePooling1D()(texts)))
    for model in (Model(), functional):
        model(IDS)
        found = unrolled.explain(model, IDS, target=0)
        assert found.exact
        assert found.ledger.logit == pytest.approx(model(IDS)[0, 0].item(), abs=1e-6)


def test_a_layer_may_be_the_source(built, layers):
    found = unrolled.account(built(layers.LSTM(5)), IDS, target=0, of="_layers.2")
    assert found.closes
    assert found.features["_layers.2"].shape == (1, 5)
    assert all("dense" in name for name in found.biases)


def test_check_names_the_cells(built, layers):
    found = str(unrolled.check(built(layers.LSTM(5)), IDS))
    assert re.search(r"cell +LSTMCell +6 +\(1, 4\)", found)


def test_what_a_layer_of_ones_own_calls_unroll_stays_what_it_is(built, layers):
    class Scaled(layers.Layer):
        def __init__(self):
            super().__init__()
            self.unroll, self.use_cudnn = False, 0.5

        def call(self, x):
            return x * (100.0 if self.unroll else 1.0) * self.use_cudnn

    model = built(layers.LSTM(5), Scaled())
    assert unrolled.explain(model, IDS, target=0).ledger.logit == pytest.approx(model(IDS)[0, 0].item(), abs=1e-6)


def test_a_state_that_a_layer_keeps_is_as_it_was(keras, layers):
    model = keras.Sequential([keras.Input(batch_shape=(1, 6, 3)), layers.LSTM(5, stateful=True), layers.Dense(1)])
    steps = torch.randn(1, 6, 3)
    model(steps)
    before = [each.value.clone() for each in model.layers[0].states]
    expected = model(steps)
    for each, value in zip(model.layers[0].states, before, strict=True):
        each.assign(value)
    found = unrolled.explain(model, steps, target=0)
    assert found.ledger.logit == pytest.approx(expected.item(), abs=1e-6)
    assert abs(found.ledger.initial) > 1e-5
    for each, value in zip(model.layers[0].states, before, strict=True):
        torch.testing.assert_close(each.value, value, rtol=0, atol=0)


@pytest.mark.usefixtures("keras")
def test_the_example_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "keras.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(example, {})
    assert "film" in capsys.readouterr().out
    assert "film" in Path("keras.html").read_text()
