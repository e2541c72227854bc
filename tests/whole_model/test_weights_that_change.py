"""A thread that trains meanwhile: one consistent set of weights is explained, or one line says that they changed."""

from __future__ import annotations

import threading
import time

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import ChangedWeightsError


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(20, 6), nn.GRU(6, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0].mean(1))


class Slow(Reader):
    """Its forward pass calls a function in its middle."""

    between = staticmethod(lambda _: None)

    def forward(self, tokens):
        x = self.embed(tokens)
        self.between(self)
        return self.head(self.rnn(x)[0].mean(1))


X = torch.randint(0, 20, (1, 6), generator=torch.Generator().manual_seed(0))
CALLS = {
    "account": lambda model: unrolled.account(model, X, target=1).tokens,
    "explain": lambda model: unrolled.explain(model, X, target=1).triangle.contributions,
    "decompose": lambda model: unrolled.decompose(model.rnn, model.embed(X).detach()).vectors(),
}

ANSWERS = {
    "account": lambda model: float(unrolled.account(model, X, target=1).remainder.abs().max()),
    "explain": lambda model: abs(unrolled.explain(model, X, target=1).ledger.remainder),
    "decompose": lambda model: float(unrolled.decompose(model.rnn, model.embed(X).detach()).residual().max()),
}


@pytest.mark.parametrize("name", CALLS)
def test_while_a_thread_trains_the_answer_is_consistent_or_refused(name):
    model, stop = Reader().double(), threading.Event()

    def train():
        while not stop.is_set():
            with torch.no_grad():
                for weight in model.parameters():
                    weight.add_(0.01 * torch.randn_like(weight))
            time.sleep(0.002)

    thread = threading.Thread(target=train)
    thread.start()
    found, refused = [], 0
    try:
        for _ in range(15):
            try:
                found.append(ANSWERS[name](model))
            except ChangedWeightsError as error:
                refused += "\n" not in str(error)
    finally:
        stop.set()
        thread.join()
    for remainder in found:
        assert remainder < 1e-9
    assert refused + len(found) == 15


@pytest.mark.parametrize("change", ["in place", "through .data"])
@pytest.mark.parametrize("name", ["account", "explain"])
def test_one_step_in_the_middle_of_a_run_is_seen(name, change):
    model, steps = Slow().double(), []

    def once(model):
        if not steps:
            steps.append(1)
            with torch.no_grad():
                weight = model.rnn.weight_hh_l0
                (weight if change == "in place" else weight.data).add_(0.1)

    expected = CALLS[name](model)
    model.between = once
    with pytest.raises(ChangedWeightsError, match=r"rnn.weight_hh_l0\): another thread") as told:
        CALLS[name](model)
    assert "\n" not in str(told.value)
    assert not torch.equal(CALLS[name](model), expected)  # afterwards the new weights are explained


def test_a_decomposition_that_is_read_after_training_is_refused():
    model = Reader().double()
    x = model.embed(X).detach()
    deep = nn.GRU(6, 8, num_layers=2, bidirectional=True, batch_first=True).double()
    for rnn in (model.rnn, deep):
        found = unrolled.decompose(rnn, x)
        before = found.vectors()
        optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)
        rnn(x)[0].sum().backward()
        optimizer.step()
        for read in (
            found.vectors,
            found.context,
            found.residual,
            lambda found=found: found.scores(torch.ones(8)),
            lambda found=found: found.final_scores(torch.ones(8)),
        ):
            with pytest.raises(ChangedWeightsError, match="trained or converted before the result was read"):
                read()
        assert not torch.equal(unrolled.decompose(rnn, x).vectors(), before)


def test_one_number_of_a_large_weight_is_seen_though_a_sample_is_compared():
    rnn, x = nn.GRU(6, 64, batch_first=True), torch.randn(1, 3, 6)
    found = unrolled.decompose(rnn, x)
    with torch.no_grad():
        rnn.weight_hh_l0[0, 1] += 1  # every third number of it is compared, from the first on
    with pytest.raises(ChangedWeightsError, match="weight_hh_l0"):
        found.vectors()


def test_a_forward_that_clamps_its_own_weights_is_no_training():
    class Clamped(Reader):
        def forward(self, tokens):
            with torch.no_grad():
                self.rnn.weight_hh_l0.clamp_(-0.2, 0.2)
            return super().forward(tokens)

    class Rebound(Reader):
        def forward(self, tokens):
            self.rnn.weight_hh_l0.data = self.rnn.weight_hh_l0.data.clamp(-0.2, 0.2)
            return super().forward(tokens)

    clamped = Clamped().double()
    clamped(X)
    for name, call in CALLS.items():
        assert call(clamped).isfinite().all(), name
    assert unrolled.explain(Rebound().double(), X, target=1).ledger.remainder < 1e-12


@pytest.mark.parametrize("name", ["account", "explain"])
def test_a_run_that_ends_at_its_network_writes_weights_less_often(name):
    class Clamped(Reader):
        def forward(self, tokens):
            states = self.rnn(self.embed(self.clamp(tokens)))[0]
            return self.head(self.clamp(states).mean(1))

        def clamp(self, value):
            with torch.no_grad():
                self.rnn.weight_hh_l0.clamp_(-0.2, 0.2)
            return value

    class Grows(Clamped):
        def clamp(self, value):
            with torch.no_grad():
                self.rnn.weight_hh_l0.add_(0.1)
            return value

    clamped = Clamped().double()
    clamped(X)
    assert CALLS[name](clamped).isfinite().all()
    with pytest.raises(ChangedWeightsError, match="weight_hh_l0"):  # the control
        CALLS[name](Grows().double())


@pytest.mark.parametrize("name", ["account", "explain"])
def test_a_forward_that_writes_its_weights_is_told_apart_from_a_thread(name):
    class Writes(Reader):
        def forward(self, tokens):
            with torch.no_grad():
                self.rnn.weight_hh_l0.copy_(0.5 * self.rnn.weight_hh_l0)
            return super().forward(tokens)

    class ThroughData(Reader):
        def forward(self, tokens):
            self.rnn.weight_hh_l0.data.copy_(0.5 * self.rnn.weight_hh_l0.data)
            return super().forward(tokens)

    told = r"forward pass writes other numbers into the model's weights \(rnn.weight_hh_l0\)"
    with pytest.raises(ChangedWeightsError, match=told) as found:
        CALLS[name](Writes().double())
    assert "thread" not in str(found.value)
    # which torch does not count
    with pytest.raises(ChangedWeightsError, match=r"weight_hh_l0\).*or its forward pass writes them through \.data"):
        CALLS[name](ThroughData().double())


def test_weights_that_are_nan_are_no_change():
    model = Reader()
    with torch.no_grad():
        model.head.weight.fill_(torch.nan)
    with pytest.raises(unrolled.NonFiniteError):
        unrolled.account(model, X, target=1)
