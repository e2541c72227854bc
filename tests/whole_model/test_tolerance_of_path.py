"""The error of a quadrature is bounded over the whole sequence, in an account as in an explanation."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.cells.base import Cell
from unrolled.cells.gru import GRU
from unrolled.cells.recurrent import Recurrent


class SeriesReader(nn.Module):
    """An LSTM of large weights, the mean of its states, and a linear head."""

    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(3, 16, batch_first=True), nn.Linear(16, 2)
        for parameter in self.rnn.parameters():
            nn.init.normal_(parameter, std=0.6)

    def forward(self, series):
        return self.head(self.rnn(series)[0].mean(1))


def test_path_is_as_exact_in_an_account_of_a_long_sequence_as_in_an_explanation():
    torch.manual_seed(3)
    model = SeriesReader().double()
    series = torch.randn(1, 300, 3).double()
    found = unrolled.account(model, series, target=1, expansion="path")
    of_ngrams = unrolled.explain(model, series, target=1, expansion="path", max_order=1).ledger
    assert float(found.remainder) == pytest.approx(of_ngrams.remainder, abs=1e-13)
    assert float(found.movement) != pytest.approx(0.0, abs=1e-3)


class StepWithoutIncrements(Cell):
    """A cell with an operation that has no rule for increments, so that ``secant`` integrates as ``path`` does."""

    name = "step_without_increments"

    def __init__(self, input_size, hidden_size):
        super().__init__(input_size, hidden_size)
        self.of_input, self.of_state = nn.Linear(input_size, hidden_size), nn.Linear(hidden_size, hidden_size)

    def step(self, inputs, state):
        return torch.nan_to_num(3 * (self.of_input(inputs) + self.of_state(state))).tanh()


class Reader(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.rnn, self.head = Recurrent(cell, 3, 8), nn.Linear(8, 2)

    def forward(self, series):
        return self.head(self.rnn(series)[0].mean(0))


@pytest.mark.parametrize("expansion", ["secant", "path", "mean(operating,secant)"])
def test_a_remainder_is_the_error_of_a_quadrature_where_one_was_taken_whatever_the_expansion_is_called(expansion):
    torch.manual_seed(1)
    model = Reader(StepWithoutIncrements).double()
    series = torch.randn(6, 1, 3).double()
    found = unrolled.account(model, series, target=1, expansion=expansion)
    assert found.by_quadrature
    assert not found.closes
    assert "a quadrature expands a recurrent network, so its error and rounding remain; use the" in found.notes[0]
    plain = unrolled.account(Reader(GRU).double(), series, target=1, expansion="secant")
    assert not plain.by_quadrature
    assert plain.closes
