"""What a step of the user's own detaches, or computes without gradients, moves as the rest does."""

from __future__ import annotations

from functools import partial

import pytest
import torch

import unrolled
from layered_steps import SERIES, D, judge_transposed, model_with
from unrolled.cells.ray import MatrixFreeRay

pytestmark = pytest.mark.filterwarnings("ignore:To copy construct from a tensor")  # as it warns without us


def without_gradients(z):
    with torch.no_grad():
        gate = torch.sigmoid(z)
    return z * gate


def in_place(z):
    gate = torch.sigmoid(z)
    gate.detach_()
    return z * gate


def in_a_copy(z):
    gate = torch.sigmoid(z)
    with torch.no_grad():
        kept = gate.clone()
        kept *= 1.0
    return z * kept


@torch.inference_mode()
def inferred(z):
    return torch.sigmoid(z)


def copied(z):
    gate = torch.zeros_like(z)
    gate.copy_(torch.sigmoid(z))
    return z * gate


DETACHED = {
    "detach": lambda z: z * torch.sigmoid(z).detach(),
    "data": lambda z: z * torch.sigmoid(z).data,
    "no_grad": without_gradients,
    "inference mode": lambda z: z * inferred(z),
    "copied": copied,
    "detach_": in_place,
    "no_grad, in place": in_a_copy,
    "a copy by torch.tensor": lambda z: z * torch.tensor(torch.sigmoid(z)),
    "a copy by its name": lambda z: z * torch.as_tensor(data=torch.sigmoid(z)),
    "a copy by new_tensor": lambda z: z * z.new_tensor(torch.sigmoid(z)),
    "twice": lambda z: (z * torch.sigmoid(z).detach()).detach(),
}


STRAIGHT_THROUGH = {"straight through": lambda z: z * (torch.tanh(z) + (torch.sigmoid(z) - torch.tanh(z)).detach())}
"""Its factor is no gate, so by shares it has other n-grams."""


def swish(z):
    return z * torch.sigmoid(z)


@pytest.mark.quick_diagonal(4)  # quick: every name, every expansion, both orders
@pytest.mark.parametrize("max_order", [None, 1])
@pytest.mark.parametrize("expansion", ["secant", "shares", "shares(0.25)"])
@pytest.mark.parametrize("name", DETACHED)
def test_n_grams_are_those_of_the_same_numbers_that_are_not_detached(name, expansion, max_order):
    """Up to an order, n-grams are found by the transposed step, else by the step itself."""
    found, expected = (
        unrolled.explain(model_with(each), SERIES[:1], target=1, expansion=expansion, max_order=max_order)
        for each in (DETACHED[name], swish)
    )
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, rtol=0, atol=1e-12)
    assert abs(found.ledger.remainder) < 1e-12
    assert abs(found.ledger.ngrams) > 0.01


@pytest.mark.slow_diagonal(2)
@pytest.mark.quick_diagonal(4)  # quick: every name, every expansion, both orders
@pytest.mark.parametrize("max_order", [None, 1])
@pytest.mark.parametrize("expansion", ["path", "operating", "zero", "taylor(2)"])
@pytest.mark.parametrize("name", DETACHED)
def test_derivatives_are_those_of_the_same_numbers_that_are_not_detached(name, expansion, max_order):
    found, expected = (
        unrolled.explain(model_with(each), SERIES[:1], target=1, expansion=expansion, max_order=max_order)
        for each in (DETACHED[name], swish)
    )
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, rtol=0, atol=1e-12)
    assert found.notes == expected.notes
    assert abs(found.ledger.ngrams) > 0.01


@pytest.mark.parametrize("name", ["detach", "data", "no_grad", "a copy by torch.tensor"])
def test_the_jacobian_is_that_of_finite_differences(name):
    """The judge runs the step alone; autograd's own Jacobian, which stops at what is detached, is the control."""
    cell, (x, s) = model_with(DETACHED[name]).cell, (SERIES[0, :1], torch.full((1, D), 0.3, dtype=torch.float64))
    small, rows = 1e-6 * torch.eye(D, dtype=torch.float64), x.expand(D, -1)
    with torch.no_grad():
        judge = (cell(rows, s + small) - cell(rows, s - small)).T / 2e-6
        found = MatrixFreeRay(cell, x[None], x[None], torch.stack((s, s))).at(1.0)
        images = found.apply(torch.eye(D, dtype=torch.float64)[:, None, None])[:, 0, 0].T
    torch.testing.assert_close(images, judge, rtol=0, atol=1e-8)
    torch.testing.assert_close(found.dense()[0][0, 0], judge, rtol=0, atol=1e-8)
    stopped = torch.autograd.functional.jacobian(partial(cell, x), s)[0, :, 0]
    assert (stopped - judge).abs().max() > 1e-3


@pytest.mark.parametrize("share", [None, 0.75])
@pytest.mark.parametrize("name", DETACHED | STRAIGHT_THROUGH)
def test_the_transposed_step_is_the_transpose_of_the_step(name, share):
    assert abs(judge_transposed(model_with((DETACHED | STRAIGHT_THROUGH)[name]).cell, share)) > 0.01
