"""A target may run the model on another input, as one that asks for the difference to a baseline does."""

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import RandomOperationError

IDS, BASELINE = torch.tensor([[1, 4, 2]]), torch.tensor([[0, 0, 0]])


class Classifier(nn.Module):
    """Reads the last state, and adds what a call of ``drift`` gives."""

    def __init__(self, drift=lambda: 0.0):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(6, 4), nn.GRU(4, 5, batch_first=True), nn.Linear(5, 2)
        self.drift = drift

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0][:, -1]) + self.drift()


def difference(model):
    return lambda out: out[:, 1] - model(BASELINE)[:, 1]


def test_the_output_of_a_baseline_is_in_the_bias():
    model = Classifier().double()
    found, alone = unrolled.explain(model, IDS, target=difference(model)), unrolled.explain(model, IDS, target=1)
    baseline = model(BASELINE)[0, 1].item()
    assert found.ledger.logit == pytest.approx(alone.ledger.logit - baseline, abs=1e-12)
    assert found.ledger.bias == pytest.approx(alone.ledger.bias - baseline, abs=1e-12)
    assert found.ledger.ngrams == pytest.approx(alone.ledger.ngrams, abs=1e-12)
    (each,) = unrolled.explain_batch(model, IDS, target=difference(model))
    assert each.ledger.bias == pytest.approx(found.ledger.bias, abs=1e-12)


class OfTwoNetworks(Classifier):
    """Reads the last state of a second network, which reads the first."""

    def __init__(self):
        super().__init__()
        self.second = nn.LSTM(5, 5, batch_first=True)

    def forward(self, ids):
        return self.head(self.second(self.rnn(self.embed(ids))[0])[0][:, -1])


class OfStates(OfTwoNetworks):
    """Returns the states of the first network."""

    def forward(self, ids):
        return self.rnn(self.embed(ids))[0]


def test_so_it_is_in_a_model_of_several_networks_and_in_a_batch():
    model = OfTwoNetworks().double()
    found, alone = unrolled.explain(model, IDS, target=difference(model)), unrolled.explain(model, IDS, target=1)
    assert found.tokens == alone.tokens == ("1", "4", "2")
    assert found.ledger.ngrams == pytest.approx(alone.ledger.ngrams, abs=1e-12)
    assert found.ledger.bias == pytest.approx(alone.ledger.bias - model(BASELINE)[0, 1].item(), abs=1e-12)
    ids = torch.cat((IDS, IDS + 1))
    batch = unrolled.explain_batch(model, ids, target=difference(model))
    assert [each.ledger.ngrams for each in batch] == pytest.approx(
        [each.ledger.ngrams for each in unrolled.explain_batch(model, ids, target=1)], abs=1e-12
    )


def test_a_network_that_a_target_runs_on_the_output_is_opened():
    whole = OfTwoNetworks().double()
    model = OfStates().double()
    model.load_state_dict(whole.state_dict())
    found = unrolled.explain(model, IDS, target=lambda states: model.head(model.second(states)[0][:, -1])[:, 1])
    assert found.ledger.ngrams == pytest.approx(unrolled.explain(whole, IDS, target=1).ledger.ngrams, abs=1e-12)


def test_a_model_that_gives_another_output_at_each_call_is_refused_behind_such_a_target_too():
    numbers = iter(range(100))
    model = Classifier(lambda: next(numbers))
    with pytest.raises(RandomOperationError, match=r"gives another output at each call"):
        unrolled.explain(model, IDS, target=difference(model))
