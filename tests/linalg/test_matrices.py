"""The matrices of a small layer, stored: what its step gives, and where they are too many to be."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch

from unrolled.cells import CELLS
from unrolled.cells.ray import MatrixFreeRay
from unrolled.held_forward.step_operator import HeldStep
from unrolled.linalg.matrices import Matrices
from unrolled.linalg.quadrature import gauss_legendre


@pytest.mark.parametrize("share", [None, 0.75])
def test_the_matrices_of_a_small_layer_are_those_that_its_step_gives(share):
    torch.manual_seed(1)
    cell, x = CELLS.get("lstm")(2, 6).double().requires_grad_(False), torch.randn(4, 3, 2, dtype=torch.float64)
    held = HeldStep(cell.step, x + 0.4, x, cell.unroll(x)[:-1], share)
    stored, run = held.ready(stored=True), held.ready(stored=False)
    assert isinstance(stored, Matrices)
    assert run is held
    state, inputs = torch.randn(5, 4, 3, cell.state_size).double(), torch.randn(5, 4, 3, 2).double()
    step = stored.at(2), run.at(2)
    cases = [((stored, run), state, inputs), ((stored, run), state[0], inputs[0]), (step, state[:, 2], inputs[:, 2])]
    for (found, expected), s, x in cases:  # the second without columns
        close = partial(torch.testing.assert_close, rtol=1e-10, atol=1e-12)
        close(found.apply(s, x), expected.apply(s, x))
        close(found.apply(s), expected.apply(s))
        close(found.apply_inputs(x[..., 1:], first=1), expected.apply_inputs(x[..., 1:], first=1))
        close(found.apply_transpose(s), expected.apply_transpose(s))
        close(found.apply_transpose(s, with_inputs=False)[0], expected.apply_transpose(s)[0])
        close(found.dense(), expected.dense())
        with pytest.raises(AssertionError):
            close(found.apply(s, x), expected.apply(s))  # the control


def test_the_matrices_of_a_mean_along_rays_are_those_that_its_quadrature_gives():
    torch.manual_seed(1)
    cell, x = CELLS.get("gru")(2, 6).double().requires_grad_(False), torch.randn(4, 3, 2, dtype=torch.float64)
    ray = MatrixFreeRay(cell.step, x + 0.4, x, cell.unroll(x), stored=True)
    run = replace(ray.operator(gauss_legendre(6)), by_quadrature=True)
    stored = ray.small_as_matrices(run)
    assert isinstance(stored, Matrices)
    assert stored.by_quadrature
    torch.testing.assert_close(stored.dense(), run.dense(), rtol=1e-10, atol=1e-12)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(stored.dense(), ray.at(1.0).dense(), rtol=1e-10, atol=1e-12)  # the control
    apart = MatrixFreeRay(cell.step, x + 0.4, x, cell.unroll(x), stored=False)
    assert apart.small_as_matrices(run) is run


def test_a_large_layer_and_a_step_of_single_rows_store_no_matrices():
    large = torch.zeros(1, 3, 200)
    held = HeldStep(lambda x, s: torch.tanh(x + s), large, large, large)
    assert held.ready(stored=True) is held
    small = replace(held, origin=large[..., :9], inputs=large[..., :9], state=large[..., :9])
    assert isinstance(small.ready(stored=True), Matrices)
    assert small.ready(stored=False) is small  # that of a cell that runs its rows one after another


def test_a_small_state_with_a_long_input_stores_no_matrices():
    """They are few numbers, but the unit vectors of all rows are many: the squared length of the input for each."""
    rows, long = torch.zeros(1, 30, 1), torch.zeros(1, 30, 500)
    held = HeldStep(lambda x, s: torch.tanh(x[..., :1] + s), long, long, rows)
    assert held.ready(stored=True) is held
    short = replace(held, origin=long[..., :50], inputs=long[..., :50])  # the control
    assert isinstance(short.ready(stored=True), Matrices)
