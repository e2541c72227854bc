"""``account`` refuses scripted functions in a forward pass by name; ``explain`` opens a step that calls one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UnsupportedOperationError

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")


def gated(a, b):
    return torch.tanh(a) * torch.sigmoid(b)


class Step(nn.Module):
    """A step that computes its new state by a given function."""

    def __init__(self, function):
        super().__init__()
        self.a, self.b, self.function = nn.Linear(4, 6), nn.Linear(6, 6), function

    def step(self, x, h):
        return self.function(self.a(x) + self.b(h), self.b(h))


class Looped(nn.Module):
    """Embedding, the step in a loop, and a head."""

    def __init__(self, function, read=lambda h: h):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.cell, self.head, self.read = nn.Embedding(9, 4), Step(function), nn.Linear(6, 2), read
        self.double()

    def forward(self, tokens):
        h = torch.zeros(len(tokens), 6, dtype=torch.float64)
        for x in self.embed(tokens).unbind(1):
            h = self.cell.step(x, h)
        return self.head(self.read(h))


TOKENS = torch.tensor([[1, 2, 3, 4]])


def scripts():
    return {"script": torch.jit.script(gated), "trace": torch.jit.trace(gated, (torch.ones(2), torch.ones(2)))}


@pytest.mark.parametrize("kind", ["script", "trace"])
def test_a_scripted_function_is_refused_by_name(kind):
    scripted = scripts()[kind]
    with pytest.raises(
        UnsupportedOperationError, match=r"the model calls .*, which torch.jit.*call the Python function"
    ):
        unrolled.account(Looped(gated, lambda h: scripted(h, h)), TOKENS, target=1)
    assert unrolled.account(Looped(gated, lambda h: gated(h, h)), TOKENS, target=1).closes


def test_a_scripted_module_that_is_not_a_submodule_is_refused_by_name():
    parts = [torch.jit.script(nn.Sequential(nn.Linear(6, 6), nn.Tanh()).double())]
    with pytest.raises(UnsupportedOperationError, match=r"the model calls forward, which torch\.jit"):
        unrolled.account(Looped(gated, lambda h: parts[0](h)), TOKENS, target=1)


def test_it_stops_only_an_output_that_is_made_of_it():
    scripted = scripts()["script"]

    def read(h):
        scripted(h, h)
        return h * scripted(torch.ones(6).double(), torch.ones(6).double())  # a constant

    assert unrolled.account(Looped(gated, read), TOKENS, target=1).closes


def test_explain_opens_a_step_that_calls_one():
    found, expected = (unrolled.explain(Looped(each), TOKENS, target=1) for each in (scripts()["script"], gated))
    torch.testing.assert_close(found.token_scores, expected.token_scores)
    assert not found.notes
    assert found.token_scores.abs().max() > 1e-3


def test_scripted_functions_are_as_before_afterwards():
    before = torch._C.ScriptFunction.__call__
    unrolled.account(Looped(gated), TOKENS, target=1)
    assert torch._C.ScriptFunction.__call__ is before
    x = torch.randn(3)
    torch.testing.assert_close(scripts()["script"](x, x), gated(x, x))
