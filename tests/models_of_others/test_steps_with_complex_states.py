"""Steps of state-space models with a complex state: the n-grams are those of the same numbers in pairs."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from outside_judge import Model, ids, judge_account, judge_explanation, one_of

V, D, N = 30, 3, 4
TEXT = ids(2, 5)


class DiagonalStep(nn.Module):
    """The step of a linear recurrent unit."""

    def __init__(self):
        super().__init__()
        self.decay, self.turn = nn.Parameter(torch.rand(N)), nn.Parameter(torch.rand(N))
        self.into, self.out = nn.Parameter(0.5 * torch.randn(N, D, 2)), nn.Parameter(0.5 * torch.randn(D, N, 2))

    @property
    def factor(self):
        return torch.exp(torch.complex(-self.decay.exp(), self.turn))

    def start(self, x):
        return torch.zeros(len(x), N, dtype=torch.complex128)

    def step(self, x, state):
        state = self.factor * state + x.to(state.dtype) @ torch.view_as_complex(self.into).mT
        return F.gelu((state @ torch.view_as_complex(self.out).mT).real), state


class InPairs(DiagonalStep):
    def start(self, x):
        return torch.zeros(len(x), N, 2, dtype=x.dtype)

    def step(self, x, state):
        y, state = super().step(x, torch.view_as_complex(state))
        return y, torch.view_as_real(state)


class SideBySide(DiagonalStep):
    """Keeps the pairs as one row of numbers, behind as many others as are odd."""

    def start(self, x):
        return torch.zeros(len(x), 2 * N, dtype=x.dtype)

    def step(self, x, state):
        y, state = super().step(x, torch.view_as_complex(state.view(len(x), N, 2)))
        return y, torch.view_as_real(state).flatten(-2)


class Conjugated(DiagonalStep):
    """Keeps the conjugate of the state, in a dictionary."""

    def start(self, x):
        return {"state": super().start(x), "seen": 0}

    def step(self, x, cache):
        y, state = super().step(x, cache["state"].conj())
        return y, {"state": state.conj(), "seen": cache["seen"] + 1}


class Channels(nn.Module):
    """The step of S4D: a state of N complex numbers for each channel, of which the real part is read twice."""

    def __init__(self):
        super().__init__()
        self.log_dt, self.real = nn.Parameter(torch.rand(D) - 1), nn.Parameter(torch.rand(D, N))
        self.register_buffer("imag", torch.pi * torch.arange(N).double().repeat(D, 1))
        self.out, self.skip = nn.Parameter(torch.randn(D, N, 2)), nn.Parameter(torch.randn(D))

    def start(self, x):
        return torch.zeros(len(x), D, N, dtype=torch.complex128)

    def step(self, x, state):
        dt, A = self.log_dt.exp()[:, None], torch.complex(-self.real.exp(), self.imag)
        C = torch.view_as_complex(self.out) * (torch.exp(dt * A) - 1) / A
        state = torch.exp(dt * A) * state + x[..., None]
        return F.gelu(2 * torch.einsum("dn,bdn->bd", C, state).real + self.skip * x), state


class Magnitude(DiagonalStep):
    """It reads the size of its state."""

    def step(self, x, state):
        y, state = super().step(x, state)
        return y + state.abs().sum(-1, keepdim=True), state


class Phase(DiagonalStep):
    """Its output is no function that increments go through: it is expanded by path."""

    def step(self, x, state):
        y, state = super().step(x, state)
        return y + state.angle().sum(-1, keepdim=True), state


class Reader(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(V, D), kind(), nn.Linear(D, 3)

    def forward(self, tokens):
        x = self.embed(tokens)
        state = self.cell.start(x[:, 0])
        for each in x.unbind(1):
            y, state = self.cell.step(each, state)
        return self.head(y)


def case(kind):
    return Model(lambda: Reader(kind), (TEXT,), 1, (0,), alone=one_of(TEXT))


@pytest.mark.parametrize("kind", [DiagonalStep, Conjugated, Channels])
def test_the_account_and_the_explanation_are_right(kind):
    judge_account(case(kind))
    judge_explanation(case(kind))


@pytest.mark.quick_diagonal(2)  # quick: both kinds, every expansion
@pytest.mark.parametrize("expansion", ["secant", "shares", "path"])
@pytest.mark.parametrize("kind", [DiagonalStep, Conjugated])
def test_n_grams_are_those_of_pairs_of_numbers(kind, expansion):
    found, expected = (
        unrolled.explain(case(each).built(), TEXT[:1], target=1, expansion=expansion) for each in (kind, InPairs)
    )
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, rtol=1e-9, atol=1e-10)
    assert found.ledger.initial == 0


@pytest.mark.parametrize("expansion", ["secant", "operating", "zero", "path"])
def test_pairs_may_stand_side_by_side(expansion):
    found, expected = (
        unrolled.explain(case(each).built(), TEXT[:1], target=1, expansion=expansion) for each in (SideBySide, InPairs)
    )
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, rtol=1e-9, atol=1e-10)


def test_torch_itself_differentiates_pairs_at_even_places_only():
    """The negative control: what a step of odd width asks of torch."""
    y, state = torch.ones(1, D), torch.ones(1, N, dtype=torch.complex64, requires_grad=True)
    row = torch.cat([y, torch.view_as_real(state).flatten(-2)], dim=-1)
    with pytest.raises(RuntimeError, match="storage_offset divisible by 2"):
        row.sum(0).backward(torch.ones(D + 2 * N))
    state.grad = None
    row = torch.cat([y[:, 1:], torch.view_as_real(state).flatten(-2)], dim=-1)
    row.sum(0).backward(torch.ones(D - 1 + 2 * N))
    assert bool((state.grad == 1 + 1j).all())


def test_n_grams_are_powers_of_the_factor():
    """The reference: v from token i is Λ^(t-i) B x_i, read by the slope from what the last token makes alone."""
    model = case(DiagonalStep).built()
    found = unrolled.explain(model, TEXT[:1], target=1)
    with torch.no_grad():
        cell, x = model.cell, model.embed(TEXT[0]).to(torch.complex128)
        into, out = torch.view_as_complex(cell.into), torch.view_as_complex(cell.out)
        parts = [(out @ (cell.factor ** (len(x) - 1 - i) * (into @ each))).real for i, each in enumerate(x)]
        alone, whole = parts[-1], sum(parts)
        slope = (F.gelu(whole) - F.gelu(alone)) / (whole - alone)
        expected = [float(model.head.weight[1] @ (slope * each)) for each in parts[:-1]]
        expected.append(float(model.head.weight[1] @ F.gelu(alone)))
    torch.testing.assert_close(
        found.triangle.contributions[0, -1], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("expansion", ["secant", "shares", "path"])
def test_a_step_with_a_magnitude_is_explained(expansion):
    judge_explanation(Model(lambda: Reader(Magnitude), (TEXT[:1],), 1, (0,), options={"expansion": expansion}))


def test_a_step_with_a_phase_is_expanded_by_path():
    (found,) = judge_explanation(Model(lambda: Reader(Phase), (TEXT[:1],), 1, (0,), options={"expansion": "path"}))
    secant = unrolled.explain(case(Phase).built(), TEXT[:1], target=1)
    torch.testing.assert_close(secant.triangle.contributions, found.triangle.contributions, rtol=0, atol=1e-6)


class Stabilised(nn.Module):
    """A mean with exponential weights, whose largest exponent is a part of the state."""

    lowest = -torch.inf

    def __init__(self):
        super().__init__()
        self.weight, self.value = nn.Linear(D, D), nn.Linear(D, D)

    def start(self, x):
        return torch.zeros_like(x), torch.zeros_like(x), torch.full_like(x, self.lowest)

    def step(self, x, state):
        content, whole, top = state
        score = self.weight(x)
        higher = torch.maximum(top, score)
        kept, new = torch.exp(top - higher), torch.exp(score - higher)
        content, whole = kept * content + new * self.value(x), kept * whole + new
        return content / whole, (content, whole, higher)


class FromANumber(Stabilised):
    lowest = -1000.0


def test_an_infinite_initial_state_is_refused_by_its_name():
    with pytest.raises(
        unrolled.UnrolledError, match=r"an initial state is infinite.*begin at a finite number, such as -1000"
    ):
        unrolled.explain(case(Stabilised).built(), TEXT[:1], target=1)
    judge_explanation(case(FromANumber))
    judge_account(case(Stabilised))
