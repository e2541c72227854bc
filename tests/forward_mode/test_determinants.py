"""Determinants and products: their derivatives by forward mode, against definitions."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch

from unrolled.forward_mode.written_operations import with_written_operations

D = 4


def draw(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def derivative_along(function, start, change, order):
    """A derivative of function(start + alpha * change) at zero, by forward mode."""

    def along(alpha):
        return function(start + alpha * change)

    for _ in range(order):
        along = _derived(along)
    return along(torch.zeros((), dtype=start.dtype))


def _derived(function):
    return lambda alpha: torch.func.jvp(function, (alpha,), (torch.ones_like(alpha),))[1]


def by_permutations(a):
    """The determinant by its definition."""
    size = range(len(a))
    total = 0.0
    for order in permutations(size):
        sign = (-1.0) ** sum(order[i] > order[j] for i in size for j in range(i + 1, len(order)))
        product = sign
        for i in size:
            product = product * a[i, order[i]]
        total = total + product
    return total


@pytest.mark.parametrize("zeros", range(5))
@pytest.mark.parametrize("product", ["prod", "prod of all", "prod of an axis", "cumprod", "cumprod in place"])
def test_a_product_has_its_derivatives_where_factors_are_zero(product, zeros):
    """As the product of numbers one by one has them; torch's second or third one is not that."""
    functions = {
        "prod": lambda z: z.prod(),
        "prod of all": lambda z: torch.prod(z[None], 1, True)[0, 0],
        "prod of an axis": lambda z: torch.prod(torch.stack((z, z)), dim=-1)[1],
        "cumprod": lambda z: torch.cumprod(z[:, None], 0)[-1, 0],
        "cumprod in place": lambda z: z.clone().cumprod_(0)[-1],
    }
    start, change = draw(4, seed=9).index_fill(0, torch.arange(zeros), 0.0), draw(4, seed=10)

    true, found, plain = (
        [derivative_along(function, start, change, order).item() for order in range(5)]
        for function in (
            lambda z: z[0] * z[1] * z[2] * z[3],
            with_written_operations(functions[product]),
            functions[product],
        )
    )
    assert found == pytest.approx(true, abs=1e-12)
    assert abs(true[4]) > 1e-3
    if zeros >= 3:
        assert plain != pytest.approx(true)


@pytest.mark.parametrize(
    "values",
    [
        (1.0, 2.0, 3.0, 0.0),
        *(pytest.param(each, marks=pytest.mark.slow) for each in [(1.0, 0.0, 0.0, 2.0), (0.0, 0.0, 0.0, 0.0)]),
    ],
)
def test_a_determinant_that_is_zero_has_its_derivatives(values):
    """Of a matrix that has no inverse too, where torch's own first derivative is zero."""
    start, change = torch.diag(torch.tensor(values, dtype=torch.float64)), draw(D, D, seed=8)

    def derivative(function, order):
        return derivative_along(function, start, change, order).item()

    true = [derivative(by_permutations, order) for order in range(5)]
    written = with_written_operations(torch.linalg.det)
    assert [derivative(written, order) for order in range(5)] == pytest.approx(true, abs=1e-12)
    assert any(abs(each) > 0.1 for each in true)
    if values == (1.0, 2.0, 3.0, 0.0):
        assert derivative(torch.linalg.det, 1) != pytest.approx(true[1])


@pytest.mark.parametrize("size", [2, 5, 8, 9])
def test_a_determinant_in_float32_is_that_of_float64(size):
    """Of numbers far from zero too, where what Bird's algorithm sums cancels."""
    near, change = draw(size, size, seed=12), draw(size, size, seed=13)

    def derivatives(function, dtype, start=near + 10):
        written = with_written_operations(function)
        return [derivative_along(written, start.to(dtype), change.to(dtype), order).item() for order in range(3)]

    def of_sums(a):
        """Bird's algorithm on the matrix as it is."""
        found = a
        for _ in range(size - 1):
            diagonal = found.diagonal()
            found = (torch.diag(diagonal.sum() - diagonal.cumsum(0)) - found.triu(1)) @ a
        return found[0, 0]

    # how much float64 loses far from zero depends on how a processor sums
    assert derivatives(of_sums, torch.float64, near) == pytest.approx(derivatives(torch.det, torch.float64, near), 1e-6)
    true = derivatives(torch.det, torch.float64)
    assert derivatives(torch.det, torch.float32) == pytest.approx(true, 1e-3)
    if size >= 8:
        assert derivatives(of_sums, torch.float32) != pytest.approx(true, 1.0)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_the_logarithm_of_a_determinant_does_not_overflow(scale):
    """The determinant itself is not a number of float32 there."""
    z = (scale * draw(3, 5, 5, seed=14)).float()
    direction = scale * draw(3, 5, 5, seed=15)
    for function in (torch.linalg.slogdet, torch.slogdet, torch.Tensor.slogdet):
        written, of_torch = with_written_operations(lambda a, f=function: f(a).logabsdet), torch.linalg.slogdet
        torch.testing.assert_close(with_written_operations(function)(z)[0], of_torch(z).sign)
        torch.testing.assert_close(written(z), of_torch(z).logabsdet)
        found = torch.func.jvp(written, (z,), (direction.float(),))[1]
        true = torch.linalg.solve(z.double(), direction).diagonal(dim1=1, dim2=2).sum(1)  # by Jacobi's formula
        torch.testing.assert_close(found.double(), true, rtol=1e-3, atol=1e-3)
    assert torch.linalg.det(z).isfinite().all() == (scale == 1.0) or not torch.linalg.det(z).any()


def test_the_logarithm_of_a_complex_determinant_has_its_angle():
    z = torch.complex(draw(3, 4, 4, seed=16), draw(3, 4, 4, seed=17))
    assert with_written_operations(torch.logdet)(z).imag.abs().min() > 0.1
    torch.testing.assert_close(with_written_operations(torch.logdet)(z), torch.logdet(z))
