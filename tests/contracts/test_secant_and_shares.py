"""Secant and shares: the formulas written apart, exactness over a grid, and what happens where products grow."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from reference import STEPS, gru_secant, layer_weights, lstm_secant, ngrams, run
from sizes_of_cells import SLOTS
from unrolled.cells import CELLS, recurrent
from unrolled.cells.base import Cell
from unrolled.cells.closed_form import ClosedCell
from unrolled.errors import ConvergenceError, UsageError
from unrolled.expansions import resolve
from unrolled.held_forward.step_operator import HeldStep
from unrolled.linalg.quadrature import relative_error

KINDS = [nn.RNN, nn.GRU, nn.LSTM]


def network(kind, scale=3.0, size=6, inputs=4, dtype=torch.float64, **options):
    torch.manual_seed(0)
    rnn = kind(inputs, size, dtype=dtype, **options)
    for parameter in rnn.parameters():
        parameter.data.mul_(scale)
    return rnn


def made(name, scale=2.0):
    torch.manual_seed(1)
    cell = CELLS.get(name)(2, 6).double()
    if name != "memorising":
        for parameter in cell.parameters():
            parameter.data.mul_(scale)
    return cell.requires_grad_(False)


def worst(found):
    return max(float(found.residual(d).max()) for d in range(found.directions))


def largest_sum(found):
    """The largest sum of the sizes of the terms of one number of a state."""
    return max(float(found.vectors(d).abs().sum(dim=2).max()) for d in range(found.directions))


@pytest.mark.parametrize(("kind", "formula"), [(nn.GRU, gru_secant), (nn.LSTM, lstm_secant)])
def test_secant_equals_the_formulas_in_a_loop(kind, formula):
    rnn, x = network(kind), torch.randn(8, 4, dtype=torch.float64)
    w = layer_weights(rnn)
    size = 12 if kind is nn.LSTM else 6
    # a state of zero has no quotient, so the loop begins at another one
    first = 0.3 * torch.randn(size, dtype=torch.float64)
    states = run(lambda a, s: STEPS[kind](w, a, s), x, first)
    expected = ngrams([formula(w, x[t], states[t]) for t in range(8)])[..., -6:]
    given = first[None, None, -6:] if kind is nn.GRU else (first[None, None, 6:], first[None, None, :6])
    found = unrolled.decompose(rnn, x[:, None], state=given, expansion="secant")
    torch.testing.assert_close(found.vectors()[0], expected, rtol=1e-9, atol=1e-11)
    assert worst(found) < 1e-12


@pytest.mark.parametrize("name", ["elman", "gru", "lstm"])
def test_written_formulas_equal_the_generic_increments(name):
    cell, x = made(name), torch.randn(5, 3, 2, dtype=torch.float64)
    ray = cell.run(x).ray(x + 0.4)  # the input moves as well, as in a higher layer
    generic = ray.operator_of(lambda t: ClosedCell.secant_slopes(cell, ray.point(0.0, t), ray.point(1.0, t)))
    state, inputs = torch.randn(4, 3, cell.state_size).double(), torch.randn(4, 3, 2).double()
    for t in range(5):
        found, expected = (operator.at(t).apply(state, inputs) for operator in (ray.secant(), generic))
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("name", ["elman", "gru", "lstm"])
def test_written_lines_from_zero_equal_the_generic_increments(name, share):
    cell, x = made(name), torch.randn(5, 3, 2, dtype=torch.float64)
    ray = cell.run(x).ray(x + 0.4)
    generic = ray.operator_of(lambda t: ClosedCell.share_slopes(cell, ray.point(1.0, t), share))
    state, inputs = torch.randn(4, 3, cell.state_size).double(), torch.randn(4, 3, 2).double()
    for t in range(5):
        found, expected = (operator.at(t).apply(state, inputs) for operator in (ray.shares(share), generic))
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("share", [None, 0.75])
@pytest.mark.parametrize("name", ["gru", "lstm", "gru_before", "mmlstm"])
def test_an_operator_made_of_a_step_equals_the_structured_one_and_has_its_transpose(name, share):
    """HeldStep knows nothing but the operations of a step."""
    cell, x = made(name), torch.randn(4, 3, 2, dtype=torch.float64)
    states = cell.unroll(x)
    held = HeldStep(cell.step, x + 0.4, x, states[:-1], share)
    state, inputs = torch.randn(5, 3, cell.state_size).double(), torch.randn(5, 3, 2).double()
    ray = cell.run(x).ray(x + 0.4)
    operator = ray.secant() if share is None else ray.shares(share)
    for t in range(1, 4):
        image = held.at(t).apply(state, inputs)
        torch.testing.assert_close(image, operator.at(t).apply(state, inputs), rtol=1e-8, atol=1e-10)
        nothing, some = torch.zeros_like(state), torch.zeros_like(inputs)
        some[..., 1:] = inputs[..., 1:]
        for each in (held, operator):
            part = each.at(t).apply_inputs(inputs[..., 1:], first=1)
            torch.testing.assert_close(part, operator.at(t).apply(nothing, some), rtol=1e-8, atol=1e-10)
        covector = torch.randn_like(state)
        by_state, by_input = held.at(t).apply_transpose(covector)
        both = (by_state * state).sum() + (by_input * inputs).sum()
        torch.testing.assert_close(both, (covector * image).sum())


class Modulated(Cell):
    """h' = γ(K x) ⊙ (U h) + W x, without biases."""

    name = "modulated"

    def __init__(self, factor):
        super().__init__(3, 4)
        self.factor = factor
        self.k, self.w, self.u = (nn.Parameter(torch.randn(4, size)) for size in (3, 3, 4))

    def step(self, inputs, state):
        return self.factor(inputs @ self.k.T) * (state @ self.u.T) + inputs @ self.w.T


@pytest.mark.parametrize(
    ("factor", "held"),
    [
        (lambda z: 1 + torch.tanh(z), lambda z, _: 0.5 * (1 + torch.tanh(z))),  # a content, with its number
        (lambda z: 0.5 + 0.5 * torch.tanh(0.5 * z), lambda z, _: 0.5 * torch.sigmoid(z)),
        (torch.sigmoid, lambda z, p: 0.5 + p * (torch.sigmoid(z) - 0.5)),  # a gate
        (lambda z: 1 - torch.sigmoid(z), lambda z, p: 0.5 - p * (torch.sigmoid(z) - 0.5)),
    ],
)
@pytest.mark.parametrize("p", [0.5, 0.75, 1.0])
def test_a_gate_keeps_what_it_is_at_zero_and_a_content_does_not(factor, held, p):
    torch.manual_seed(0)
    cell, x = Modulated(factor).double(), torch.randn(2, 1, 3, dtype=torch.float64)
    first = x[0, 0] @ cell.w.T
    expected = held(x[1, 0] @ cell.k.T, p) * (first @ cell.u.T)
    found = unrolled.decompose(cell, x, expansion=f"shares({p})")
    torch.testing.assert_close(found.vectors()[0, 1, 0], expected.detach())
    assert worst(found) < 1e-12


@pytest.mark.quick_diagonal(4)  # quick: every cell, every expansion, one layer and two
@pytest.mark.parametrize("name", CELLS.names())
@pytest.mark.parametrize("expansion", ["secant", "shares", "shares(0.5)", "shares(1)"])
@pytest.mark.parametrize(
    ("layers", "both"),
    [(1, False), (2, True), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((1, True), (2, False)))],
)
def test_every_cell_closes(name, expansion, layers, both):
    torch.manual_seed(0)
    inputs = 6 if name == "memorising" else 3
    if name in SLOTS:  # their units hold whole inputs, so a second layer would need more of them
        layers = 1
    rnn = recurrent(name, inputs, 6, num_layers=layers, bidirectional=both).double()
    if name != "memorising":
        for parameter in rnn.parameters():
            parameter.data.mul_(1.5)
    x = torch.randn(9, 2, inputs, dtype=torch.float64)
    assert worst(unrolled.decompose(rnn, x, expansion=expansion)) < 1e-12


@pytest.mark.quick_diagonal(3)  # quick: every network, every number of layers, both types
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-14), (torch.float32, 1e-6)])
def test_stacks_and_directions_close(kind, layers, both, dtype, bound):
    """To the rounding of their terms: those of shares may grow far beyond the state."""
    rnn = network(kind, 2.0, num_layers=layers, bidirectional=both, dtype=dtype)
    x = torch.randn(12, 3, 4, dtype=dtype)
    for expansion in ("secant", "shares"):
        found = unrolled.decompose(rnn, x, expansion=expansion)
        assert worst(found) < bound * largest_sum(found)


def test_a_projection_closes():
    rnn = network(nn.LSTM, 3.0, proj_size=3, num_layers=2)
    x = torch.randn(12, 3, 4, dtype=torch.float64)
    for expansion in ("secant", "shares"):
        assert worst(unrolled.decompose(rnn, x, expansion=expansion)) < 1e-12


def test_secant_is_path_for_an_elman_network():
    rnn, x = network(nn.RNN), torch.randn(7, 2, 4, dtype=torch.float64)
    of = lambda name: unrolled.decompose(rnn, x, expansion=name).vectors()
    torch.testing.assert_close(of("secant"), of("path"), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_secant_has_the_unigrams_and_the_sum_of_path(kind):
    rnn, x = network(kind, 1.0), torch.randn(7, 2, 4, dtype=torch.float64)
    secant, path = (unrolled.decompose(rnn, x, expansion=name, tolerance=1e-13) for name in ("secant", "path"))
    where = torch.arange(7)
    unigrams = secant.vectors()[:, where, where]
    torch.testing.assert_close(unigrams, path.vectors()[:, where, where], rtol=0, atol=0)
    torch.testing.assert_close(secant.context(), path.context(), rtol=1e-12, atol=1e-12)
    apart = (secant.vectors() - path.vectors()).norm() / path.vectors().norm()
    assert 1e-6 < apart < 0.05  # near each other, and not the same


def step_errors(found):
    """The relative error of every single step, as states are given by the network itself."""
    errors = []
    for sequence in (sequence for members in found.sequences for sequence in members):
        for layer, operator in zip(sequence.layers, sequence.operators, strict=True):
            if layer is sequence.layers[0]:
                made = operator.apply(layer.states[:-1], None)
                g = sequence.g[..., : layer.cell.state_size]
                errors.append(float(relative_error(layer.image - g - made, layer.image).max()))
    return max(errors)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [30.0, 100.0])
def test_extreme_weights_leave_a_step_at_rounding(kind, scale):
    """128 units, 20 tokens. The sum of products of such steps may drown; the step itself does not."""
    rnn, x = network(kind, scale, size=128), torch.randn(20, 2, 4, dtype=torch.float64)
    found = unrolled.decompose(rnn, x, expansion="secant")
    assert step_errors(found) < 1e-11
    sizes = found.vectors().norm(dim=-1).sum(dim=2) / found.states().norm(dim=-1)
    assert (found.residual() <= 1e-12 * sizes).all()  # of the terms, whose products may grow far beyond the state


def test_where_products_of_steps_grow_no_sum_survives_and_the_residual_says_so():
    rnn, x = network(nn.GRU, 30.0, size=32), torch.randn(400, 1, 4, dtype=torch.float64)
    found = unrolled.decompose(rnn, x, expansion="secant")
    assert step_errors(found) < 1e-11
    size = float(found.vectors()[0, -1].norm(dim=-1).sum() / found.states()[0, -1].norm())
    assert worst(found) <= 1e-12 * max(1.0, size)
    assert size > 1e6


def test_long_texts_with_weights_like_trained_ones():
    rnn, x = network(nn.LSTM, 1.5, size=32), torch.randn(2000, 1, 4, dtype=torch.float64)
    found = unrolled.decompose(rnn, x, expansion="secant", max_order=4)
    assert worst(found) < 1e-10


def test_path_says_when_its_quadrature_has_not_converged():
    rnn, x = network(nn.LSTM, 100.0, size=16), torch.randn(20, 2, 4, dtype=torch.float64)
    with pytest.raises(ConvergenceError, match="quadrature of the expansion path has not converged") as caught:
        unrolled.decompose(rnn, x, expansion="path")
    assert caught.value.error > 1e-6
    assert worst(unrolled.decompose(rnn, x, expansion="path", tolerance=1e3)) > 1e-6
    assert step_errors(unrolled.decompose(rnn, x, expansion="secant")) < 1e-11


class WithoutRule(Cell):
    """A step with an operation that has no rule for increments."""

    name = "without_rule"

    def __init__(self):
        super().__init__(4, 6)
        self.u = nn.Parameter(0.5 * torch.randn(6, 6))
        self.w = nn.Parameter(torch.randn(6, 4))

    def step(self, inputs, state):
        return torch.special.ndtr(inputs @ self.w.T + state @ self.u.T)


def test_a_step_without_a_rule_is_integrated_by_secant_and_refused_by_shares():
    torch.manual_seed(0)
    cell, x = WithoutRule().double(), torch.randn(6, 2, 4, dtype=torch.float64)
    secant, path = (unrolled.decompose(cell, x, expansion=name, tolerance=1e-12) for name in ("secant", "path"))
    torch.testing.assert_close(secant.vectors(), path.vectors())
    assert worst(secant) < 1e-10
    with pytest.raises(UsageError, match="ndtr has no rule"):
        unrolled.decompose(cell, x, expansion="shares")


def test_names_of_shares():
    assert str(resolve("shares")) == "shares"
    assert str(resolve("shares(0.5)")) == "shares(0.5)"
    for text in ("shares(2)", "shares(x)", "shares(0.1, 0.2)", "secant(1)"):
        with pytest.raises(UsageError):
            resolve(text)
