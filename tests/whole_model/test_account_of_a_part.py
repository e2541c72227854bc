"""A part of a model that is the source of value: what was computed before it contributes nothing."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UnknownNameError, UsageError
from whole_model_zoo import D, E, ids


def test_what_was_before_the_source_contributes_nothing():
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.of_input, self.of_state = nn.Linear(E, D), nn.Linear(D, D)

        def forward(self, xs):
            h = xs.new_zeros(len(xs), D)
            for x in xs.unbind(1):
                h = torch.tanh(self.of_input(x) + self.of_state(h))  # at first a bias alone, which begins a row
            return h

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.loop, self.head = nn.Embedding(20, E), Loop(), nn.Linear(D, 2)

        def forward(self, tokens):
            return self.head(self.loop(self.embed(tokens)))

    found = unrolled.account(Whole().double().eval(), ids(3, 5), target=1, of="loop")
    assert float(found.remainder.abs().max()) < 1e-12
    assert list(found.biases) == ["head.bias"]
    assert not found.constants


def test_behind_a_module_that_standardises_numbers_count_from_the_mean():
    class Scale(nn.Module):
        def forward(self, xs):
            return (xs - torch.tensor([15.0, 3.0])) / torch.tensor([4.0, 0.01])

    class Forecast(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.rnn, self.head = Scale(), nn.GRU(2, D, batch_first=True), nn.Linear(D, 1)

        def forward(self, xs):
            return self.head(self.rnn(self.scale(xs))[0][:, -1])

    torch.manual_seed(0)
    model, series = Forecast().double().eval(), torch.randn(1, 6, 2).double() * 4 + 15
    series[:, :, 1] = 3  # always the same, and its own mean
    (behind,) = unrolled.account(model, series, target=0, of="scale").features.values()
    assert behind.shape == (1, 6, 2)
    assert behind[:, :, 0].abs().min() > 0
    assert not behind[:, :, 1].any()
    (whole,) = unrolled.account(model, series, target=0).features.values()
    assert whole[:, :, 1].abs().min() > behind.abs().max()  # the control: from zero


class Graph(nn.Module):
    """Mixes what a layer gives each node by a graph that is an argument."""

    def __init__(self, arrange=lambda nodes: nodes):
        super().__init__()
        torch.manual_seed(0)
        self.part, self.head = nn.Sequential(nn.Linear(4, 5), Arranged(arrange)), nn.Linear(5, 2)

    def forward(self, nodes, graph):
        mixed = torch.sparse.mm(graph, self.part(nodes)) if graph.layout != torch.strided else graph @ self.part(nodes)
        return self.head(torch.tanh(mixed))


class Arranged(nn.Module):
    def __init__(self, arrange):
        super().__init__()
        self.arrange = arrange

    def forward(self, nodes):
        return self.arrange(nodes)


LAYOUTS = {
    "coo": torch.Tensor.to_sparse,
    "csr": torch.Tensor.to_sparse_csr,
    "csc": torch.Tensor.to_sparse_csc,
}
NODES, EDGES = torch.linspace(-1, 1, 12).reshape(3, 4), torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0, 0.2, 0.8]])


@pytest.mark.filterwarnings("ignore:Sparse CSR")  # torch warns once that it is in beta
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_sparse_argument_beside_a_part_is_a_factor(layout):
    found = unrolled.account(Graph(), NODES, LAYOUTS[layout](EDGES), target=1, of="part")
    dense = unrolled.account(Graph(), NODES, EDGES, target=1, of="part")
    assert found.closes
    torch.testing.assert_close(found.features["part"], dense.features["part"])
    torch.testing.assert_close(found.output, dense.output)


@pytest.mark.filterwarnings("ignore:Sparse CSR")  # torch warns once that it is in beta
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_sparse_argument_of_a_whole_model_is_refused(layout):
    """The control: there its numbers would be sources."""
    graph = LAYOUTS[layout](EDGES)
    with pytest.raises(UsageError, match=r"argument 1 is sparse; pass a dense tensor: x\.to_dense\(\)$"):
        unrolled.account(Graph(), NODES, graph, target=1)
    with pytest.raises(UsageError, match=r"argument graph is sparse; pass a dense tensor: x\.to_dense\(\)$"):
        unrolled.account(Graph(), NODES, graph=graph, target=1)
    *_, whole = unrolled.check(Graph(), NODES, graph, target=1).parts
    assert not whole.opens


@pytest.mark.filterwarnings("ignore:Sparse CSR")  # torch warns once that it is in beta
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_part_that_returns_a_sparse_tensor_is_refused(layout):
    with pytest.raises(UsageError, match=r"part returns a sparse tensor; choose a submodule that returns a dense one$"):
        unrolled.account(Graph(LAYOUTS[layout]), NODES, EDGES, target=1, of="part")


def test_a_complex_argument_beside_a_part_is_a_factor():
    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.part, self.head = nn.Linear(4, 5), nn.Linear(5, 2)

        def forward(self, nodes, factor):
            return self.head(torch.tanh(torch.real(self.part(nodes) * factor)))

    factor = torch.complex(torch.linspace(1, 2, 5), torch.linspace(-1, 1, 5))
    found = unrolled.account(Turned(), NODES, factor, target=1, of="part")
    of_real = unrolled.account(Turned(), NODES, factor.real.contiguous(), target=1, of="part")
    assert found.closes
    torch.testing.assert_close(found.features["part"], of_real.features["part"])
    with pytest.raises(UsageError, match="argument 1 is complex"):  # the control: there its numbers would be sources
        unrolled.account(Turned(), NODES, factor, target=1)


def test_a_module_in_the_place_of_its_path_is_answered_by_the_path():
    model = nn.Sequential(nn.Embedding(20, E), nn.Sequential(nn.Flatten(), nn.Linear(3 * E, 2)))
    with pytest.raises(UsageError, match=r"^of is a Linear; expected .* which is of='1\.1' for this one$"):
        unrolled.account(model, ids(1, 3), target=1, of=model[1][1])
    (part,) = unrolled.account(model, ids(1, 3), target=1, of="1.1").features.values()
    assert part.shape == (1, 2)
    with pytest.raises(UnknownNameError, match=r"^unknown submodule Linear"):  # one that the model does not hold
        unrolled.account(model, ids(1, 3), target=1, of=nn.Linear(2, 2))
    with pytest.raises(UnknownNameError, match=r"^unknown submodule Sequential\(…; expected one of: 0, 1, 1\.0, 1\.1$"):
        unrolled.account(model, ids(1, 3), target=1, of=nn.Sequential(nn.Linear(2, 2)))
    with pytest.raises(UsageError, match=r"^of is a Sequential; .*, and this is the model itself: leave it out$"):
        unrolled.account(model, ids(1, 3), target=1, of=model)
