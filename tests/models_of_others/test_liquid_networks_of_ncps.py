"""Closed-form and liquid time-constant networks as the package ncps runs them: exact n-grams, and an account."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

ncps = pytest.importorskip("ncps.torch", reason="needs the extra [dev]")
wirings = pytest.importorskip("ncps.wirings", reason="needs the extra [dev]")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # the package warns of its own calls

X = torch.randn(2, 6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
TIMES = torch.rand(2, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64) + 0.5
NETWORKS = {
    "CfC": lambda: ncps.CfC(3, 8),
    "CfC, pure": lambda: ncps.CfC(3, 8, mode="pure"),
    "CfC, without a gate": lambda: ncps.CfC(3, 8, mode="no_gate"),
    "CfC, wired": lambda: ncps.CfC(3, wirings.AutoNCP(12, 8)),
    "LTC": lambda: ncps.LTC(3, 8),
    "LTC, wired": lambda: ncps.LTC(3, wirings.AutoNCP(12, 8)),
}


class Model(nn.Module):
    def __init__(self, name):
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.head = NETWORKS[name](), nn.Linear(8, 2)
        self.double()

    def forward(self, x, times=None):
        return self.head(self.rnn(x, timespans=times)[0][:, -1])


@pytest.mark.parametrize("name", NETWORKS)
def test_the_steps_are_found_and_their_ngrams_are_exact(name):
    model = Model(name)
    with torch.no_grad():
        outputs = model(X)
    for example, found in enumerate(unrolled.explain_batch(model, X, target=1)):
        assert len(found) == X.shape[1]
        assert found.ledger.logit == pytest.approx(float(outputs[example, 1]))
        assert abs(found.ledger.remainder) < 1e-8
        assert found.features is not None
        total = sum(each.contribution for each in found.top(1000))
        assert total == pytest.approx(found.ledger.ngrams, abs=1e-8)
    account = unrolled.account(model, X, target=1)
    assert account.closes
    assert account.features["0"].abs().max() > 1e-6


@pytest.mark.parametrize("name", ["CfC", "LTC"])
def test_an_ngram_of_one_step_has_the_same_term_in_every_series(name):
    model, other = Model(name), X.clone()
    other[:, 0] += 1.0
    one, two = (unrolled.explain(model, x[:1], target=1) for x in (X, other))
    last = len(one) - 1
    assert one.phrase_score(last, last + 1) == pytest.approx(two.phrase_score(last, last + 1), abs=1e-10)
    assert one.phrase_score(0, last + 1) != pytest.approx(two.phrase_score(0, last + 1), abs=1e-10)  # the control


def test_times_between_steps_are_read():
    model = Model("CfC")
    plain, timed = unrolled.explain(model, X[:1], target=1), unrolled.explain(model, X[:1], TIMES[:1], target=1)
    assert abs(timed.ledger.remainder) < 1e-8
    assert timed.ledger.ngrams != pytest.approx(plain.ledger.ngrams, abs=1e-6)
