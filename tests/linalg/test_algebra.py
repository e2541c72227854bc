"""Averages, mean slopes and the partition, on functions whose answer is known."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unrolled.errors import UsageError
from unrolled.linalg.activations import RELU, SIGMOID, TANH, mean_slope, slope_from_zero
from unrolled.linalg.adaptive_quadrature import partition
from unrolled.linalg.quadrature import gauss_legendre, taylor_sum


def test_gauss_legendre_is_exact_up_to_its_degree_and_not_beyond():
    for nodes in (1, 2, 5):
        for degree in range(2 * nodes):
            mean = gauss_legendre(nodes)(lambda a, p=degree: {"J": torch.tensor(float(a), dtype=torch.float64) ** p})
            assert float(mean["J"]) == pytest.approx(1 / (degree + 1), abs=1e-14)
        mean = gauss_legendre(nodes)(lambda a, p=2 * nodes: {"J": torch.tensor(float(a), dtype=torch.float64) ** p})
        assert abs(float(mean["J"]) - 1 / (2 * nodes + 1)) > 1e-8


def test_taylor_sum_of_exp():
    x = torch.tensor([0.3, -1.0], dtype=torch.float64)
    for order in range(1, 6):
        total = taylor_sum(order)(lambda a: {"J": torch.exp(a * x)})["J"]
        expected = sum(x**j / math.factorial(j + 1) for j in range(order))
        torch.testing.assert_close(total, expected)


@pytest.mark.parametrize("activation", [TANH, SIGMOID, RELU], ids=lambda a: a.name)
@given(start=st.floats(-4, 4), width=st.sampled_from([0.0, 1e-14, 1e-9, 1e-5, 7e-4, 1e-2, 1.0, 3.0]))
def test_mean_slope_reproduces_the_rise(activation, start, width):
    a = torch.tensor([start], dtype=torch.float64)
    b = a + width
    slope = mean_slope(activation, a, b)
    assert float((activation(a) + slope * (b - a) - activation(b)).abs()) <= 4e-16
    assert -1e-9 <= float(slope) <= 1 + 1e-9


@pytest.mark.parametrize("activation", [TANH, SIGMOID, RELU], ids=lambda a: a.name)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_mean_slope_has_no_jump_between_series_and_quotient(activation, dtype):
    """Against float64, for steps from nothing to the largest numbers, where tanh and the sigmoid are flat."""
    widths = torch.cat((torch.zeros(1), torch.logspace(-12, 2, 400), torch.tensor([1e12, 1e30]))).to(dtype)
    start = torch.tensor([[-3.0], [-0.2], [0.0], [1.5]], dtype=dtype)
    stop = start + widths
    slope = mean_slope(activation, start, stop)
    step = stop.double() - start.double()
    middle = start.double() + 0.5 * step
    exact = (activation(stop.double()) - activation(start.double())) / step
    local = activation.slope(middle, activation(middle))
    expected = torch.where(step.abs() < 1e-5, local, exact)
    assert bool(torch.isfinite(slope).all())
    allowed = 1e-9 if dtype == torch.float64 else 1e-5
    assert float((slope.double() - expected).abs().max()) < allowed
    naive = (activation(stop) - activation(start)) / (stop - start)  # the control: a quotient loses its digits
    assert activation is RELU or not bool(((naive.double() - expected).abs() < allowed).all())


@pytest.mark.parametrize("activation", [TANH, SIGMOID], ids=lambda a: a.name)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_slope_from_zero_is_finite_for_the_smallest_numbers(activation, dtype):
    least = torch.finfo(dtype).tiny
    small = torch.tensor([least, 0.25 * least, 2 * least, 0.0], dtype=dtype)
    z = torch.cat((small, -small))
    slope = slope_from_zero(activation, z, activation(z))
    torch.testing.assert_close(slope, torch.full_like(z, activation.at_zero[1]))
    assert slope_from_zero(activation, z * torch.nan, activation(z * torch.nan)).isnan().all()  # the control


def test_first_order():
    x = torch.linspace(-1, 1, 5)
    torch.testing.assert_close(SIGMOID.first_order()(x), 0.5 + x / 4)
    torch.testing.assert_close(TANH.first_order()(x), x)
    with pytest.raises(UsageError, match="relu has no slope at 0"):
        RELU.first_order()


def integral(function, slope, pieces=64):
    """What the partition's nodes make of G', and how many nodes it took."""

    def look(alpha):
        return function(alpha), slope(alpha)

    scale = torch.ones(len(function(torch.zeros(1))), dtype=torch.float64)
    rounds = partition(lambda a: look(a), len(scale), scale, 1e-14, pieces)
    return sum(w * slope(a) for a, w in rounds), len(rounds)


def test_partition_looks_once_at_a_linear_function():
    total, rounds = integral(lambda a: 3 * a + 1, lambda a: torch.full_like(a, 3.0))
    assert float(total) == pytest.approx(3)
    assert rounds == 1


def test_partition_finds_kinks():
    kinks = torch.tensor([0.13, 0.5, 0.77], dtype=torch.float64)
    total, rounds = integral(
        lambda a: (a[:, None] - kinks).clamp_min(0).sum(1), lambda a: (a[:, None] > kinks).double().sum(1)
    )
    assert float(total) == pytest.approx(float((1 - kinks).sum()), abs=1e-13)
    coarse, _ = integral(
        lambda a: (a[:, None] - kinks).clamp_min(0).sum(1),
        lambda a: (a[:, None] > kinks).double().sum(1),
        pieces=1,
    )
    assert abs(float(coarse) - float((1 - kinks).sum())) > 1e-3  # the control: one piece is not enough
    assert rounds < 200


def test_partition_treats_examples_apart():
    steep = torch.tensor([0.0, 40.0], dtype=torch.float64)
    look = lambda a: (torch.tanh(steep * a) + a, steep / torch.cosh(steep * a) ** 2 + 1)
    rounds = partition(look, 2, torch.ones(2, dtype=torch.float64), 1e-13, 64)
    total = sum(w * look(a)[1] for a, w in rounds)
    torch.testing.assert_close(total, look(torch.ones(2, dtype=torch.float64))[0], rtol=0, atol=1e-12)


def test_partition_does_not_cut_at_rounding():
    """A logit of many parts rounds worse than its own size says; a hundred small kinks are no rounding."""
    total, rounds = integral(
        lambda a: torch.sin(3 * a) + 1e-13 * torch.sin(1e9 * a), lambda a: 3 * torch.cos(3 * a), pieces=256
    )
    assert rounds < 200
    assert float(total) == pytest.approx(math.sin(3), abs=1e-12)

    places = torch.linspace(0.1, 0.99, 100, dtype=torch.float64) ** 2
    total, rounds = integral(
        lambda a: (a[:, None] - places).clamp_min(0).sum(1), lambda a: (a[:, None] > places).double().sum(1), pieces=256
    )
    assert rounds > 500
    assert float(total) == pytest.approx(float((1 - places).sum()), abs=1e-12)
