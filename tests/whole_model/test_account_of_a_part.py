"""A part of a model that is the source of value: what was computed before it contributes nothing."""

from __future__ import annotations

import torch
from torch import nn

import unrolled
from whole_model_zoo import D, E, ids


def test_what_was_before_the_source_contributes_nothing():
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.of_input, self.of_state = nn.Linear(E, D), nn.Linear(D, D)

        def forward(self, xs):
            h = xs.new_zeros(len(xs), D)
            for x in xs.unbind(1):
                h = torch.tanh(self.of_input(x) + self.of_state(h))  # at first a bias alone, which begins a row
            return h

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.loop, self.head = nn.Embedding(20, E), Loop(), nn.Linear(D, 2)

        def forward(self, tokens):
            return self.head(self.loop(self.embed(tokens)))

    found = unrolled.account(Whole().double().eval(), ids(3, 5), target=1, of="loop")
    assert float(found.remainder.abs().max()) < 1e-12
    assert list(found.biases) == ["head.bias"]
    assert not found.constants


def test_behind_a_module_that_standardises_numbers_count_from_the_mean():
    class Scale(nn.Module):
        def forward(self, xs):
            return (xs - torch.tensor([15.0, 3.0])) / torch.tensor([4.0, 0.01])

    class Forecast(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.rnn, self.head = Scale(), nn.GRU(2, D, batch_first=True), nn.Linear(D, 1)

        def forward(self, xs):
            return self.head(self.rnn(self.scale(xs))[0][:, -1])

    torch.manual_seed(0)
    model, series = Forecast().double().eval(), torch.randn(1, 6, 2).double() * 4 + 15
    series[:, :, 1] = 3  # always the same, and its own mean
    (behind,) = unrolled.account(model, series, target=0, of="scale").features.values()
    assert behind.shape == (1, 6, 2)
    assert behind[:, :, 0].abs().min() > 0
    assert not behind[:, :, 1].any()
    (whole,) = unrolled.account(model, series, target=0).features.values()
    assert whole[:, :, 1].abs().min() > behind.abs().max()  # the control: from zero
