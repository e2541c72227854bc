"""Affine cells: the papers' formulas, the cut-off, and what being affine means for their n-grams."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn

import unrolled
from reference import ngrams
from reference_affine import AFFINE
from unrolled.cells import CELLS, recurrent
from unrolled.cells.affine import AffineCell
from unrolled.cells.base import Cell
from unrolled.cells.mvma import MVMAE
from unrolled.cells.sequence_level import PolynomialCell
from unrolled.errors import ShapeError, UsageError
from unrolled.expansions import EXPANSIONS
from unrolled.kernels.affine_scan import AffineKernel, Pattern
from unrolled.kernels.base import run_kernel
from unrolled.linalg.structured import Term
from unrolled.testing import CLAUSES

E, D, B, T = 3, 5, 2, 6
MEMBERS = [name for name, cell in CELLS.members.items() if issubclass(cell, AffineCell)]
CLAMPED = [name for name in MEMBERS if issubclass(CELLS.get(name), PolynomialCell)]
NAMES = sorted(AFFINE)  # those of the papers, written apart
TORCH = {"gru": nn.GRU, "lstm": nn.LSTM, "_g": nn.GRU, "_l": nn.LSTM, "_e": nn.RNN}


def made(name, scale=2.0, **options):
    torch.manual_seed(3)
    cell = CELLS.get(name)(E, D, **options).double()
    for parameter in cell.parameters():
        parameter.requires_grad_(False).mul_(scale)
    return cell


def inputs(batch=B):
    torch.manual_seed(4)
    return torch.randn(T, batch, E).double()


def weights_of(cell):
    found = {key: value.detach() for key, value in cell.named_parameters()}
    for bias, weight in (("bias_ih", "weight_ih"), ("bias_hh", "weight_hh")):
        found.setdefault(bias, torch.zeros(len(found[weight])).double())
    return found


def test_every_affine_cell_of_the_papers_is_a_member():
    assert set(AFFINE) <= set(MEMBERS)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_step_is_the_papers_affine_map(name, bias):
    cell, x = made(name, bias=bias), inputs()
    s = torch.randn(B, cell.state_size).double()
    states = cell.unroll(x, s)
    for b in range(B):
        current = s[b]
        for t in range(T):
            g, A = AFFINE[name](weights_of(cell), x[t, b])
            current = g + A @ current
            torch.testing.assert_close(states[t + 1, b], current)


@pytest.mark.quick_diagonal(4)  # quick: every cell, every expansion
@pytest.mark.parametrize("expansion", [*EXPANSIONS.names(), "taylor(3)"])
@pytest.mark.parametrize("name", NAMES)
def test_every_expansion_is_the_recurrence_itself(name, expansion):
    if expansion == "mean":
        expansion = "mean(operating,path)"
    cell, x = made(name), inputs()
    steps = [AFFINE[name](weights_of(cell), x[t, 0]) for t in range(T)]
    found = unrolled.decompose(cell, x, expansion=expansion)
    if expansion == "activation" and not issubclass(CELLS.get(name), PolynomialCell):
        assert found.residual().max() > 1e-3  # the control: its activations are expanded too
        return
    torch.testing.assert_close(found.vectors()[0], ngrams(steps)[..., -D:])
    assert found.residual().max() < 1e-12


@pytest.mark.parametrize("name", MEMBERS)
def test_linear_is_a_fact_of_the_class(name):
    cell, x = made(name), inputs()[0]
    s, r = torch.randn(2, B, cell.state_size).double()
    assert type(cell).linear
    torch.testing.assert_close(cell.step(x, 0.3 * s + 0.7 * r), 0.3 * cell.step(x, s) + 0.7 * cell.step(x, r))


@pytest.mark.parametrize("name", ["elman", "gru", "lstm"])
def test_the_cells_they_were_made_of_are_not_linear(name):
    cell, x = made(name), inputs()[0]
    s, r = torch.randn(2, B, cell.state_size).double()
    assert not type(cell).linear
    mixed = 0.3 * cell.step(x, s) + 0.7 * cell.step(x, r)
    assert (cell.step(x, 0.3 * s + 0.7 * r) - mixed).abs().max() > 1e-3


@pytest.mark.quick_diagonal(2)  # quick: every cell
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", MEMBERS)
def test_stacks_open_exactly(name, layers):
    torch.manual_seed(5)
    network = recurrent(name, E, D, num_layers=layers).double()
    for expansion in ("operating", "path", "gates"):
        found = unrolled.decompose(network, inputs(), expansion=expansion, tolerance=1e-12)
        assert found.residual().max() < 1e-10
    wrong = unrolled.decompose(network, inputs(), expansion="zero").residual().max()
    assert (wrong < 1e-10) == (layers == 1)  # the control: the product of two layers is not affine


@pytest.mark.parametrize(
    ("name", "torch_type", "expansion"),
    [
        ("approx_gru", nn.GRU, "activation"),
        ("approx_lstm", nn.LSTM, "activation"),
        ("mvma_e", nn.RNN, "zero"),
        ("mvma_g", nn.GRU, "zero"),
        ("mvma_l", nn.LSTM, "zero"),
    ],
)
@pytest.mark.parametrize("bias", [True, False])
def test_with_a_trained_networks_weights_the_state_is_the_sum_of_its_ngrams(name, torch_type, expansion, bias):
    torch.manual_seed(6)
    rnn, x = torch_type(E, D, bias=bias).double(), inputs()
    cell = CELLS.get(name).from_torch(rnn, 0, False, torch.float64)
    summed = unrolled.decompose(rnn, x, expansion=expansion).vectors().sum(dim=2).transpose(0, 1)
    torch.testing.assert_close(cell.hidden(cell.unroll(x)[1:]), summed)
    assert (summed - rnn(x)[0]).abs().max() > 1e-4  # the control: the network itself is not affine
    count = lambda module: sum(p.numel() for p in module.parameters())
    assert count(cell) == count(rnn)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "mvma_me"])
def test_the_layout_is_pytorchs(name):
    kind = next(rnn for part, rnn in TORCH.items() if part in name)
    cell, rnn = made(name), kind(E, D)
    assert {k + "_l0": p.shape for k, p in cell.named_parameters()} == {k: p.shape for k, p in rnn.named_parameters()}


@pytest.mark.quick_diagonal(3)  # quick: every cell, every clause
@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize("name", CLAMPED)
def test_the_contract_holds_with_the_cut_off(name, clause):
    torch.manual_seed(1)
    CLAUSES[clause](CELLS.get(name)(E, D, clamp=0.3).double())


@pytest.mark.parametrize("name", CLAMPED)
def test_the_cut_off(name):
    cell, free, x = made(name, 4.0, clamp=0.2), made(name, 4.0), inputs()
    states, s = cell.unroll(x), torch.zeros(B, cell.state_size).double()
    for t in range(T):
        s = free.step(x[t], s).clamp(-0.2, 0.2)
        torch.testing.assert_close(states[t + 1], s)
    assert states.abs().max() == 0.2
    assert free.unroll(x).abs().max() > 0.2
    torch.testing.assert_close(made(name, 4.0, clamp=1e6).unroll(x), free.unroll(x))


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", CLAMPED)
def test_cut_off_networks_open_exactly_across_the_kink(name, layers):
    torch.manual_seed(5)
    network = recurrent(name, E, D, num_layers=layers, clamp=0.15).double()
    for parameter in network.parameters():
        parameter.data.mul_(2)
    assert (network(inputs())[0].abs() == 0.15).any()
    for expansion in ("operating", "path", "gates"):
        assert unrolled.decompose(network, inputs(), expansion=expansion).residual().max() < 1e-12
    assert unrolled.decompose(network, inputs(), expansion="zero").residual().max() > 1e-3


def random_recurrence(clamp=None):
    torch.manual_seed(7)
    pattern = Pattern(
        ("cell", "hidden"),
        (Term("cell", "keep"),),
        (Term("cell", "a", 0), Term("hidden", "b", 0), Term("hidden", "one", 1)),
        D,
        clamp,
    )
    draw = lambda *shape: torch.randn(*shape).double().requires_grad_()

    def expand(by_input, gain, unread):  # noqa: ARG001  # a weight that nothing reads
        """Two parts of g and four diagonals, one of them the same for all tokens, one read twice."""
        offset, *several = (gain * by_input).chunk(5, dim=-1)
        diagonals = dict(zip(("keep", "a", "b"), several, strict=False))
        return (offset, several[0].tanh()), {**diagonals, "one": torch.ones_like(offset)}

    return AffineKernel(pattern, expand), [draw(T, B, 5 * D), draw(B, 2 * D), draw(2 * D, D), draw(5 * D), draw(1)]


@pytest.mark.parametrize("clamp", [None, 0.7])
def test_the_fast_recurrence_equals_the_plain_one(clamp):
    kernel, leaves = random_recurrence(clamp)
    found = []
    for run in (partial(run_kernel, kernel), kernel.reference):
        states = run(*leaves)
        first = torch.autograd.grad(states.square().sum(), leaves[:4], create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), leaves[:4])
        cheap = torch.autograd.grad(run(*leaves).square().sum(), leaves, allow_unused=True)
        assert cheap[4] is None  # nothing reads it
        found.append((states, *first, *second, *cheap[:4]))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
    if clamp is not None:
        assert (found[0][0][1:].abs() == clamp).any()


class Mapped(MVMAE):
    """MVMA-E whose tokens pass a layer of the cell's own before g and A are made of them."""

    name = "mapped"

    def __init__(self, input_size, hidden_size):
        super().__init__(input_size, hidden_size)
        self.layer = nn.Linear(hidden_size, hidden_size)

    def affine_map(self, from_input):
        return super().affine_map(self.layer(from_input))


def with_a_computed_bias():
    cell = MVMAE(E, D)
    nn.utils.parametrize.register_parametrization(cell, "bias_hh", nn.Tanh())
    return cell


@pytest.mark.parametrize("make", [lambda: Mapped(E, D), with_a_computed_bias])
def test_what_g_and_the_diagonals_are_made_of_learns_as_in_the_plain_loop(make):
    torch.manual_seed(0)
    cell, x = make().double(), inputs()
    leaves = list(cell.parameters())
    fast = torch.autograd.grad(cell.unroll(x).square().sum(), leaves, allow_unused=True)
    plain = torch.autograd.grad(Cell.unroll(cell, x).square().sum(), leaves)
    for one, other in zip(fast, plain, strict=True):
        assert one is not None
        torch.testing.assert_close(one, other)
        assert other.any()


def test_what_is_held_fixed_gets_no_gradient():
    kernel, (by_input, state, recurrent_, gain, unread) = random_recurrence()
    given = (by_input.detach(), state.detach(), recurrent_, gain, unread.detach())
    for one, other in zip(
        torch.autograd.grad(run_kernel(kernel, *given).sum(), (recurrent_, gain)),
        torch.autograd.grad(kernel.reference(*given).sum(), (recurrent_, gain)),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: made("approx_gru", clamp=0.0), UsageError, "clamp is 0.0; expected a positive bound"),
        (lambda: made("approx_gru", clamp=float("nan")), UsageError, "clamp is nan; expected a positive bound"),
        (lambda: made("approx_gru", clamp="1.5"), UsageError, "clamp is '1.5'; expected a positive bound"),
        (lambda: made("mvma_l", proj_size=2), UsageError, "proj_size is 2; expected 0"),
        (lambda: made("approx_gru").unroll(torch.zeros(T, B, E + 1)), ShapeError, "expected \\(time, batch, 3\\)"),
        (lambda: made("approx_gru").unroll(inputs(), torch.zeros(B, 2)), ShapeError, "expected \\(2, 5\\)"),
        (
            lambda: CELLS.get("approx_gru").from_torch(nn.LSTM(E, D), 0, False, torch.float64),
            ShapeError,
            "of a approx_gru cell has shape",
        ),
    ],
)
def test_what_cannot_be_is_one_line(make, error, message):
    with pytest.raises(error, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
