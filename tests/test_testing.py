"""The published contract catches cells that break it, and says which clause."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.cells import recurrent
from unrolled.cells.base import Cell
from unrolled.errors import UsageError
from unrolled.testing import CLAUSES, check_cell

E, D = 3, 4


class Mine(Cell):
    """A user's cell."""

    name = "mine"

    def __init__(self):
        super().__init__(E, D)
        self.x, self.h = nn.Linear(E, D), nn.Linear(D, D)

    def step(self, inputs, state):
        return torch.tanh(self.x(inputs) + self.h(state))


class LosesTheState(Mine):
    def unroll(self, inputs, state=None):
        return super().unroll(inputs)


class MixesTheBatch(Mine):
    def step(self, inputs, state):
        new = super().step(inputs, state)
        return new if new.dim() == 1 else new + 0.1 * new.mean(dim=-2, keepdim=True)


class KeepsAnIdleParameter(Mine):
    def __init__(self):
        super().__init__()
        self.idle = nn.Parameter(torch.ones(1))


class ForgetsABuffer(Mine):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.rand(D) + 1, persistent=False)

    def step(self, inputs, state):
        return self.scale * super().step(inputs, state)

    def __deepcopy__(self, memo):
        other = ForgetsABuffer()
        other.load_state_dict(self.state_dict())
        return other.to(self.x.weight.dtype)


class Kernel(torch.autograd.Function):
    """The right values with the wrong gradients."""

    @staticmethod
    def forward(_, states):
        return states.clone()

    @staticmethod
    def backward(_, gradient):
        return 2 * gradient


class HasAWrongKernel(Mine):
    def unroll(self, inputs, state=None):
        return Kernel.apply(super().unroll(inputs, state))


class CutsTheGradient(Mine):
    def step(self, inputs, state):
        return torch.tanh(self.x(inputs) + self.h(state).detach())


class SaysTheWrongSize(Mine):
    def step(self, inputs, state):
        return torch.cat((super().step(inputs, state), inputs), dim=-1)


class IsNotAFunction(Mine):
    """A step that remembers what it saw."""

    def step(self, inputs, state):
        self.seen = getattr(self, "seen", 0) + 1
        return super().step(inputs, state) / self.seen


BROKEN = {
    LosesTheState: "unroll begins with the initial state",
    MixesTheBatch: "batched equals unbatched",
    KeepsAnIdleParameter: "no gradient reaches idle",
    ForgetsABuffer: "they differ|apart",
    HasAWrongKernel: "fast equals naive, gradient of inputs",
    CutsTheGradient: "no gradient reaches h",
    SaysTheWrongSize: "a step keeps the shape of the state",
    IsNotAFunction: "step equals unroll",
}


def test_a_cell_that_keeps_the_contract_passes():
    check_cell(Mine)
    check_cell(Mine())


@pytest.mark.parametrize("cell", BROKEN)
def test_a_cell_that_breaks_it_is_told_how(cell):
    with pytest.raises(AssertionError, match=f"mine: .*({BROKEN[cell]})"):
        check_cell(cell)


class Nameless(Cell):
    def __init__(self):
        super().__init__(E, E)

    def step(self, inputs, state):
        return torch.tanh(inputs + 0.5 * state)


class HasNothingToLearn(Nameless):
    name = "mine"


class HasNothingToLearnAndMixes(HasNothingToLearn):
    def step(self, inputs, state):
        new = super().step(inputs, state)
        return new if new.dim() == 1 else new + 0.1 * new.mean(dim=-2, keepdim=True)


def test_a_cell_without_parameters_is_held_to_the_rest():
    check_cell(HasNothingToLearn)
    with pytest.raises(AssertionError, match="mine: batched equals unbatched"):
        check_cell(HasNothingToLearnAndMixes)


@pytest.mark.parametrize(
    ("given", "kind"),
    [(lambda: recurrent("gru", E, D), "Recurrent"), (lambda: nn.GRUCell(E, D), "GRUCell"), (lambda: None, "NoneType")],
)
def test_what_is_no_cell_is_refused(given, kind):
    for each in (given, given()):  # a function that builds it, and it itself
        with pytest.raises(
            UsageError, match=f"{kind} does not derive from unrolled.cells.base.Cell; expected one cell"
        ):
            check_cell(each)


def test_a_cell_without_a_name_is_asked_for_one():
    with pytest.raises(UsageError, match="Nameless has no name: set one in its class, such as name = 'nameless'"):
        check_cell(Nameless)


def test_clauses_explain_themselves():
    assert all(clause.__doc__ for clause in CLAUSES.values())
    assert len(CLAUSES) == 9
