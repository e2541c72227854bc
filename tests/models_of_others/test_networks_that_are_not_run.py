"""A model that keeps a network and runs a step of its own is told to name the step."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import unrolled
from unrolled.errors import UsageError

IDS = torch.tensor([[1, 2, 3]])


class WithWeightsOf(nn.Module):
    """A step that keeps a cell for its weights and does not run it."""

    def __init__(self, kept: nn.RNNCell) -> None:
        super().__init__()
        self.kept = kept

    def forward(self, x, state):
        read = F.linear(x, self.kept.weight_ih, self.kept.bias_ih)
        return torch.tanh(read + F.linear(state, self.kept.weight_hh, self.kept.bias_hh))


class Model(nn.Module):
    def __init__(self, runs_kept: bool) -> None:
        super().__init__()
        cell = nn.RNNCell(4, 5)
        self.embed, self.head = nn.Embedding(9, 4), nn.Linear(5, 2)
        self.step = cell if runs_kept else WithWeightsOf(cell)

    def forward(self, ids):
        state = torch.zeros(len(ids), 5)
        for x in self.embed(ids).unbind(1):
            state = self.step(x, state)
        return self.head(state)


def test_the_advice_names_the_network_and_opens_the_step():
    torch.manual_seed(0)
    model, other = Model(runs_kept=False), Model(runs_kept=True)
    other.embed, other.head, other.step = model.embed, model.head, model.step.kept
    with pytest.raises(UsageError, match=r"gives no sequence to step\.kept; if it runs a step .*rnn=unrolled.as_cell"):
        unrolled.explain(model, IDS, target=0)
    named = unrolled.explain(model, IDS, target=0, rnn=unrolled.as_cell("step"))
    expected = unrolled.explain(other, IDS, target=0)  # the control: a cell that is run needs no name
    assert (torch.as_tensor(named.token_scores) - torch.as_tensor(expected.token_scores)).abs().max() < 1e-6
