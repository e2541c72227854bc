"""Explain and check compute in the types of the model, also where their caller has switched autocast on."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError

TOKENS = torch.randint(0, 20, (2, 6), generator=torch.Generator().manual_seed(0))


class Reader(nn.Module):
    """Calls its network once."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(20, 5), nn.GRU(5, 7, batch_first=True), nn.Linear(7, 2)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0].mean(1))


class Twice(Reader):
    """Calls its network for the text and for the text backwards."""

    def forward(self, tokens):
        return super().forward(tokens) + super().forward(tokens.flip(1))


class Steps(Reader):
    """Calls a cell for each token."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.GRUCell(5, 7)

    def forward(self, tokens):
        state = None
        for each in self.embed(tokens).unbind(1):
            state = self.rnn(each, state)
        return self.head(state)


@pytest.mark.parametrize("kind", [Reader, Twice, Steps])
def test_autocast_of_the_caller_is_off(kind):
    model = kind()
    expected, parts = unrolled.explain_batch(model, TOKENS, target=1), unrolled.check(model, TOKENS).parts
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, checked = unrolled.explain_batch(model, TOKENS, target=1), unrolled.check(model, TOKENS).parts
        assert torch.is_autocast_enabled("cpu")
    for each, other in zip(found, expected, strict=True):
        assert torch.equal(each.token_scores, other.token_scores)
        assert each.ledger == other.ledger
    assert checked == parts
    assert all(part.opens for part in checked)


@pytest.mark.parametrize("call", ["explain_batch", "check", "account"])
def test_no_run_of_the_model_is_under_it(call):
    class Asks(Reader):
        def forward(self, tokens):
            asked.append(torch.is_autocast_enabled("cpu"))
            return super().forward(tokens)

    asked = []
    with torch.autocast("cpu", dtype=torch.bfloat16):
        getattr(unrolled, call)(Asks(), TOKENS, target=1)
    assert asked
    assert not any(asked)


def test_a_model_that_runs_only_under_it_is_told_what_to_do():
    model = Reader()
    model.embed.bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(TOKENS)
        with pytest.raises(
            UsageError, match=r"without the autocast around the call, and fails so: .* model\.float\(\)"
        ):
            unrolled.explain_batch(model, TOKENS, target=1)
    with pytest.raises(Exception, match="dtype") as failed:
        unrolled.explain_batch(model, TOKENS, target=1)
    assert "autocast" not in str(failed.value)
