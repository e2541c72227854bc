"""The published contract catches cells that break it, and says which clause."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.cells import recurrent
from unrolled.cells.base import Cell
from unrolled.decomposition.decomposition import decompose
from unrolled.errors import UsageError
from unrolled.expansions import EXPANSIONS
from unrolled.expansions.base import Linearisation
from unrolled.linalg.matrices import Matrices
from unrolled.testing import CLAUSES, check_cell, check_expansion

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


class Midpoint(Linearisation):
    """A user's expansion."""

    name, exact, local = "midpoint", True, False

    def expand(self, ray, tolerance):
        operator = ray.at(0.5)
        return ray.end - ray.increment(operator), operator


class AtTheTokenAlone(Midpoint):
    """The same operators beside f(x, 0), which leaves something over."""

    def expand(self, ray, tolerance):
        return ray.origin, ray.at(0.5)


class AtZero(Midpoint):
    local = True

    def expand(self, ray, tolerance):
        return ray.origin, ray.at(0.0)


class WithoutNumbers(Midpoint):
    exact = False

    def expand(self, ray, tolerance):
        return ray.end / 0.0 * 0.0, ray.at(0.5)


def claiming(kind, **claims):
    return type(kind.__name__, (kind,), claims)()


@pytest.mark.parametrize("name", [*EXPANSIONS.names(), "taylor(1)", "mean(operating, secant)"])
def test_every_expansion_of_this_package_passes(name):
    before = torch.get_rng_state()
    check_expansion(name)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "right",
    [Midpoint(), claiming(AtTheTokenAlone, exact=False), claiming(AtZero, exact=False)],
)
def test_an_expansion_of_a_user_that_says_what_it_is_passes(right):
    check_expansion(right)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (AtTheTokenAlone(), r"midpoint says it is exact, but its n-grams miss the states of RNN\(3, 4\) by 0\."),
        (claiming(Midpoint, local=True), r"says it is local, but an n-gram of RNN\(3, 4\) changes by"),
        (WithoutNumbers(), r"midpoint gives n-grams of RNN\(3, 4\) with NaN or infinity"),
        (claiming(Midpoint, exact=False), "says it is not exact, but its n-grams sum to the states of every network"),
    ],
)
def test_an_expansion_that_claims_what_it_is_not_fails(wrong, message):
    with pytest.raises(AssertionError, match=message):
        check_expansion(wrong)


@pytest.mark.parametrize(
    "call", [check_expansion, lambda given: decompose(nn.GRU(E, D), torch.ones(2, E), expansion=given)]
)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Midpoint, r"is the class Midpoint; expected an object of it: Midpoint\(\)"),
        (claiming(Midpoint, name=None), 'lacks name; set one in its class: name = "mine"'),
        (claiming(Midpoint, exact="yes"), "lacks exact; set one in its class: exact = True"),
        (claiming(Midpoint, expand=lambda _, ray, __: ray.at(0.5)), r"expand gave a Structured; expected g, a tensor"),
        (claiming(Midpoint, expand=lambda _, ray, __: (ray.end, ray.end)), r"gave a Tensor, a Tensor; expected g"),
        (
            claiming(Midpoint, expand=lambda _, ray, __: (ray.end[:1], ray.at(1.0))),
            r"g of shape \(1, .*that of ray.end",
        ),
    ],
)
def test_what_is_no_expansion_is_refused(call, given, message):
    with pytest.raises(UsageError, match=message):
        call(given)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_operators_given_by_their_matrices_are_those_of_the_ray(kind, layers):
    class ByMatrices(Midpoint):
        def expand(self, ray, tolerance):
            operator = Matrices(*ray.at(0.5).dense())
            return ray.end - ray.increment(operator), operator

    torch.manual_seed(0)
    rnn, x = kind(E, D, layers, dtype=torch.float64), torch.randn(5, 2, E, dtype=torch.float64)
    found, expected = (decompose(rnn, x, expansion=given).vectors() for given in (ByMatrices(), Midpoint()))
    torch.testing.assert_close(found, expected)
    assert not torch.allclose(found, decompose(rnn, x, expansion="operating").vectors())  # the control
    weight = torch.randn(2, D, dtype=torch.float64)
    torch.testing.assert_close(decompose(rnn, x, expansion=ByMatrices()).scores(weight), expected @ weight.T)


def test_the_n_grams_of_an_expansion_of_a_user_are_those_of_the_definition():
    """v = A … A g in a float64 loop, where A is autograd's Jacobian at half of the state."""
    torch.manual_seed(0)
    rnn, x = nn.RNN(E, D, dtype=torch.float64), torch.randn(5, E, dtype=torch.float64)
    x, states = 2 * x, [torch.zeros(D, dtype=torch.float64)]

    def step(inputs, state):
        return rnn(inputs[None], state[None])[1][0]

    terms = torch.zeros(5, 5, D, dtype=torch.float64)
    for t in range(5):
        jacobian = torch.autograd.functional.jacobian(lambda s, t=t: step(x[t], s), 0.5 * states[t])
        states.append(step(x[t], states[t]).detach())
        terms[t, :t] = terms[t - 1, :t] @ jacobian.T
        terms[t, t] = states[-1] - jacobian @ states[t]
    torch.testing.assert_close(decompose(rnn, x, expansion=Midpoint()).vectors()[0], terms)
    assert not torch.allclose(decompose(rnn, x, expansion="secant").vectors()[0], terms, atol=1e-3)  # the control
