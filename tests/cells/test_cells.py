"""Every closed cell: its step is torch.nn's, its slopes are autograd's, its operator and transpose agree."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.cells import CELLS
from unrolled.cells.base import Cell
from unrolled.cells.closed_form import ClosedCell
from unrolled.cells.elman import Elman
from unrolled.cells.gru import GRU
from unrolled.cells.lstm import LSTM
from unrolled.cells.ray import MatrixFreeRay
from unrolled.errors import ShapeError, UnknownNameError, UsageError
from unrolled.linalg.quadrature import gauss_legendre

pytestmark = pytest.mark.usefixtures("double")
CLOSED = [name for name, cell in CELLS.members.items() if issubclass(cell, ClosedCell)]
E, D, B, T = 3, 5, 2, 4


@pytest.fixture(params=CLOSED)
def cell(request):
    made = CELLS.get(request.param)(E, D)
    for p in made.parameters():
        p.requires_grad_(False).mul_(2.5)
    return made


def test_the_registry_finds_the_classes():
    assert {"elman", "gru", "lstm"} <= set(CELLS.names())


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_jacobian_equals_autograd(cell, alpha):
    x, s = torch.randn(T, B, E), torch.randn(B, cell.state_size)
    run = cell.run(x, s)
    operator = run.ray(x).at(alpha).at(2)
    before = alpha * run.states[2]
    units, units_x = torch.eye(cell.state_size)[:, None].expand(-1, B, -1), torch.eye(E)[:, None].expand(-1, B, -1)
    by_state = operator.apply(units).permute(1, 2, 0)
    by_input = operator.apply(torch.zeros(E, B, cell.state_size), units_x).permute(1, 2, 0)
    for b in range(B):
        J_x, J_s = torch.autograd.functional.jacobian(cell.step, (x[2, b], before[b]))
        torch.testing.assert_close(by_state[b], J_s, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(by_input[b], J_x, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CELLS.names())
def test_dense_equals_autograd(name):
    cell = CELLS.get(name)(2, 4)
    for p in cell.parameters():
        p.requires_grad_(False).mul_(1.5)
    x, s = torch.randn(T, B, 2), cell.initial_state(B) + 0.5 * torch.randn(B, cell.state_size)
    run = cell.run(x, s)
    operator = run.ray(x).at(1.0)
    A, C = operator.dense()
    assert A.shape == (T, B, cell.state_size, cell.state_size)
    assert C.shape == (T, B, cell.state_size, 2)
    for t in range(T):
        for b in range(B):
            J_x, J_s = torch.autograd.functional.jacobian(cell.step, (x[t, b], run.states[t, b]))
            torch.testing.assert_close(A[t, b], J_s, rtol=1e-10, atol=1e-12)
            torch.testing.assert_close(C[t, b], J_x, rtol=1e-10, atol=1e-12)
    one_step = operator.at(2).dense()
    torch.testing.assert_close(one_step[0], A[2])
    torch.testing.assert_close(one_step[1], C[2])


@pytest.mark.parametrize("name", ["gru", "lstm", "mi_gru", "mi_lstm"])
def test_fixed_gates_multiply_no_weight(name):
    cell = CELLS.get(name)(E, D)
    x = torch.randn(T, B, E)
    with torch.no_grad():
        A, C = cell.run(x).ray(x).fixed_gates().dense()
    assert not C.any()
    blocks = A.unflatten(-1, (-1, D)).unflatten(-3, (-1, D)).movedim(-2, -3)  # (…, part, part, D, D)
    assert blocks[..., 0, 0, :, :].any()
    assert not (blocks - torch.diag_embed(blocks.diagonal(dim1=-2, dim2=-1))).any()


@pytest.mark.parametrize("name", CLOSED)
def test_formulas_of_slopes_equal_forward_mode(name):
    cell = CELLS.get(name)(E, D)
    x = torch.randn(T, B, E)
    with torch.no_grad():
        point = cell.run(x, torch.randn(B, cell.state_size)).ray(x).point(0.7)
        found, expected = cell.slopes(*point), ClosedCell.slopes(cell, *point)
    assert set(found) == set(expected)
    for diagonal in found:
        torch.testing.assert_close(found[diagonal].expand_as(expected[diagonal]), expected[diagonal])


def test_transpose_is_the_adjoint(cell):
    x = torch.randn(T, B, E)
    ray = cell.run(x).ray(torch.randn(T, B, E))
    operator = ray.operator(gauss_legendre(3)).at(1)
    v, w, u = torch.randn(6, B, cell.state_size), torch.randn(6, B, E), torch.randn(6, B, cell.state_size)
    back_v, back_w = operator.apply_transpose(u)
    left = (operator.apply(v, w) * u).sum(-1)
    torch.testing.assert_close(left, (v * back_v).sum(-1) + (w * back_w).sum(-1), rtol=1e-10, atol=1e-12)


def test_matrix_free_is_the_same_operator(cell):
    x, origin = torch.randn(T, B, E), torch.randn(T, B, E)
    run = cell.run(x, torch.randn(B, cell.state_size))
    free = MatrixFreeRay(cell.step, origin, x, run.states)
    closed = run.ray(origin)
    v, w = torch.randn(3, B, cell.state_size), torch.randn(3, B, E)
    for take in (lambda r: r.at(0.0), lambda r: r.at(1.0), lambda r: r.operator(gauss_legendre(4))):
        one, other = take(closed), take(free)
        torch.testing.assert_close(one.at(1).apply(v, w), other.at(1).apply(v, w))
        for a, b in zip(one.at(1).apply_transpose(v), other.at(1).apply_transpose(v), strict=True):
            torch.testing.assert_close(a, b)
        torch.testing.assert_close(closed.increment(one), free.increment(other))
    torch.testing.assert_close(closed.origin, free.origin)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", [CELLS.get(name) for name in CLOSED if CELLS.get(name).torch_type])
def test_equals_torch(kind, bias):
    rnn = kind.torch_type(E, D, bias=bias)
    mine = kind.from_torch(rnn, 0, False, torch.float64)
    x = torch.randn(T, B, E)
    torch.testing.assert_close(mine.hidden(mine.unroll(x)[1:]), rnn(x)[0])


def test_step_is_unroll(cell):
    x, s = torch.randn(T, B, E), torch.randn(B, cell.state_size)
    states = cell.unroll(x, s)
    for t in range(T):
        torch.testing.assert_close(cell.step(x[t], states[t]), states[t + 1])


def test_weights_are_shared_not_copied():
    rnn = nn.GRU(E, D)
    cell = GRU.from_torch(rnn, 0, False, torch.float64)
    assert cell.weight_ih.data_ptr() == rnn.weight_ih_l0.data_ptr()
    assert not cell.weight_ih.requires_grad
    assert rnn.weight_ih_l0.requires_grad


@pytest.mark.parametrize("phi", ["tanh", "relu", "sigmoid"])
def test_elman_mean_slope_is_exact_for_every_activation(phi):
    cell = Elman(E, D, nonlinearity=phi)
    for p in cell.parameters():
        p.requires_grad_(False).mul_(4)
    x = torch.randn(T, B, E)
    ray = cell.run(x, torch.randn(B, D)).ray(x)
    torch.testing.assert_close(ray.origin + ray.increment(ray.mean_jacobian()), ray.end, rtol=0, atol=1e-14)
    if phi == "relu":  # the control: quadrature cannot see the kink
        wrong = ray.origin + ray.increment(ray.operator(gauss_legendre(8))) - ray.end
        assert wrong.abs().max() > 1e-3


class Decay(Cell):
    """A cell that has nothing to learn."""

    name = "decay"

    def __init__(self):
        super().__init__(E, E)

    def step(self, inputs, state):
        return torch.tanh(inputs + 0.5 * state)


def test_a_cell_without_parameters_begins_in_torchs_default_type():
    torch.set_default_dtype(torch.float32)
    start = Decay().initial_state(B)
    assert (start.dtype, start.device.type, tuple(start.shape)) == (torch.float32, "cpu", (B, E))
    x = torch.randn(T, B, E)
    torch.testing.assert_close(Decay().unroll(x)[1], torch.tanh(x[0]))
    held = Decay()
    held.register_buffer("count", torch.zeros((), dtype=torch.int64))
    assert held.initial_state(B).dtype == torch.float32  # a count says nothing of the state
    held.register_buffer("scale", torch.ones(1))
    assert held.double().initial_state(B).dtype == torch.float64
    assert GRU(E, D).to(torch.bfloat16).initial_state(B).dtype == torch.bfloat16


def test_bad_sizes_and_shapes():
    with pytest.raises(UsageError, match="hidden_size is 0; expected a positive integer"):
        GRU(3, 0)
    with pytest.raises(UsageError, match="hidden_size is True; expected a positive integer"):
        GRU(3, True)
    with pytest.raises(UsageError, match="proj_size is True; expected 0 or a positive integer"):
        LSTM(3, 4, proj_size=True)
    with pytest.raises(UsageError, match="proj_size is 5; expected 0, or less than hidden_size, 4"):
        LSTM(3, 4, proj_size=5)
    with pytest.raises(UnknownNameError, match="did you mean 'tanh'"):
        Elman(3, 4, nonlinearity="tanhh")
    with pytest.raises(ShapeError, match=r"expected \(time, batch, 3\)"):
        GRU(3, 4).unroll(torch.zeros(2, 1, 5))
    with pytest.raises(ShapeError, match=r"weight_hh of a gru cell"):
        GRU.from_weights({"weight_ih": torch.zeros(12, 3), "weight_hh": torch.zeros(12, 5)})
    with pytest.raises(UnknownNameError, match="unknown cell 'gruu'; did you mean 'gru'"):
        CELLS.get("gruu")
