"""A scripted or traced function has the account of its Python function; one that differs from it is refused by name."""

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


def loop_in_a_script(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    h, states = torch.zeros_like(x[:, 0]), []
    for t in range(x.size(1)):
        h = torch.sigmoid(x[:, t]) * h + y[:, t]
        states.append(h)
    return torch.stack(states, dim=1)


def doubled_in_a_script(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return gated(x, y) * 2


def changed_in_a_script(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = 2 * x
    z.mul_(1.5)
    x.add_(1.0)  # the operand, once
    return z + x + y


def traced(function):
    return torch.jit.trace(function, (torch.ones(2, 3), torch.ones(2, 3)), check_trace=False)


@pytest.mark.parametrize("make", [torch.jit.script, traced])
@pytest.mark.parametrize("function", [gated, changed_in_a_script])
def test_a_traced_function_has_the_account_of_the_python_function(function, make):
    assert_equal_accounts(make(function), function)


@pytest.mark.parametrize("function", [loop_in_a_script, doubled_in_a_script])
def test_a_scripted_function_has_the_account_of_the_python_function(function):
    assert_equal_accounts(torch.jit.script(function), function)


def assert_equal_accounts(scripted, function):
    found, expected = (
        unrolled.account(Looped(gated, lambda h, f=each: f(h * 1.0, h.flip(1))), TOKENS, target=1)
        for each in (scripted, function)
    )
    assert found.closes
    torch.testing.assert_close(found.tokens, expected.tokens, rtol=0, atol=1e-14)
    assert found.tokens.abs().max() > 1e-4


def with_a_branch(x, y):
    return gated(x, y) if len(x) == 2 else x * y


def with_a_branch_that_is_nearly_the_other(x, y):
    return gated(x, y) if len(x) == 2 else 1.00005 * gated(x, y)


@pytest.mark.parametrize("function", [with_a_branch, with_a_branch_that_is_nearly_the_other])
def test_a_trace_of_another_branch_is_refused_by_name(function):
    with pytest.warns(torch.jit.TracerWarning):
        scripted = torch.jit.trace(function, (torch.ones(2), torch.ones(2)))
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
    with pytest.warns(torch.jit.TracerWarning):
        scripted = torch.jit.trace(with_a_branch, (torch.ones(2), torch.ones(2)))

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
