"""A model that runs a step of its user's own fails by the argument's name, as one with a network of torch's does."""

import pytest
import torch
from torch import nn

import unrolled
from own_cells import IDS, D, E, Loop, V, first, gru_in_a_loop, zero
from unrolled.errors import ShapeError, UnsupportedOperationError, UsageError

WRONG = {
    "an id without a row": (torch.tensor([[3, V]], device="cpu"), UsageError, rf"the id {V} at \(0, 1\); expected ids"),
    "a text": ("a bad film", UsageError, "fails on the text 'a bad film'"),
    "a list": ([[3, 1]], UsageError, "fails on an argument that is a list"),
    "no token": (torch.zeros(1, 0, dtype=torch.int64, device="cpu"), ShapeError, r"an input of shape \(1, 0\)"),
}


class Pooled(nn.Module):
    """Reads the mean over the states of a user's cell."""

    def __init__(self):
        super().__init__()
        self.loop, self.least = gru_in_a_loop(), 0

    def forward(self, ids):
        read, states = self.loop.embed(ids), []
        state = read.new_zeros(len(read), D)
        for each in read.unbind(1):
            state = self.loop.cell(each, state)
            states.append(state)
        if len(states) < self.least:
            raise RuntimeError("a fault of the model's own")
        return self.loop.head(torch.stack(states).mean(0))


@pytest.mark.parametrize("entry", [unrolled.explain, unrolled.explain_batch, unrolled.account])
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_with_an_argument_is_named(entry, wrong):
    given, kind, words = WRONG[wrong]
    with pytest.raises(kind, match=words) as caught:
        entry(Pooled(), given, target=1)
    assert "\n" not in str(caught.value)


def test_a_fault_of_the_model_with_right_arguments_stays_as_it_is():
    model = Pooled()
    assert abs(unrolled.explain(model, IDS, target=1).ledger.remainder) < 1e-9
    model.least = IDS.shape[1] + 1
    with pytest.raises(RuntimeError, match=r"^a fault of the model's own$"):
        unrolled.explain(model, IDS, target=1)


class Twice(nn.Module):
    """Keeps its hidden state as both parts of a pair, as a cell does that takes the place of an LSTM's."""

    def __init__(self, second):
        super().__init__()
        self.read, self.keep, self.second = nn.Linear(E, D), nn.Linear(D, D), second

    def forward(self, each, state):
        hidden, memory = state
        hidden = torch.tanh(self.read(each) + self.keep(hidden) + memory)
        return hidden, self.second(hidden)


def test_a_step_that_returns_its_state_twice_is_told_to_return_a_copy():
    def model(second):
        return Loop(Twice(second), lambda cell, x, state: cell(x, state), lambda ids: (zero(ids), zero(ids)), first)

    with pytest.raises(UnsupportedOperationError, match=r"as two parts of its state; return a copy .*\.clone\(\)"):
        unrolled.explain(model(lambda hidden: hidden), IDS, target=1)
    assert abs(unrolled.explain(model(torch.clone), IDS, target=1).ledger.remainder) < 1e-9
