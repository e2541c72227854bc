"""Whole-sequence kernels against the reference loop: in chunks, under other transforms, and against torch.nn."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad

from unrolled.cells import CELLS, recurrent
from unrolled.cells.base import Cell
from unrolled.cells.closed_form import ClosedCell
from unrolled.cells.elman import Elman
from unrolled.cells.lstm import LSTM
from unrolled.kernels import base as sequence
from unrolled.testing import check_cell

E, D, B, T = 3, 5, 2, 7


def has_kernel(cell):
    """A cell without a kernel inherits the loop over its steps."""
    return cell.unroll not in (Cell.unroll, ClosedCell.unroll)


KERNELS = [name for name, cell in CELLS.members.items() if has_kernel(cell)]


def made(name, **options):
    torch.manual_seed(0)
    cell = CELLS.get(name)(E, D, **options).double()
    for parameter in cell.parameters():
        parameter.data.mul_(1.5)
    return cell, torch.randn(T, B, E).double(), cell.initial_state(B) + 0.3 * torch.randn(B, cell.state_size).double()


def gradients(cell, unroll, x, s):
    leaves = (x.requires_grad_(), s.requires_grad_(), *cell.parameters())
    states = unroll(x, s)
    torch.manual_seed(1)
    return states, *torch.autograd.grad((states * torch.randn_like(states)).sum(), leaves, allow_unused=True)


def test_a_closed_cell_without_a_kernel_is_none_of_these():
    class WithoutKernel(Elman):
        unroll = ClosedCell.unroll

    assert has_kernel(Elman)
    assert not has_kernel(WithoutKernel)
    cell, x, s = made("elman")
    assert torch.equal(WithoutKernel.unroll(cell, x, s), Cell.unroll(cell, x, s))


@pytest.mark.quick_diagonal(3)  # quick: every kernel, every length
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_sequence_of_several_chunks_has_the_same_gradient(name, length, monkeypatch):
    cell, x, s = made(name)
    cut = []
    monkeypatch.setattr(sequence, "CACHE_CHUNK", length * s.numel())
    for module in ("gated", "affine_scan"):
        monkeypatch.setattr(
            f"unrolled.kernels.{module}.time_chunks", lambda *a: cut.append(sequence.time_chunks(*a[:2])) or cut[-1]
        )
    found = gradients(cell, cell.unroll, x, s)
    assert cut, f"{name} overrides unroll without a kernel in chunks; leave it out, and the loop of its base is used"
    assert all(len(chunks) == -(-T // length) for chunks in cut)
    for one, other in zip(found, gradients(cell, lambda *a: Cell.unroll(cell, *a), x, s), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_chunks_cover_a_sequence_from_its_end():
    found = sequence.time_chunks(10, sequence.CACHE_CHUNK // 4)
    assert found == [(8, 10), (4, 8), (0, 4)]
    assert sequence.time_chunks(3, 10 * sequence.CACHE_CHUNK) == [(2, 3), (1, 2), (0, 1)]
    assert sequence.time_chunks(0, 5) == []


@pytest.mark.parametrize("name", KERNELS)
def test_forward_mode_runs_the_reference_loop(name):
    cell, x, s = made(name)
    tangents = torch.randn_like(x), torch.randn_like(s)
    expected = torch.func.jvp(lambda *a: Cell.unroll(cell, *a), (x, s), tangents)
    for one, other in zip(torch.func.jvp(cell.unroll, (x, s), tangents), expected, strict=True):
        torch.testing.assert_close(one, other)
    with forward_ad.dual_level():
        dual = cell.unroll(forward_ad.make_dual(x, tangents[0]), forward_ad.make_dual(s, tangents[1]))
        torch.testing.assert_close(forward_ad.unpack_dual(dual).tangent, expected[1])


@pytest.mark.parametrize("name", KERNELS)
def test_a_gradient_for_each_example_is_that_of_the_example(name):
    cell, x, s = made(name)
    loss = lambda x, s: cell.unroll(x[:, None], s[None]).square().sum()
    each = torch.func.vmap(torch.func.grad(loss), in_dims=(1, 0), out_dims=1)(x, s)
    x.requires_grad_()
    torch.testing.assert_close(each, torch.autograd.grad(cell.unroll(x, s).square().sum(), x)[0])


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("time", "batch"), [(1, 1), (T, B)])
def test_a_kernel_is_differentiated_twice_for_one_token_too(name, time, batch):
    cell, x, s = made(name)
    x, s = x[:time, :batch], s[:batch]
    leaves = (x.requires_grad_(), s.requires_grad_())

    def second_order(unroll):
        first = torch.autograd.grad(unroll(x, s).square().sum(), leaves, create_graph=True, allow_unused=True)
        return torch.autograd.grad(sum(g.square().sum() for g in first if g is not None), leaves, allow_unused=True)

    for one, other in zip(second_order(cell.unroll), second_order(lambda *a: Cell.unroll(cell, *a)), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"proj_size": 2}])
def test_an_lstm_runs_as_torchs_and_is_differentiated_twice(options):
    cell, x, s = made("lstm", **options)
    leaves = (x.requires_grad_(), s.requires_grad_(), *cell.parameters())

    def both_orders(run):
        hidden, last = run(x, s)
        loss = hidden.square().sum() + last.sin().sum()
        cheap = torch.autograd.grad(loss, leaves, retain_graph=True)
        first = torch.autograd.grad(loss, leaves, create_graph=True)
        return hidden, last, *cheap, *first, *torch.autograd.grad(sum(g.square().sum() for g in first), leaves)

    for one, other in zip(both_orders(cell.outputs), both_orders(lambda *a: Cell.outputs(cell, *a)), strict=True):
        torch.testing.assert_close(one, other)
    tangents = torch.randn_like(x), torch.randn_like(s)
    one, other = (torch.func.jvp(run, (x, s), tangents) for run in (cell.outputs, lambda *a: Cell.outputs(cell, *a)))
    torch.testing.assert_close(one, other)


def test_a_linearised_lstm_does_not_run_as_torchs():
    cell, x, s = made("lstm")
    surrogate = cell.first_order()
    hidden, last = surrogate.outputs(x, s)
    states = surrogate.unroll(x, s)
    torch.testing.assert_close((hidden, last), (states[1:, :, D:], states[-1]))
    assert not torch.allclose(hidden, cell.outputs(x, s)[0], atol=1e-3)


@pytest.mark.parametrize("lengths", [None, [7, 3]])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_network_of_lstms_is_torchs(lengths, bidirectional):
    torch.manual_seed(0)
    mine = recurrent("lstm", E, D, num_layers=2, bidirectional=bidirectional).double()
    theirs = nn.LSTM(E, D, num_layers=2, bidirectional=bidirectional).double()
    for ours, its in zip(mine.parameters(), theirs.parameters(), strict=True):
        its.data.copy_(ours.data)
    x = torch.randn(T, B, E).double()
    given = x if lengths is None else nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths))
    outputs, (h, c) = mine(x, lengths=lengths)
    expected, (h_n, c_n) = theirs(given)
    expected = expected if lengths is None else nn.utils.rnn.pad_packed_sequence(expected)[0]
    torch.testing.assert_close((outputs, h, c), (expected, h_n, c_n))


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu", "sigmoid"])
def test_every_activation_of_an_elman_network_has_its_kernel(nonlinearity):
    check_cell(lambda: Elman(E, D, nonlinearity=nonlinearity))


@pytest.mark.parametrize("name", CELLS.names())
def test_a_batch_of_gradients_is_that_of_each(name):
    torch.manual_seed(0)
    network, x = recurrent(name, E, 2 * E).double(), torch.randn(3, 1, E).double()
    run = lambda x: network(x)[0]
    each = torch.autograd.functional.jacobian(run, x)
    torch.testing.assert_close(torch.autograd.functional.jacobian(run, x, vectorize=True), each)
    outputs = run(x.requires_grad_())
    units = torch.eye(outputs.numel()).double().view(-1, *outputs.shape)
    mapped = torch.vmap(lambda unit: torch.autograd.grad(outputs, x, unit, retain_graph=True)[0])(units)
    torch.testing.assert_close(mapped.view_as(each), each)
    assert each.any()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:.torch.jit.trace:DeprecationWarning")
@pytest.mark.parametrize("name", CELLS.names())
def test_a_trace_gives_what_the_network_gives(name):
    torch.manual_seed(0)
    network, x = recurrent(name, E, 2 * E, bidirectional=True), torch.randn(3, B, E)  # each step is traced
    traced = torch.jit.trace(network, (x,), check_trace=False)
    torch.testing.assert_close(traced(2 * x), network(2 * x))
    assert not torch.allclose(traced(2 * x)[0], network(x)[0])  # the control: it reads its argument


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gru", "lstm", "mi_lstm", "mmrnn", "approx_gru"])
def test_an_exported_network_gives_what_the_network_gives(name):
    torch.manual_seed(0)
    network, x = recurrent(name, E, D), torch.randn(3, B, E)  # each step is exported
    exported = torch.export.export(network, (x,), strict=False).module()
    torch.testing.assert_close(exported(2 * x), network(2 * x))


@pytest.mark.parametrize("name", CELLS.names())
def test_inputs_that_were_made_in_inference_mode_are_read_without_gradients(name):
    torch.manual_seed(0)
    network = recurrent(name, E, 2 * E)
    with torch.inference_mode():
        x = torch.randn(T, B, E)
        expected = network(x)
    with torch.no_grad():
        torch.testing.assert_close(network(x), expected)


def test_networks_of_kernels_copy_and_run_without_gradient():
    for name in KERNELS:
        cell, x, s = made(name)
        with torch.no_grad():
            states = copy.deepcopy(cell).unroll(x, s)
        torch.testing.assert_close(states, Cell.unroll(cell, x, s))
        assert not states.requires_grad
    assert isinstance(made("lstm")[0], LSTM)
