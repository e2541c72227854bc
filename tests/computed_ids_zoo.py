"""Models that compute with their token ids, and comparisons of what their accounts credit."""

from __future__ import annotations

import torch
from torch import nn

import unrolled

V, E = 40, 4
IDS = torch.tensor([[4, 9, 21], [12, 4, 3]])
HISTORY = torch.tensor([[3, 7, 5, 2], [4, 4, 2, 9]])


class Reads(nn.Module):
    """Reads ids by a way of its own, beside a text that a recurrent network reads."""

    def __init__(self, way):
        super().__init__()
        torch.manual_seed(0)
        self.way = way
        self.table = nn.Embedding(V * V, E)
        self.of_one_hot, self.over_time = nn.Linear(V, E, bias=False), nn.Conv1d(V, E, 1, bias=False)
        self.number = nn.Linear(1, E)
        self.words, self.rnn = nn.Embedding(30, E), nn.GRU(E, E, batch_first=True)
        self.scalar = nn.Parameter(torch.randn(V))
        self.head = nn.Linear(E, 2)
        self.register_buffer("offsets", torch.tensor([0, 30, 60]))
        self.register_buffer("renamed", torch.randperm(V))
        self.register_buffer("cap", torch.tensor(9))
        self.of_one_hot.weight.data = self.over_time.weight.data[..., 0]
        self.double()

    def forward(self, ids, history):
        return self.head(torch.tanh(self.way(self, ids).sum(1) + self.rnn(self.words(history))[0][:, -1]))


def look_up(change):
    return lambda m, ids: m.table(change(m, ids))


def account(way, ids=IDS, **options):
    return unrolled.account(Reads(way), ids, HISTORY[: len(ids)], target=1, **options)


def assert_equal_parts(found, expected):
    assert found.closes
    assert not [note for note in found.notes if "several tokens" in note or "held" in note]
    for name in ("texts", "features", "biases", "constants"):
        mine, other = getattr(found, name), getattr(expected, name)
        assert set(mine) == set(other), name
        for key, part in other.items():
            torch.testing.assert_close(mine[key], part, rtol=1e-9, atol=1e-12)
