from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.catalogue import Architecture, ClassifierConfig, build, load_dataset, make_optimiser
from unrolled.errors import UnknownNameError, UsageError
from unrolled.training.loop import TrainingSettings


@pytest.mark.parametrize(("name", "kind"), [("rnn", nn.RNN), ("gru", nn.GRU), ("lstm", nn.LSTM)])
def test_a_config_becomes_the_network_it_names(name, kind):
    config = ClassifierConfig(
        vocabulary=30,
        classes=4,
        encoder=name,
        hidden=6,
        embedding=5,
        layers=2,
        bidirectional=True,
        dropout=0.25,
    )
    model = build(config)
    assert type(model.encoder) is kind
    assert (model.encoder.input_size, model.encoder.hidden_size) == (5, 6)
    assert (model.encoder.num_layers, model.encoder.bidirectional, model.encoder.dropout) == (2, True, 0.25)
    assert model.embedding.weight.shape == (30, 5)
    assert (model.embedding.weight[0] == 0).all()
    assert model.head.weight.shape == (4, 12)


def test_one_layer_is_built_without_a_warning_of_dropout_between_layers():
    assert build(ClassifierConfig(vocabulary=5, classes=2, dropout=0.5)).encoder.dropout == 0.0


def test_the_same_generator_state_builds_the_same_weights():
    config = ClassifierConfig(vocabulary=5, classes=2, hidden=3, embedding=3)

    def weights(seed):
        torch.manual_seed(seed)
        return nn.utils.parameters_to_vector(build(config).parameters())

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (Architecture, {"encodr": "gru"}, "unknown setting 'encodr'; did you mean 'encoder'"),
        (Architecture, {"encoder": "gruu"}, "unknown encoder 'gruu'; did you mean 'gru'"),
        (
            Architecture,
            {"pooling": "sum"},
            "unknown pooling 'sum'; expected one of: attention, last, max, mean",
        ),
        (Architecture, {"hidden": 0}, "hidden is 0; expected greater than or equal to 1"),
        (Architecture, {"dropout": 1.0}, "dropout is 1.0; expected less than 1"),
        (Architecture, {"dropout": float("nan")}, "dropout is nan; expected a finite number"),
        (ClassifierConfig, {"classes": 2}, "the setting 'vocabulary' is missing"),
        (TrainingSettings, {"optimiser": "adamm"}, "unknown optimiser 'adamm'; did you mean 'adam'"),
        (TrainingSettings, {"lr": 0.0}, "lr is 0.0; expected greater than 0"),
        (TrainingSettings, {"epochs": "many"}, "epochs is 'many'; expected a valid integer"),
    ],
)
def test_a_wrong_setting_is_one_line_that_says_what_was_expected(kind, values, message):
    with pytest.raises(UsageError, match=message) as caught:
        kind(**values)
    assert "\n" not in str(caught.value)


def test_configs_do_not_change():
    config = Architecture()
    with pytest.raises(ValueError, match="frozen"):
        config.hidden = 3


@pytest.mark.parametrize("name", ["adam", "adagrad", "sgd"])
def test_each_optimiser_goes_downhill(name):
    weight = nn.Parameter(torch.ones(3))
    optimiser = make_optimiser(name, [weight], 0.1)
    weight.square().sum().backward()
    optimiser.step()
    assert type(optimiser).__name__.lower() == name
    assert (weight < 1).all()


def test_a_dataset_is_a_name_or_a_file_of_the_users(tmp_path):
    assert load_dataset("negation").name == "negation"
    path = tmp_path / "mine.tsv"
    path.write_text("".join(f"text {i}\t{i % 2}\n" for i in range(20)))
    assert load_dataset(str(path)).name == "mine"
    with pytest.raises(UnknownNameError, match="unknown dataset 'sst3'; did you mean 'sst"):
        load_dataset("sst3")
