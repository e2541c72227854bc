"""The cancellation by sweeps from the positions that are read equals that of all scores."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.decomposition.affine_sequence import expand_layers
from unrolled.decomposition.open_network import open_network
from unrolled.decomposition.score_ngrams import cancellation_where_read, score_ngrams
from unrolled.expansions import resolve
from unrolled.explanation.notes import cancellations

T, B, D = 9, 3, 6
LENGTHS = torch.tensor([9, 4, 7])


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("expansion", ["secant", "gates", "mean(operating, path)"])
def test_sweeps_from_the_last_position_equal_all_scores(kind, both, expansion):
    torch.manual_seed(0)
    rnn = kind(4, D, bidirectional=both).double().requires_grad_(False)
    state = torch.randn(2 if both else 1, B, D).double()
    opened = open_network(rnn, torch.randn(T, B, 4).double(), LENGTHS, (state, state) if kind is nn.LSTM else state)
    size = opened.directions[0][0].cell.state_size
    weights = []
    for way in range(2 if both else 1):
        weight = torch.zeros(T, B, size).double()
        weight[0 if way else LENGTHS - 1, torch.arange(B)] = torch.randn(B, size).double()
        weights.append(weight)
    members = resolve(expansion).members()
    sequences = tuple(tuple(expand_layers(layers, each, 1e-9) for each in members) for layers in opened.directions)
    expected = cancellations(score_ngrams(opened, sequences, tuple(weights)))
    with pytest.MonkeyPatch.context() as patched:  # each example is read at another position
        patched.setattr("unrolled.decomposition.score_ngrams.FEW", 2)
        found = cancellation_where_read(opened, sequences, tuple(weights))
    assert found is not None
    torch.testing.assert_close(found, expected)
    assert float(found.min()) > 1
    everywhere = tuple(torch.randn(T, B, size).double() for _ in weights)
    assert cancellation_where_read(opened, sequences, everywhere) is None
