"""A step whose state has a row for each node of a graph, or a column for each place, is found as any other step."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import unrolled
from unrolled.errors import UsageError

NODES, READ, KEPT = 3, 2, 4
SERIES = torch.randn(2, 3, NODES, READ, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


class Diffusion(nn.Module):
    """The gated unit of a diffusion convolutional recurrent network, whose products go over a graph."""

    def __init__(self) -> None:
        super().__init__()
        self.gates, self.candidate = nn.Linear(2 * (READ + KEPT), 2 * KEPT), nn.Linear(2 * (READ + KEPT), KEPT)
        self.register_buffer("graph", torch.rand(NODES, NODES).softmax(dim=1))

    def over_graph(self, layer: nn.Linear, x: Tensor, h: Tensor) -> Tensor:
        both = torch.cat([x, h], dim=-1)
        return layer(torch.cat([both, self.graph @ both], dim=-1))

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        r, u = torch.sigmoid(self.over_graph(self.gates, x, h)).chunk(2, dim=-1)
        return u * h + (1 - u) * torch.tanh(self.over_graph(self.candidate, x, r * h))


class Flat(Diffusion):
    """The same with the nodes side by side."""

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return super().forward(x.unflatten(1, (NODES, READ)), h.unflatten(1, (NODES, KEPT))).flatten(1)


class Traffic(nn.Module):
    def __init__(self, cell: type[Diffusion]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.head = cell(), nn.Linear(NODES * KEPT, 2)
        self.double()

    def forward(self, series: Tensor) -> Tensor:
        flat, h = isinstance(self.cell, Flat), series.new_zeros(len(series), NODES, KEPT)
        h = h.flatten(1) if flat else h
        for x in series.unbind(1):
            h = self.cell(x.flatten(1) if flat else x, h)
        return self.head(h.flatten(1))


@pytest.mark.parametrize("expansion", ["secant", "shares"])
def test_a_step_over_a_graph_has_the_n_grams_of_the_step_over_all_its_nodes(expansion):
    found, expected = (
        unrolled.explain_batch(Traffic(cell), SERIES, target=1, expansion=expansion) for cell in (Diffusion, Flat)
    )
    for one, other in zip(found, expected, strict=True):
        assert len(one.sequences) == 1
        torch.testing.assert_close(one.triangle.contribution_band, other.triangle.contribution_band)
        torch.testing.assert_close(one.triangle.score_band, other.triangle.score_band)
        assert abs(one.ledger.remainder) < 1e-12
    alone = unrolled.explain(Traffic(Diffusion), SERIES[1:], target=1, expansion=expansion)
    torch.testing.assert_close(alone.token_scores, found[1].token_scores)
    assert not torch.allclose(found[0].token_scores, found[1].token_scores)  # the control


class OverPlaces(Diffusion):
    """The same with the features of a node as channels, before the nodes."""

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return super().forward(x.mT, h.mT).mT


def test_a_step_over_channels_has_the_n_grams_of_the_step_over_nodes():
    class Channels(Traffic):
        def forward(self, series: Tensor) -> Tensor:
            h = series.new_zeros(len(series), KEPT, NODES)
            for x in series.unbind(1):
                h = self.cell(x.mT, h)
            return self.head(h.mT.flatten(1))

    for one, other in zip(
        unrolled.explain_batch(Channels(OverPlaces), SERIES, target=1),
        unrolled.explain_batch(Traffic(Diffusion), SERIES, target=1),
        strict=True,
    ):
        torch.testing.assert_close(one.triangle.contribution_band, other.triangle.contribution_band)


class Whole(nn.Module):
    """A network that reads several steps at once; it may return its state alone."""

    def __init__(self, alone: bool) -> None:
        super().__init__()
        self.weight, self.alone = nn.Linear(READ + KEPT, KEPT), alone

    def forward(self, x: Tensor, h: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        states = []
        for each in x.unbind(1):
            h = torch.tanh(self.weight(torch.cat([each, h], dim=-1)))
            states.append(h)
        return h if self.alone else (torch.stack(states, dim=1), h)


@pytest.mark.parametrize("alone", [True, False])
def test_a_network_that_reads_sequences_is_no_step(alone):
    class ByParts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.head = Whole(alone), nn.Linear(KEPT, 2)

        def forward(self, series: Tensor) -> Tensor:
            h = series.new_zeros(len(series), KEPT)
            for part in series.split(2, dim=1):
                found = self.rnn(part, h)
                h = found if isinstance(found, Tensor) else found[1]
            return self.head(h)

    with pytest.raises(UsageError, match="no recurrent network in ByParts"):
        unrolled.explain(ByParts().double(), SERIES[:1, :, 0], target=1)


class GivenItsGraph(Diffusion):
    """The same, which is given its graph at each step."""

    def forward(self, x: Tensor, h: Tensor, graph: Tensor) -> Tensor:
        self.graph = graph
        return super().forward(x, h)


class GivenFirst(GivenItsGraph):
    """The same, which is given its graph in front of what it reads."""

    def forward(self, graph: Tensor, x: Tensor, h: Tensor) -> Tensor:
        return super().forward(x, h, graph)


class GivenBothWays(Diffusion):
    """The same, which is given the graph of either direction."""

    def forward(self, x: Tensor, h: Tensor, along: Tensor, against: Tensor) -> Tensor:
        self.graph = along - 0.5 * against
        return super().forward(x, h)


class GivenRates(Diffusion):
    """The same, whose state decays by rates of its units that it is given."""

    def forward(self, x: Tensor, h: Tensor, rates: Tensor) -> Tensor:
        return super().forward(x, h * rates)


class TrafficGivenItsGraph(Traffic):
    def __init__(self, cell: type[Diffusion]) -> None:
        super().__init__(cell)
        self.register_buffer("given", torch.rand(KEPT).double() if cell is GivenRates else self.cell.graph.clone())

    def forward(self, series: Tensor) -> Tensor:
        h = series.new_zeros(len(series), NODES, KEPT)
        for x in series.unbind(1):
            if isinstance(self.cell, GivenBothWays):
                h = self.cell(x, h, self.given, self.given.T)
            else:
                h = self.cell(self.given, x, h) if isinstance(self.cell, GivenFirst) else self.cell(x, h, self.given)
        return self.head(h.flatten(1))


@pytest.mark.parametrize("cell", [GivenItsGraph, GivenFirst, GivenBothWays, GivenRates])
def test_what_all_examples_read_may_be_as_long_as_there_are_examples(cell):
    model = TrafficGivenItsGraph(cell)
    series = torch.randn(len(model.given), 3, NODES, READ, generator=torch.Generator().manual_seed(1)).double()
    for expansion in ("secant", "shares", "operating"):
        together = unrolled.explain_batch(model, series, target=1, expansion=expansion)
        for one, alone in zip(together, series, strict=True):
            expected = unrolled.explain(model, alone[None], target=1, expansion=expansion)
            torch.testing.assert_close(one.triangle.contribution_band, expected.triangle.contribution_band)
            assert abs(one.ledger.remainder) < 1e-12


class Masked(Diffusion):
    """The same cell, which also reads a mask of each example."""

    def forward(self, x: Tensor, h: Tensor, mask: Tensor) -> Tensor:
        return mask[:, None, None] * super().forward(x, h) + (1 - mask[:, None, None]) * h


class TrafficWithMasks(Traffic):
    def forward(self, series: Tensor, masks: Tensor) -> Tensor:
        h = series.new_zeros(len(series), NODES, KEPT)
        for x, mask in zip(series.unbind(1), masks.unbind(1), strict=True):
            h = self.cell(x, h, mask)
        return self.head(h.flatten(1))


def test_numbers_of_each_example_stay_its_own():
    masks = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).double()
    found = unrolled.explain_batch(TrafficWithMasks(Masked), SERIES, masks, target=1)
    for each, mask in zip(found, masks, strict=True):
        assert torch.equal(each.token_scores.abs() > 1e-12, mask > 0)
