from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError
from unrolled.linalg import available_memory


class Reader(nn.Module):
    def __init__(self, kind=nn.LSTM):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(9, 4), kind(4, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0].mean(dim=1))


CALLS = {
    "explain": lambda model, x: unrolled.explain(model, x),
    "account": lambda model, x: unrolled.account(model, x),
    "decompose": lambda model, x: unrolled.decompose(model.rnn, model.embed(x)),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_text_that_cannot_fit_is_refused_before_it_takes_the_memory(call, monkeypatch):
    model, x = Reader().eval(), torch.ones(1, 50, dtype=torch.long)
    monkeypatch.setattr(available_memory, "_ALWAYS", 0)
    monkeypatch.setattr(available_memory, "available_memory", lambda: 50 * 10 * 4 * 30)  # (c, h) of 5, 4 bytes each
    CALLS[call](model, x)
    monkeypatch.setattr(available_memory, "available_memory", lambda: 50 * 10 * 4 * 30 - 1)
    with pytest.raises(UsageError, match=r"a text of 50 tokens takes about 0 GB to open, and 0\.0 GB are free"):
        CALLS[call](model, x)
    monkeypatch.setattr(available_memory, "available_memory", lambda: None)  # a system that does not say
    CALLS[call](model, x)


def test_this_machine_says_what_is_free():
    free = available_memory.available_memory()
    assert free is None or 0 < free < 2**50
