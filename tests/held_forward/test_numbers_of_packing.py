"""Sizes of a packed batch are no ids: what Python does with them is not noted as a table read at ids."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import unrolled

V, D = 9, 4
IDS = torch.tensor([[3, 5, 2], [4, 1, 0]])


class Packed(nn.Module):
    """Reads a packed batch; ``scores`` makes the output of its sums of states."""

    def __init__(self, lengths, scores):
        super().__init__()
        torch.manual_seed(0)
        self.lengths, self.scores, self.embed = lengths, scores, nn.Embedding(V, D, padding_idx=0)
        self.rnn, self.project = nn.GRU(D, D, batch_first=True), nn.Linear(D, D)
        self.first = nn.Parameter(torch.randn(3, D))
        self.double()

    def forward(self, ids):
        packed = pack_padded_sequence(self.embed(ids), self.lengths(ids), batch_first=True)
        return self.scores(self, pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0].sum(1))


LENGTHS = {
    "given": lambda _: [3, 2],
    "counted": lambda ids: (ids != 0).sum(1).cpu(),
    "listed": lambda ids: (ids != 0).sum(1).tolist(),
    "counted by Python": lambda ids: [sum(row) for row in (ids != 0).tolist()],
}
SCORES = {
    "projected table": lambda self, states: states @ self.project(self.embed.weight).T,
    "row of a parameter": lambda self, states: states * self.first[2] @ self.project.weight,
    "another row": lambda self, states: states * self.first[1] @ self.project.weight,
}


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("scores", SCORES)
def test_no_table_is_named(lengths, scores):
    found = unrolled.account(Packed(LENGTHS[lengths], SCORES[scores]), IDS, target=1)
    assert not [note for note in found.notes if "numbers of Python" in note]
    assert found.closes


def test_a_table_that_a_layer_projects_is_not_noted_where_lengths_are_an_argument():
    class Takes(Packed):
        def forward(self, ids, lengths):
            self.lengths = lambda _: lengths.tolist()
            return super().forward(ids)

    model = Takes(None, SCORES["projected table"])
    found = unrolled.account(model, IDS, torch.tensor([3, 2], device=IDS.device), target=1)
    assert not [note for note in found.notes if "numbers of Python" in note]
