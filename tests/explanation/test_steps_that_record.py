"""A step may put what a person looks at later, such as its gates, into a list of its caller."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from own_cells import IDS, D, E, V, assert_same, zero

RECORDED = {"a gate": lambda gate, _: gate, "a copy": lambda gate, _: gate.detach().clone(), "a state": lambda _, h: h}


class Recording(nn.Module):
    """A gated step that appends a tensor to the list that it receives; None appends nothing."""

    def __init__(self, recorded=None):
        super().__init__()
        self.read, self.keep, self.recorded = nn.Linear(E, D), nn.Linear(D, D), recorded

    def forward(self, each, state, seen):
        gate = torch.sigmoid(self.read(each) + self.keep(state))
        state = gate * state + (1 - gate) * torch.tanh(self.read(each))
        if self.recorded:
            seen.append(self.recorded(gate, state))
        return state


class Reads(nn.Module):
    """A loop with a new list for each text."""

    def __init__(self, recorded=None):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.cell, self.head = nn.Embedding(V, E), Recording(recorded), nn.Linear(D, 3)
        self.double()

    def forward(self, ids):
        state, seen = zero(ids), []
        for each in self.embed(ids).unbind(1):
            state = self.cell(each, state, seen)
        return self.head(state)


@pytest.mark.parametrize("name", RECORDED)
def test_n_grams_are_those_of_the_step_that_records_nothing(name):
    found, expected = (unrolled.explain(Reads(each), IDS, target=1) for each in (RECORDED[name], None))
    assert_same(found, expected)
    assert found.notes == expected.notes
