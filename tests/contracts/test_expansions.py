"""What every expansion claims of itself, held against references written apart from the package."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from reference import (
    STEPS,
    affine,
    gru_activation,
    gru_zero_jacobian,
    jacobian,
    layer_weights,
    lstm_activation,
    lstm_zero_jacobian,
    ngrams,
    relative,
    run,
    stack_step,
)
from unrolled.cells.base import Cell
from unrolled.errors import UnknownNameError, UsageError
from unrolled.expansions import EXPANSIONS, resolve
from unrolled.expansions.gates import FixedGates
from unrolled.expansions.mean import Mean
from unrolled.expansions.path import Path
from unrolled.expansions.shares import Shares
from unrolled.expansions.taylor import Taylor

T, E, D = 6, 3, 4
KINDS = [nn.RNN, nn.GRU, nn.LSTM]


def network(kind, seed=0, scale=3.0, **options):
    torch.manual_seed(seed)
    rnn = kind(E, D, dtype=torch.float64, **options)
    for p in rnn.parameters():
        p.data.mul_(scale)
    return rnn


def single(rnn):
    step, size = stack_step(rnn)
    return step, size


@pytest.mark.quick_diagonal(3)  # quick: every rule, every network
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", ["zero", "operating", "path", "taylor", "taylor(3)"])
def test_terms_equal_the_definition(kind, rule):
    rnn = network(kind)
    x = torch.randn(T, E, dtype=torch.float64)
    step, size = single(rnn)
    states = run(step, x, torch.zeros(size, dtype=torch.float64))
    expected = ngrams([affine(step, rule, x[t], states[t]) for t in range(T)])[..., -D:]
    found = unrolled.decompose(rnn, x[:, None], expansion=rule, tolerance=1e-13).vectors()[0]
    torch.testing.assert_close(
        found, expected, rtol=1e-6 if "taylor" in rule else 1e-9, atol=1e-8 if "taylor" in rule else 1e-10
    )


@pytest.mark.parametrize(("kind", "formula"), [(nn.GRU, gru_zero_jacobian), (nn.LSTM, lstm_zero_jacobian)])
def test_the_papers_closed_forms_are_the_jacobian_at_zero(kind, formula):
    rnn = network(kind)
    w, x = layer_weights(rnn), torch.randn(E, dtype=torch.float64)
    step, size = single(rnn)
    torch.testing.assert_close(formula(w, x), jacobian(step, x, torch.zeros(size, dtype=torch.float64)))


@pytest.mark.parametrize(("kind", "formula"), [(nn.GRU, gru_activation), (nn.LSTM, lstm_activation)])
@pytest.mark.parametrize("bias", [True, False])
def test_activation_equals_the_papers_formulas(kind, formula, bias):
    rnn = network(kind, bias=bias)
    w, x = layer_weights(rnn), torch.randn(T, E, dtype=torch.float64)
    expected = ngrams([formula(w, x[t]) for t in range(T)])[..., -D:]
    found = unrolled.decompose(rnn, x[:, None], expansion="activation").vectors()[0]
    torch.testing.assert_close(found, expected)


def test_activation_of_an_elman_network_is_its_linear_part():
    rnn = network(nn.RNN)
    w, x = layer_weights(rnn), torch.randn(T, E, dtype=torch.float64)
    expected = ngrams([(w["weight_ih"] @ x[t] + w["bias_ih"] + w["bias_hh"], w["weight_hh"]) for t in range(T)])
    torch.testing.assert_close(unrolled.decompose(rnn, x[:, None], expansion="activation").vectors()[0], expected)


def test_gates_of_an_lstm_are_its_memory():
    rnn = network(nn.LSTM)
    w, x = layer_weights(rnn), torch.randn(T, E, dtype=torch.float64)
    states = run(lambda a, s: STEPS[nn.LSTM](w, a, s), x, torch.zeros(2 * D, dtype=torch.float64))
    expected = torch.zeros(T, T, D, dtype=torch.float64)
    gates = []
    for t in range(T):
        a = w["weight_ih"] @ x[t] + w["bias_ih"] + w["weight_hh"] @ states[t][D:] + w["bias_hh"]
        i, f, g, o = (
            torch.sigmoid(a[:D]),
            torch.sigmoid(a[D : 2 * D]),
            torch.tanh(a[2 * D : 3 * D]),
            torch.sigmoid(a[3 * D :]),
        )
        c = states[t + 1][:D]
        gates.append((f, i * g, o * torch.tanh(c) / c))
    for i in range(T):
        v = gates[i][1]
        for t in range(i, T):
            v = v if t == i else gates[t][0] * v
            expected[t, i] = gates[t][2] * v
    torch.testing.assert_close(unrolled.decompose(rnn, x[:, None], expansion="gates").vectors()[0], expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", EXPANSIONS.names())
def test_exact_means_that_the_terms_sum(kind, name):
    rnn = network(kind)
    x = torch.randn(T, 2, E, dtype=torch.float64)
    found = unrolled.decompose(rnn, x, expansion=name, tolerance=1e-12)
    summed = found.vectors().sum(dim=2).transpose(0, 1)
    error = relative(summed, rnn(x)[0].detach())
    if found.expansion.exact:
        assert error < 1e-11
        assert found.residual().max() < 1e-11
    else:  # the control: on a non-linear network the others do not sum, and say so
        assert error > 1e-3
        assert found.residual().max() > 1e-3


@pytest.mark.quick_diagonal(3)  # quick: every expansion, every network
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", [*EXPANSIONS.names(), "taylor(1)"])
def test_local_means_that_a_term_knows_its_own_tokens_only(kind, layers, name):
    rnn = network(kind, num_layers=layers)
    x = torch.randn(T, 1, E, dtype=torch.float64)
    other = x.clone()
    other[0] += 1.0
    expansion = resolve(name)
    inner = (slice(None), slice(1, None), slice(1, None))  # n-grams that do not hold token 0
    change = (
        (
            unrolled.decompose(rnn, x, expansion=expansion).vectors()[inner]
            - unrolled.decompose(rnn, other, expansion=expansion).vectors()[inner]
        )
        .abs()
        .max()
    )
    if expansion.local or name == "taylor(1)":
        assert change == 0
    else:
        assert change > 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_taylor_of_order_one_is_zero_and_high_orders_approach_path_where_the_series_converges(kind):
    rnn = network(kind, scale=0.7)
    x = torch.randn(T, 1, E, dtype=torch.float64)
    of = lambda name: unrolled.decompose(rnn, x, expansion=name, tolerance=1e-13).vectors()
    torch.testing.assert_close(of("taylor(1)"), of("zero"))
    errors = [relative(of(f"taylor({k})"), of("path")) for k in (1, 2, 4, 6)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.05 * errors[0]


def test_mean_averages_its_members():
    rnn = network(nn.GRU)
    x = torch.randn(T, 2, E, dtype=torch.float64)
    of = lambda name: unrolled.decompose(rnn, x, expansion=name)
    expected = (of("operating").vectors() + of("gates").vectors() + of("path").vectors()) / 3
    mean = of("mean(operating, gates, path)")
    torch.testing.assert_close(mean.vectors(), expected)
    weight = torch.randn(2, D, dtype=torch.float64)
    torch.testing.assert_close(mean.scores(weight), expected @ weight.T)
    again = of(Mean("operating", FixedGates(), Path()))
    torch.testing.assert_close(again.vectors(), mean.vectors(), rtol=0, atol=0)
    other = of("mean(operating, shares(0.5))").vectors()
    torch.testing.assert_close(other, (of("operating").vectors() + of("shares(0.5)").vectors()) / 2)
    assert not torch.allclose(other, of("mean(operating, shares(1))").vectors(), atol=1e-4)  # the control


@pytest.mark.parametrize("name", ["zero", "operating"])
def test_stack_is_one_recurrence(name):
    """A two-layer stack, against the dense Jacobian of both layers' states together."""
    for kind in KINDS:
        rnn = network(kind, num_layers=2)
        step, size = stack_step(rnn)
        x, s = torch.randn(T, E, dtype=torch.float64), torch.zeros(size, dtype=torch.float64)
        states = run(step, x, s)
        expected = ngrams([affine(step, name, x[t], states[t]) for t in range(T)])[..., -D:]
        torch.testing.assert_close(unrolled.decompose(rnn, x[:, None], expansion=name).vectors()[0], expected)


class Multiplicative(Cell):
    """An mRNN written by a user: nothing but a step."""

    name = "user"

    def __init__(self):
        super().__init__(E, D)
        self.wx, self.wh = nn.Linear(E, D), nn.Linear(D, D, bias=False)
        self.hx, self.hm = nn.Linear(E, D), nn.Linear(D, D, bias=False)

    def step(self, inputs, state):
        return torch.tanh(self.hx(inputs) + self.hm(self.wx(inputs) * self.wh(state)))


@pytest.mark.parametrize("name", ["zero", "operating", "path", "taylor(3)"])
def test_any_cell_opens_without_a_formula(name):
    torch.manual_seed(1)
    cell = Multiplicative().double()
    for p in cell.parameters():
        p.data.mul_(2.5)
    x, s = torch.randn(T, 2, E, dtype=torch.float64), torch.randn(2, D, dtype=torch.float64)
    found = unrolled.decompose(cell, x, state=s, expansion=name, tolerance=1e-12)
    for b in range(2):
        states = run(cell.step, x[:, b], s[b])
        states = [state.detach() for state in states]
        expected = ngrams([affine(cell.step, name, x[t, b], states[t]) for t in range(T)])
        torch.testing.assert_close(found.vectors()[b], expected.detach(), rtol=1e-6, atol=1e-8)
    weight = torch.randn(1, D, dtype=torch.float64)
    torch.testing.assert_close(found.final_scores(weight), found.scores(weight)[:, -1])
    assert (found.residual().max() < 1e-10) == found.expansion.exact


def test_cells_without_gates_or_surrogate_say_so():
    cell, x = Multiplicative(), torch.randn(T, 1, E)
    with pytest.raises(UsageError, match="declares no gates"):
        unrolled.decompose(cell, x, expansion="gates")
    with pytest.raises(UsageError, match="no activation expansion"):
        unrolled.decompose(cell, x, expansion="activation")
    with pytest.raises(UsageError, match="relu has no slope at 0"):
        unrolled.decompose(nn.RNN(E, D, nonlinearity="relu"), x, expansion="activation")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pth", "did you mean 'path'"),
        ("path(3)", "takes no arguments"),
        ("taylor(x)", "expected one whole number"),
        ("taylor(0)", "expected a whole number from 1 to 8"),
        ("mean(mean, gates)", "a mean within a mean"),
        ("mean(zero, path)", "zero is not exact"),
        ("mean(path)", "expected two or more"),
        ("mean(operating, shares(2))", r"shares\(2\.0\): expected a number from 0 to 1"),
        ("mean(operating, gates(1))", "'gates' takes no arguments"),
        ("ga tes", "unknown expansion"),
        ("", "unknown expansion"),
    ],
)
def test_unknown_expansions(text, message):
    with pytest.raises((UnknownNameError, UsageError), match=message):
        resolve(text)


def test_names_read_back():
    for text in ("zero", "taylor(3)", "mean(operating, path)", "mean(operating, shares(0.5), gates)"):
        assert str(resolve(str(resolve(text)))) == text


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Taylor(2.5), "taylor order is 2.5; expected a whole number from 1 to 8"),
        (lambda: Taylor("3"), "taylor order is '3'; expected a whole number from 1 to 8"),
        (lambda: Shares("half"), r"shares\(half\): expected a number from 0 to 1"),
        (lambda: Mean("operating", "pth"), "did you mean 'path'"),
    ],
)
def test_arguments_that_cannot_be_are_one_line(make, message):
    with pytest.raises(UsageError, match=message):
        make()
