"""Products in a step of the user's own: by secant each factor has its Shapley value, by shares an equal part."""

from __future__ import annotations

from itertools import permutations
from math import prod

import pytest
import torch
import torch.nn.functional as F

import unrolled
from layered_steps import D, judge_same_n_grams, model_with
from unrolled.held_forward.increments.increments import SecantIncrements, ShareIncrements

W = torch.randn(D, D, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
SPARSE = W.relu().to_sparse()  # the edges of a graph


def turned(z):
    return z.flip(1) + 0.3


def rows(function):
    return lambda z: torch.stack([function(row) for row in z])


PAIRS = {
    "vecdot": (lambda z: z * torch.linalg.vecdot(z, turned(z))[:, None], lambda z: z * (z * turned(z)).sum(1)[:, None]),
    "dot": (rows(lambda r: r * torch.dot(r, r.flip(0))), lambda z: z * (z * z.flip(1)).sum(1, keepdim=True)),
    "inner": (lambda z: torch.inner(z, W), lambda z: z @ W.T),
    "outer": (rows(lambda r: torch.outer(r, r.flip(0)).sum(0)), lambda z: (z[:, :, None] * z.flip(1)[:, None]).sum(1)),
    "linalg.matmul": (lambda z: torch.linalg.matmul(z, W), lambda z: z @ W),
    "tensordot": (lambda z: torch.tensordot(z, W, dims=1), lambda z: z @ W),
    "multi_dot": (lambda z: torch.linalg.multi_dot([z, W, W.T]), lambda z: z @ (W @ W.T)),
    "kron": (rows(lambda r: torch.kron(r[:2], r[3:])), lambda z: (z[:, :2, None] * z[:, None, 3:]).reshape(len(z), D)),
    "cross": (
        lambda z: torch.linalg.cross(z[:, :3], z[:, 3:]).repeat(1, 2),
        lambda z: (z[:, [1, 2, 0]] * z[:, 3:][:, [2, 0, 1]] - z[:, [2, 0, 1]] * z[:, 3:][:, [1, 2, 0]]).repeat(1, 2),
    ),
    "bilinear": (
        lambda z: F.bilinear(z, turned(z), W.expand(D, D, D), W[0]),
        lambda z: ((z @ W)[:, None] @ turned(z)[:, :, None])[:, 0].expand(-1, D) + W[0],
    ),
    "einsum of one": (lambda z: z - torch.einsum("bi->b", z)[:, None], lambda z: z - z.sum(1, keepdim=True)),
    "einsum of three": (lambda z: torch.einsum("bi,ij,bj->bi", z, W, turned(z)), lambda z: z * (turned(z) @ W.T)),
    "addmv": (rows(lambda r: torch.addmv(r, W, r.flip(0))), lambda z: z + z.flip(1) @ W.T),
    "addmm": (lambda z: torch.addmm(z, turned(z), W, beta=0.5, alpha=2), lambda z: 0.5 * z + 2 * (turned(z) @ W)),
    "sparse.mm": (lambda z: torch.sparse.mm(SPARSE, z.T).T, lambda z: z @ W.relu().T),
    "a sparse matrix": (lambda z: (SPARSE @ z.T).T, lambda z: z @ W.relu().T),
    "sparse.addmm": (
        lambda z: torch.sparse.addmm(z.T, SPARSE, turned(z).T, beta=0.5, alpha=2).T,
        lambda z: 0.5 * z + 2 * (turned(z) @ W.relu().T),
    ),
    "addr": (rows(lambda r: torch.addr(W, r, r).sum(0)), lambda z: W.sum(0) + (z[:, :, None] * z[:, None]).sum(1)),
    "cumprod": (
        lambda z: z + torch.cumprod(turned(z)[:, :2], 1).repeat(1, 3),
        lambda z: z + torch.stack((turned(z)[:, 0], turned(z)[:, 0] * turned(z)[:, 1]), 1).repeat(1, 3),
    ),
}
"""An operation, and the same numbers by operations of other names."""
CASES = {(name, expansion) for name in PAIRS for expansion in ("secant", "shares")}
CASES.remove(("cumprod", "shares"))  # by shares a running product is held, as in an account


def quick(name, expansion):
    """Every operation once, by one of the two expansions in turn."""
    return (name, "shares") not in CASES or (list(PAIRS).index(name) % 2 == 0) == (expansion == "secant")


@pytest.mark.parametrize(
    ("name", "expansion"),
    [pytest.param(*case, marks=[] if quick(*case) else pytest.mark.slow) for case in sorted(CASES)],
)
def test_a_product_has_the_n_grams_of_the_same_numbers_written_otherwise(name, expansion):
    judge_same_n_grams([model_with(function) for function in PAIRS[name]], expansion)


THREE = {
    "einsum": lambda a, b, c: torch.einsum("bi,bi,bi->bi", a, b, c),
    "prod": lambda *each: torch.stack(each, 1).prod(1),
    "prod of all": lambda *each: torch.stack([one.prod() for one in torch.cat(each).unbind(1)])[None],
}


def three_lines():
    generator = torch.Generator().manual_seed(2)
    return torch.randn(2, 3, 1, 4, dtype=torch.float64, generator=generator)


def moved(mode, function, bases, ends):
    """What each factor adds to a product of the three."""
    found = []
    for kept in range(3):
        blocks = [
            mode.follow((end - base) * (place == kept), base, end)
            for place, (base, end) in enumerate(zip(bases, ends, strict=True))
        ]
        with mode:
            found.append(function(*blocks))
    return torch.stack(found)


@pytest.mark.parametrize("name", THREE)
def test_of_three_factors_each_has_its_shapley_value(name):
    bases, ends = three_lines()
    expected = torch.zeros(3, 1, 4, dtype=torch.float64)
    for order in permutations(range(3)):
        now = list(bases)
        for place in order:
            before = prod(now)
            now[place] = ends[place]
            expected[place] += (prod(now) - before) / 6
    found = moved(SecantIncrements(), THREE[name], bases, ends)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found.sum(0), prod(ends) - prod(bases))
    by_steps = moved(SecantIncrements(), lambda a, b, c: a * b * c, bases, ends)
    assert float((by_steps - expected).abs().max()) > 0.01  # the control: two at a time, the order matters


@pytest.mark.parametrize("name", THREE)
def test_by_shares_each_of_three_contents_has_a_third(name):
    _, ends = three_lines()
    found = moved(ShareIncrements(), THREE[name], torch.zeros_like(ends), ends)
    torch.testing.assert_close(found, (prod(ends) / 3).expand(3, 1, 4))


@pytest.mark.parametrize("twice", [False, True])
def test_by_shares_a_gate_among_contents_has_its_own_part(twice):
    _, (x, a, b) = three_lines()
    b = a if twice else b
    mode, gate = ShareIncrements(0.75), torch.sigmoid(x)
    first, second = (mode.follow(each, torch.zeros_like(x), x) for each in (x.clone(), 0 * x))
    still, moving = (mode.follow(each, torch.zeros_like(a), a) for each in (0 * a, a.clone()))
    other = still if twice else mode.follow(0 * b, torch.zeros_like(b), b)
    with mode:
        of_gate = torch.einsum("bi,bi,bi->bi", first.sigmoid(), still, other)
        of_content = torch.einsum("bi,bi,bi->bi", second.sigmoid(), moving, other)
    torch.testing.assert_close(of_gate, 0.25 * (gate - 0.5) * a * b)
    torch.testing.assert_close(of_content, 0.5 * (0.5 + 0.75 * (gate - 0.5)) * a * b)


def test_a_product_of_many_entries_is_exact():
    bases, ends = torch.rand(2, 1, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) + 0.5
    mode = SecantIncrements()
    for dim in (-1, None):
        with mode:
            found = mode.follow(ends - bases, bases, ends).prod(*() if dim is None else (dim,))
        torch.testing.assert_close(found, ends.prod(-1) - bases.prod(-1) if dim else (ends.prod() - bases.prod()))


def rotated(z):
    return torch.view_as_complex(z.reshape(-1, 3, 2).contiguous())


def real(z):
    return torch.view_as_real(z).reshape(-1, D)


BACKWARDS = torch.tensor([[5, 4, 3, 2, 1, 0]])
LINEAR = {
    "fft": (lambda z: torch.fft.irfft(torch.fft.rfft(z), n=D) + torch.fft.fft(z).real, lambda z: z + z @ _cosines()),
    "scatter": (lambda z: torch.zeros_like(z).scatter(1, BACKWARDS.expand(len(z), -1), z), lambda z: z.flip(1)),
    "scatter a number": (
        lambda z: z.scatter(1, BACKWARDS[:, :1].expand(len(z), -1), 0.5),
        lambda z: torch.cat((z[:, :5], torch.full_like(z[:, :1], 0.5)), 1),
    ),
    "index_add": (lambda z: z.index_add(1, BACKWARDS[0], z), lambda z: z + z.flip(1)),
    "diag_embed": (lambda z: torch.diag_embed(z) @ W[0], lambda z: z * W[0]),
    "nansum": (lambda z: z + torch.nansum(z, 1, keepdim=True), lambda z: z + z.sum(1, keepdim=True)),
    "solve": (
        lambda z: torch.linalg.solve(W + 4 * torch.eye(D), 4 * z[..., None])[..., 0],
        lambda z: 4 * z @ torch.linalg.inv(W + 4 * torch.eye(D)).T,
    ),
    "size of complex numbers": (
        lambda z: real(rotated(z) / (rotated(z).abs() + 0.1)),
        lambda z: z / (z.reshape(-1, 3, 2).norm(dim=-1) + 0.1).repeat_interleave(2, 1),
    ),
    "polar": (
        lambda z: real(torch.polar(z[:, :3].abs(), z[:, 3:])),
        lambda z: torch.stack((z[:, :3].abs() * z[:, 3:].cos(), z[:, :3].abs() * z[:, 3:].sin()), -1).reshape(-1, D),
    ),
}


def _cosines():
    return torch.fft.fft(torch.eye(D, dtype=torch.float64)).real


@pytest.mark.quick_diagonal(2)  # quick: every operation, both expansions
@pytest.mark.parametrize("expansion", ["secant", "shares"])
@pytest.mark.parametrize("name", LINEAR)
def test_a_linear_operation_has_the_n_grams_of_the_same_numbers_written_otherwise(name, expansion):
    judge_same_n_grams([model_with(function) for function in LINEAR[name]], expansion)


def test_a_pool_that_has_no_rule_is_refused_by_name():
    mode = SecantIncrements()
    block = mode.follow(torch.zeros(1, 1, 4), torch.zeros(1, 1, 4), torch.ones(1, 1, 4))
    with mode, pytest.raises(unrolled.UnsupportedOperationError, match="max_pool1d has no rule"):
        F.max_pool1d(block, 2)
