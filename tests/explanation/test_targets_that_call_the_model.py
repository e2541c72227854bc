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


def test_a_model_that_gives_another_output_at_each_call_is_refused_behind_such_a_target_too():
    numbers = iter(range(100))
    model = Classifier(lambda: next(numbers))
    with pytest.raises(RandomOperationError, match=r"gives another output at each call"):
        unrolled.explain(model, IDS, target=difference(model))
