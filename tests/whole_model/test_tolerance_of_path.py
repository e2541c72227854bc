"""The error of a quadrature is bounded over the whole sequence, in an account as in an explanation."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled


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
