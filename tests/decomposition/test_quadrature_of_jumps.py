"""A quadrature gives up where more nodes change nothing, which a jump is the reason of, and not before."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import unrolled
from unrolled.cells.base import Cell
from unrolled.errors import ConvergenceError
from unrolled.expansions import path

SERIES = torch.randn(4, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


class Step(Cell):
    """A step around a function that it is given."""

    name = "step_around_a_function"

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__(3, 6)
        self.of_input, self.of_state = nn.Linear(3, 6), nn.Linear(6, 6, bias=False)
        self.function = function

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        return self.function(self.of_input(inputs), self.of_state(state))


def largest_kept(x: Tensor, s: Tensor) -> Tensor:
    """Keep the largest three: modules compete by what they remember, and without a state all of them are equal."""
    return torch.tanh(x + s) * torch.zeros_like(s).scatter(-1, s.topk(3, dim=-1).indices, 1.0)


def steep(x: Tensor, s: Tensor) -> Tensor:
    return torch.tanh(12 * (x + s))


def jump_beside_steep(x: Tensor, s: Tensor) -> Tensor:
    """A jump of the first example, and of the other a slope that needs many nodes."""
    first = torch.arange(x.shape[-2])[:, None] == 0
    return torch.where(first, largest_kept(x, s), steep(x, s))


def nodes_taken(
    monkeypatch: pytest.MonkeyPatch, function: Callable[[Tensor, Tensor], Tensor]
) -> tuple[list[int], object]:
    """Decompose by path; return the numbers of nodes that were tried, and the vectors or the error."""
    torch.manual_seed(0)
    cell, tried = Step(function).double(), []
    taken = path.gauss_legendre
    with monkeypatch.context() as patched:
        patched.setattr(path, "gauss_legendre", lambda n: (tried.append(n), taken(n))[1])
        try:
            return tried, unrolled.decompose(cell, SERIES, expansion="path").vectors()
        except ConvergenceError as error:
            return tried, error


def test_more_nodes_do_not_change_what_a_jump_leaves_out(monkeypatch):
    tried, gave_up = nodes_taken(monkeypatch, largest_kept)
    assert tried == [6, 12, 24]
    assert gave_up.error > 0.01
    monkeypatch.setattr(path, "SETTLED", 100)
    tried, at_last = nodes_taken(monkeypatch, largest_kept)
    assert tried == [6, 12, 24, 48, 96, 192]
    assert gave_up.error == pytest.approx(at_last.error, abs=1e-6)
    (g, one), (h, other) = gave_up.expanded, at_last.expanded
    torch.testing.assert_close(g, h, rtol=0, atol=0)
    drawn = torch.randn(1, *g.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(one.apply(drawn), other.apply(drawn), rtol=0, atol=1e-5)


def test_a_steep_step_has_all_nodes_that_it_needs(monkeypatch):
    tried, vectors = nodes_taken(monkeypatch, steep)
    assert len(tried) > 3
    assert isinstance(vectors, Tensor)
    beside, gave_up = nodes_taken(monkeypatch, jump_beside_steep)  # a jump of one example does not stop the others
    assert isinstance(gave_up, ConvergenceError)
    assert len(beside) > len(tried)


def test_at_a_large_tolerance_a_kink_has_all_nodes_that_it_needs(monkeypatch):
    """The slope of relu jumps on the way: an error near the tolerance falls slowly, and by less than the tolerance."""
    torch.manual_seed(5)
    cell = Step(lambda x, s: torch.relu(x + s)).double()
    series = torch.randn(4, 1, 3, dtype=torch.float64)
    assert unrolled.decompose(cell, series, expansion="path", tolerance=0.01).vectors().isfinite().all()
    monkeypatch.setattr(path, "UNCHANGED", torch.inf)  # the control: what the tolerance accepts counts as no change
    with pytest.raises(ConvergenceError):
        unrolled.decompose(cell, series, expansion="path", tolerance=0.01)
