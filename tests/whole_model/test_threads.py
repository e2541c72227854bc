"""Several threads explain one model in training: right results, and the model is left as it was."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import unrolled


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 6)
        self.rnn = nn.GRU(6, 8, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0][:, -1])


CALLS = {
    "account": lambda model, x: unrolled.account(model, x, target=1).tokens,
    "explain": lambda model, x: unrolled.explain(model, x, target=1).triangle.contributions,
    "decompose": lambda model, x: unrolled.decompose(model.rnn, model.embed(x).detach()).vectors(),
}


@pytest.mark.parametrize("name", CALLS)
def test_ten_threads_explain_one_model_in_training(name):
    torch.manual_seed(0)
    model, x = Reader().double().train(), torch.randint(0, 20, (1, 6))
    expected = CALLS[name](model, x)
    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(lambda _: CALLS[name](model, x), range(40)))
    for each in found:
        torch.testing.assert_close(each, expected)
    assert all(part.training for part in model.modules())
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert not any("forward" in vars(part) for part in model.modules())
