from __future__ import annotations

import inspect

import pytest
import torch
from torch import nn

from unrolled.cells import CELLS
from unrolled.cells.recurrent import Recurrent
from unrolled.composition import ENCODERS
from unrolled.errors import UsageError
from unrolled.lab.models.encoder_names import ENCODER_NAMES
from unrolled.lab.models.factory import (
    feature_count,
    make_classifier,
    make_embedding,
    make_embedding_and_encoder,
    make_encoder,
    make_optimiser,
    make_pooling,
)
from unrolled.lab.models.settings import EncoderSettings, PooledSettings
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.settings import TrainingSettings

WITH_BIASES = [name for name, cell in CELLS.members.items() if "bias" in inspect.signature(cell).parameters]


@pytest.mark.parametrize(("name", "kind"), [("rnn", nn.RNN), ("gru", nn.GRU), ("lstm", nn.LSTM)])
def test_a_config_becomes_the_network_it_names(name, kind):
    architecture = PooledSettings(encoder=name, hidden=6, embedding=5, layers=2, bidirectional=True, dropout=0.25)
    model = make_classifier(architecture, words=30, outputs=4)
    assert type(model.encoder) is kind
    assert (model.encoder.input_size, model.encoder.hidden_size) == (5, 6)
    assert (model.encoder.num_layers, model.encoder.bidirectional, model.encoder.dropout) == (2, True, 0.25)
    assert model.embedding.weight.shape == (30, 5)
    assert (model.embedding.weight[0] == 0).all()
    assert model.head.weight.shape == (4, 12)


def test_every_member_of_both_zoos_has_a_name_here():
    assert set(ENCODER_NAMES) == {"rnn", *CELLS.names(), *ENCODERS.names()}


@pytest.mark.parametrize("bidirectional", [False, True], ids=["one-way", "both-ways"])
@pytest.mark.parametrize("name", ENCODER_NAMES)
def test_every_encoder_is_called_alike_and_gives_the_features_it_says(name, bidirectional):
    encoding = EncoderSettings(encoder=name, hidden=16, embedding=16, bidirectional=bidirectional)
    encoder = make_encoder(encoding, 16)
    packed = nn.utils.rnn.pack_padded_sequence(
        torch.randn(3, 5, 16), torch.tensor([5, 2, 3]), batch_first=True, enforce_sorted=False
    )
    for given in (torch.randn(3, 5, 16), packed):
        states, _ = encoder(given)
        found = states.data if given is packed else states
        assert found.shape[-1] == feature_count(encoding) == (32 if bidirectional else 16)
        assert found.shape[:-1] == ((10,) if given is packed else (3, 5))


@pytest.mark.parametrize("pooling", ["last", "ends", "mean", "max", "attention"])
@pytest.mark.parametrize("bidirectional", [False, True], ids=["one-way", "both-ways"])
def test_a_classifier_of_every_pooling_ignores_padding(pooling, bidirectional):
    settings = PooledSettings(hidden=6, embedding=5, pooling=pooling, bidirectional=bidirectional)
    model = make_classifier(settings, words=30, outputs=4).eval()
    alone = model(torch.tensor([[3, 4, 5]]))
    padded = model(torch.tensor([[3, 4, 5, 0, 0], [6, 7, 8, 9, 10]]), torch.tensor([3, 5]))
    torch.testing.assert_close(padded[:1], alone)


def test_the_two_ends_are_the_states_of_the_first_and_of_the_last_token():
    states = torch.arange(24.0).reshape(2, 4, 3)
    found = make_pooling(PooledSettings(pooling="ends"))(states, torch.tensor([2, 4]))
    torch.testing.assert_close(
        found, torch.stack([torch.cat([states[0, 0], states[0, 1]]), states[1, [0, 3]].flatten()])
    )


@pytest.mark.parametrize("name", ["rnn", "elman"])
def test_an_identity_start_keeps_a_state_when_nothing_is_read(name):
    settings = EncoderSettings(encoder=name, hidden=5, identity=True, layers=2, options={"nonlinearity": "relu"})
    encoder = make_encoder(settings, 3)
    state = torch.rand(2, 1, 5)
    for start, kept in ((settings, True), (settings.model_copy(update={"identity": False}), False)):
        encoder = make_encoder(start, 3)
        with torch.no_grad():
            for key, weight in encoder.named_parameters():
                if "weight_ih" in key:
                    weight.zero_()
        _, final = encoder(torch.zeros(1, 7, 3), state)
        assert torch.equal(final, state) == kept


def test_only_a_network_without_gates_can_start_at_the_identity():
    for name in sorted({*ENCODER_NAMES} - {"rnn", "elman"}):
        with pytest.raises(UsageError, match=f"identity is True, but the encoder is {name}; expected rnn or elman"):
            make_encoder(EncoderSettings(encoder=name, hidden=16, identity=True), 16)


@pytest.mark.parametrize("name", [*ENCODER_NAMES])
def test_an_orthogonal_start_keeps_the_lengths_of_vectors(name):
    def strays(orthogonal):
        encoder = make_encoder(EncoderSettings(encoder=name, hidden=16, orthogonal=orthogonal), 16)
        matrices = [each.detach() for each in encoder.parameters() if each.dim() == 2]
        tall = [each if len(each) >= len(each.T) else each.T for each in matrices]
        return [float((each.T @ each - torch.eye(len(each.T))).abs().max()) for each in tall]

    if name in {"cnn", "mm"}:
        with pytest.raises(UsageError, match=f"orthogonal is True, but the encoder is {name}, whose weights hold no m"):
            strays(orthogonal=True)
        return
    assert all(each < 1e-5 for each in strays(orthogonal=True))
    assert max(strays(orthogonal=False)) > 1e-2


def test_a_network_starts_in_one_way():
    with pytest.raises(UsageError, match="identity and orthogonal are both True"):
        make_encoder(EncoderSettings(encoder="rnn", identity=True, orthogonal=True), 3)


def test_a_cell_that_is_also_an_encoder_is_the_cell_which_can_be_stacked():
    assert isinstance(make_encoder(EncoderSettings(encoder="mvma_g", hidden=4, layers=2), 3), Recurrent)
    with pytest.raises(
        UsageError, match="layers is 2; expected 1, because va_w is not a recurrent network and cannot be stacked"
    ):
        make_encoder(EncoderSettings(encoder="va_w", hidden=4, layers=2), 3)


def test_an_encoder_has_the_options_of_its_class_and_no_others():
    mmlstm = make_encoder(EncoderSettings(encoder="mmlstm", hidden=4, options={"choices": 2}), 3)
    assert sum(p.numel() for p in mmlstm.parameters()) < sum(
        p.numel() for p in make_encoder(EncoderSettings(encoder="mmlstm", hidden=4), 3).parameters()
    )
    with pytest.raises(UsageError, match="unknown option of mmlstm 'choice'; did you mean 'choices'"):
        make_encoder(EncoderSettings(encoder="mmlstm", options={"choice": 2}), 3)
    with pytest.raises(UsageError, match="unknown option of mvm_g 'num_layers'; expected one of: bias"):
        make_encoder(EncoderSettings(encoder="mvm_g", options={"num_layers": 2}), 3)
    with pytest.raises(UsageError, match="mm has no options; remove the option 'window'"):
        make_encoder(EncoderSettings(encoder="mm", options={"window": 2}), 4)
    with pytest.raises(UsageError, match="unknown option of gru 'choices'; expected one of: bias"):
        make_encoder(EncoderSettings(encoder="gru", options={"choices": 2}), 3)
    assert make_encoder(EncoderSettings(encoder="rnn", options={"nonlinearity": "relu"}), 3).nonlinearity == "relu"


@pytest.mark.parametrize("name", ["rnn", *WITH_BIASES])
def test_a_recurrent_encoder_has_no_biases_if_so_chosen(name):
    settings = EncoderSettings(encoder=name, hidden=4, bidirectional=True, options={"bias": False})
    without, plain = make_encoder(settings, 3), make_encoder(settings.model_copy(update={"options": {}}), 3)
    assert not [key for key, _ in without.named_parameters() if "bias" in key]
    as_number = make_encoder(settings.model_copy(update={"options": {"bias": 0}}), 3)
    assert [*as_number.state_dict()] == [*without.state_dict()]
    assert [key for key, _ in plain.named_parameters() if "bias" in key]
    states, _ = without(torch.zeros(2, 5, 3))
    assert torch.equal(states, torch.zeros(2, 5, 8))


@pytest.mark.parametrize(
    ("encoder", "options", "message"),
    [
        ("gru", {"bias": "none"}, "^bias is 'none'; expected true or false$"),
        ("mvma_g", {"bias": 2}, "^bias is 2; expected true or false$"),
        ("rnn", {"nonlinearity": "rleu"}, "^unknown nonlinearity 'rleu'; did you mean 'relu'"),
        ("rnn", {"nonlinearity": 3}, "^unknown nonlinearity '3'; expected one of: relu, tanh$"),
        ("transformer", {"dropout": 2}, "^dropout is 2; expected a number from 0 to below 1$"),
        ("transformer", {"dropout": "much"}, "^dropout is 'much'; expected a number"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_one_line(encoder, options, message):
    with pytest.raises(UsageError, match=message):
        make_encoder(EncoderSettings(encoder=encoder, hidden=4, options=options), 3)


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:12"])
def test_a_device_may_have_a_number(device):
    assert TrainingSettings(device=device).device == device


@pytest.mark.parametrize("bidirectional", [False, True])
def test_an_encoder_of_products_begins_with_tokens_it_can_multiply(bidirectional):
    torch.manual_seed(0)
    encoding = EncoderSettings(encoder="mm", hidden=16, embedding=16, bidirectional=bidirectional)
    embedding, encoder = make_embedding_and_encoder(encoding, 9)
    words = torch.tensor([[2, 3, 4, 5, 6, 7, 8, 2, 3, 4]])
    last = encoder(embedding(words))[0][0, -1, :16]
    assert (last.view(4, 4) - torch.eye(4)).abs().max() < 0.2
    assert encoder(make_embedding(9, 16)(words))[0][0, -1, :16].abs().max() < 1e-3  # control


def test_one_layer_is_built_without_a_warning_of_dropout_between_layers():
    assert make_encoder(EncoderSettings(dropout=0.5), 3).dropout == 0.0


def test_the_same_generator_state_builds_the_same_weights():
    def weights(seed):
        torch.manual_seed(seed)
        return nn.utils.parameters_to_vector(make_classifier(PooledSettings(hidden=3, embedding=3), 5, 2).parameters())

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (PooledSettings, {"encodr": "gru"}, "unknown setting 'encodr'; did you mean 'encoder'"),
        (PooledSettings, {"encoder": "gruu"}, "unknown encoder 'gruu'; did you mean 'gru'"),
        (
            PooledSettings,
            {"pooling": "sum"},
            "unknown pooling 'sum'; expected one of: attention, ends, last, max, mean",
        ),
        (PooledSettings, {"hidden": 0}, "hidden is 0; expected greater than or equal to 1"),
        (PooledSettings, {"dropout": 1.0}, "dropout is 1.0; expected less than 1"),
        (PooledSettings, {"dropout": float("nan")}, "dropout is nan; expected a finite number"),
        (TrainingSettings, {"optimiser": "adamm"}, "unknown optimiser 'adamm'; did you mean 'adam'"),
        (TrainingSettings, {"lr": 0.0}, "lr is 0.0; expected greater than 0"),
        (TrainingSettings, {"epochs": "many"}, "epochs is 'many'; expected a valid integer"),
        (TrainingSettings, {"device": "tpu"}, "^device is 'tpu'; expected auto, cpu, cuda or a numbered GPU such as"),
        (TrainingSettings, {"vectors": 5}, "^vectors is 5; expected the path of a file$"),
        (TrainingSettings, {"tensorboard": "maybe"}, "^tensorboard is 'maybe'; expected true or false$"),
        (PooledSettings, {"encoder": 3}, "^encoder is 3; expected text$"),
        (PooledSettings, {"options": 3}, "^options is 3; expected names and values$"),
        (PooledSettings, {"options": {"a": [1]}}, r"^options\.a is \[1\]; expected true, false, a number or text$"),
        (DataSettings, {"data": 3}, "^data is 3; expected a list$"),
        (DataSettings, {"data": ()}, r"^data is \(\); expected at least one$"),
    ],
)
def test_a_wrong_setting_is_one_line_that_says_what_was_expected(kind, values, message):
    with pytest.raises(UsageError, match=message) as caught:
        kind(**values)
    assert "\n" not in str(caught.value)


def test_configs_do_not_change():
    config = EncoderSettings()
    with pytest.raises(ValueError, match="frozen"):
        config.hidden = 3


@pytest.mark.parametrize("name", ["adam", "adamw", "adagrad", "sgd"])
def test_each_optimiser_goes_downhill(name):
    weight = nn.Parameter(torch.ones(3))
    optimiser = make_optimiser(name, [weight], 0.1)
    weight.square().sum().backward()
    optimiser.step()
    assert type(optimiser).__name__.lower() == name
    assert (weight < 1).all()
