"""The tokens of a long text are found by gradients that are rounded: in half precision, and behind a normalisation."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

LONG = torch.randint(30, (1, 200), generator=torch.Generator().manual_seed(0))


class Model(nn.Module):
    def __init__(self, way):
        super().__init__()
        torch.manual_seed(0)
        self.way, self.embed, self.norm = way, nn.Embedding(30, 4), nn.LayerNorm(4)
        self.conv = nn.Conv1d(4, 4, 3, padding=1)
        self.rnn, self.head = nn.GRU(4, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, ids):
        return self.head(self.rnn(self.way(self, self.embed(ids)))[0][:, -1])


FOUND = {
    "normalised": (lambda m, x: m.norm(x), LONG, torch.float32),
    "bfloat16": (lambda _, x: x, LONG, torch.bfloat16),
    "float16": (lambda _, x: x, LONG, torch.float16),
    "bfloat16, read backward": (lambda _, x: x.flip(1), LONG, torch.bfloat16),
    "float16, read backward": (lambda _, x: x.flip(1), LONG, torch.float16),
    "without gradient": (lambda _, x: x.detach(), torch.arange(30)[None], torch.bfloat16),
}


@pytest.mark.parametrize("name", FOUND)
def test_tokens_are_found(name):
    way, ids, dtype = FOUND[name]
    found = unrolled.explain(Model(way).to(dtype), ids, target=0, max_order=1)
    expected = ids.flip(1) if "backward" in name else ids
    assert found.tokens == tuple(map(str, expected[0].tolist()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("length", [2, 3, 40])
def test_tokens_that_a_position_mixes_are_not(length, dtype):
    model = Model(lambda m, x: m.conv(x.transpose(1, 2)).transpose(1, 2)).to(dtype)
    found = unrolled.explain(model, LONG[:, :length], target=0, max_order=1)
    assert any("could not be found: the model mixes tokens" in note for note in found.notes)
