"""Captured passes: the graph cache with a stand-in for graphs on any machine, and real graphs on a GPU."""

from __future__ import annotations

import copy

import pytest
import torch

from unrolled.cells import CELLS, recurrent
from unrolled.kernels.cuda_graphs import GraphCache, cuda_graphs, current_graph_cache

E, D, B, T = 3, 4, 2, 5
CAPTURED = ("elman", "gru", "gru_before", "mi_gru", "mi_lstm", "mi_rnn", "mlstm", "mmlstm", "mmrnn", "mrnn")


class StandIn:
    """Replays a pass on a CPU, on the memory that it was captured with, as a CUDA graph does."""

    def __init__(self, run, tensors):
        self.run, self.tensors, self.results, self.replays = run, tensors, run(*tensors), 0

    def __call__(self):
        self.replays += 1
        for mine, new in zip(self.results, self.run(*self.tensors), strict=True):
            if mine is not None:
                mine.copy_(new.clone())


def stand_ins(max_size=32):
    return GraphCache(max_size, "cpu", StandIn)


def learn(network, x):
    """Compute what a training step needs: the outputs, and the gradients of inputs and weights."""
    x = x.detach().requires_grad_()
    outputs = network(x)[0]
    return outputs.detach(), *torch.autograd.grad(outputs.square().sum(), (x, *network.parameters()))


def same(one, other):
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", CAPTURED)
def test_captured_passes_compute_what_passes_compute(name):
    torch.manual_seed(0)
    network, graphs = recurrent(name, E, D).double(), stand_ins()
    inputs = [torch.randn(T, B, E).double() for _ in range(3)]
    expected = [learn(network, x) for x in inputs]
    with cuda_graphs(graphs):
        found = [learn(network, x) for x in inputs]
    for one, other in zip(found, expected, strict=True):
        same(one, other)
    assert [captured.replays for _, captured in graphs.captured.values()] == [3, 3]  # forward and backward


def test_a_replay_reads_the_current_weights():
    network, x, graphs = recurrent("gru", E, D), torch.randn(T, B, E), stand_ins()
    with cuda_graphs(graphs):
        before = learn(network, x)
        with torch.no_grad():
            for weight in network.parameters():
                weight.mul_(2)
        after = learn(network, x)
    same(after, learn(network, x))
    assert not torch.allclose(after[0], before[0])
    assert len(graphs.captured) == 2


def test_every_shape_type_and_kernel_has_its_own_graph():
    graphs = stand_ins()
    with cuda_graphs(graphs), torch.no_grad():
        for network, x in (
            (recurrent("elman", E, D), torch.randn(T, B, E)),
            (recurrent("elman", E, D), torch.randn(T, B, E)),  # other weights, the same graph
            (recurrent("elman", E, D, nonlinearity="relu"), torch.randn(T, B, E)),
            (recurrent("elman", E, D), torch.randn(T, B + 1, E)),
            (recurrent("elman", E, D).double(), torch.randn(T, B, E).double()),
            (recurrent("mmrnn", E, D, choices=2), torch.randn(T, B, E)),
            (recurrent("mmrnn", E, D, choices=3), torch.randn(T, B, E)),
        ):
            found = network(x)[0]
            token = graphs.captured.copy()
            with cuda_graphs(GraphCache(0, "cpu", StandIn)):  # no graph may be captured
                torch.testing.assert_close(found, network(x)[0])
            assert graphs.captured == token
    assert len(graphs.captured) == 6


def test_passes_beyond_the_maximum_run_without_a_graph():
    network, graphs = recurrent("gru", E, D), stand_ins(max_size=2)
    x, longer = torch.randn(T, B, E), torch.randn(T + 1, B, E)
    expected = learn(network, longer)
    with cuda_graphs(graphs):
        learn(network, x)
        same(learn(network, longer), expected)
    assert len(graphs.captured) == 2


def test_the_backward_pass_uses_the_cache_of_the_forward_pass():
    network, x, graphs = recurrent("gru", E, D), torch.randn(T, B, E), stand_ins()
    with cuda_graphs(graphs):
        outputs = network(x)[0]
    outputs.sum().backward()  # outside of the block, as in a thread of autograd
    assert len(graphs.captured) == 2
    network.zero_grad()
    outputs = network(x)[0]
    with cuda_graphs(graphs):
        outputs.sum().backward()
    assert [captured.replays for _, captured in graphs.captured.values()] == [1, 1]


def test_a_second_derivative_is_not_captured():
    network, x, graphs = recurrent("gru", E, D).double(), torch.randn(T, B, E).double(), stand_ins()
    other = copy.deepcopy(network)

    def twice(network):
        leaf = x.clone().requires_grad_()
        (slope,) = torch.autograd.grad(network(leaf)[0].square().sum(), leaf, create_graph=True)
        sizes.append(len(graphs.captured))
        return torch.autograd.grad(slope.square().sum(), leaf)

    sizes = []
    with cuda_graphs(graphs):
        found = twice(network)
    assert sizes == [1]
    same(found, twice(other))


def test_a_graph_captured_in_inference_mode_serves_training():
    network, x, graphs = recurrent("gru", E, D), torch.randn(T, B, E), stand_ins()
    expected = learn(network, x)
    with cuda_graphs(graphs):
        with torch.inference_mode():
            network(x)
        same(learn(network, x), expected)
    assert len(graphs.captured) == 2


def test_two_forward_passes_may_precede_their_backward_passes():
    network, graphs = recurrent("gru", E, D), stand_ins()
    inputs = [torch.randn(T, B, E, requires_grad=True) for _ in range(2)]
    expected = [torch.autograd.grad(network(x)[0].square().sum(), x) for x in inputs]
    with cuda_graphs(graphs):
        outputs = [network(x)[0].square().sum() for x in inputs]
        found = [torch.autograd.grad(each, x) for each, x in zip(outputs, inputs, strict=True)]
    same([g for (g,) in found], [g for (g,) in expected])


@pytest.mark.parametrize("name", ["lstm", "mvma_g", "simplified_gru"])
def test_kernels_without_an_identity_are_not_captured(name):
    network, x, graphs = recurrent(name, E, D), torch.randn(T, B, E), stand_ins()
    expected = learn(network, x)
    with cuda_graphs(graphs):
        same(learn(network, x), expected)
    assert not graphs.captured


def test_nothing_is_captured_outside_of_a_block_or_on_another_device():
    network, x = recurrent("gru", E, D), torch.randn(T, B, E)
    with cuda_graphs() as graphs:
        assert current_graph_cache() is graphs
        network(x)
    assert not graphs.captured
    assert current_graph_cache() is None


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine")
@pytest.mark.parametrize("name", [name for name in CAPTURED if name in CELLS.names()])
def test_graphs_compute_what_passes_compute(name):
    torch.manual_seed(0)
    network = recurrent(name, E, D).double().cuda()
    inputs = [torch.randn(T, B, E).double().cuda() for _ in range(3)]
    expected = [learn(network, x) for x in inputs]
    with cuda_graphs() as graphs:
        found = [learn(network, x) for x in inputs]
    for one, other in zip(found, expected, strict=True):
        same(one, other)
    assert len(graphs.captured) == 2
