"""Operations that torch's forward mode differentiates wrongly, against reverse mode and against definitions."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn, special

import unrolled
from unrolled.errors import UnsupportedOperationError
from unrolled.forward_mode.written_operations import with_written_operations
from unrolled.linalg.quadrature import taylor_sum

D = 4


def draw(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


MATRIX, SHIFT, GAIN, BIAS = draw(D, D, seed=0), draw(D, seed=1), draw(D, seed=2), draw(D, seed=3)


def matrix(z, size=D):
    """A matrix near the identity that depends on all numbers of z."""
    return torch.eye(size, dtype=z.dtype) + 0.3 * z.repeat(size // D)[:, None] * draw(size, size, seed=7)


def definite(z):
    return matrix(z) @ matrix(z).T + torch.eye(D, dtype=z.dtype)


def spread(z):
    """Standardise columns by their formula: the third derivative of torch's batch norm is wrong in reverse mode too."""
    apart = z - z.mean(0)
    return apart / (apart.square().mean(0) + 1e-5).sqrt()


def attend(z):
    return torch.softmax(z @ z.T / D**0.5, -1) @ z


def attend_to(query, keys):
    return torch.softmax(keys @ query / D**0.5, 0) @ keys


def distances(z):
    return (matrix(z)[:, None] - MATRIX).square().sum(-1).sqrt()


torch.manual_seed(0)
HEADS = nn.MultiheadAttention(D, 2, batch_first=True).double().eval()
FURTHER = {
    "det": (lambda z: torch.linalg.det(matrix(z)) * GAIN, None),
    "det of a method": (lambda z: matrix(z).det() * GAIN, None),
    "det of twelve rows": (lambda z: torch.det(matrix(z, 12)) * GAIN, None),
    "det of several matrices": (lambda z: torch.linalg.det(torch.stack((matrix(z), 2 * matrix(z)))).repeat(2), None),
    "slogdet": (lambda z: torch.slogdet(matrix(z))[1] * GAIN, None),
    "slogdet by name": (lambda z: torch.linalg.slogdet(matrix(z, 12)).logabsdet * GAIN, None),
    "logdet": (lambda z: torch.logdet(definite(z)) * GAIN, None),
    "solve_ex": (lambda z: torch.linalg.solve_ex(matrix(z), z).result, None),
    "tensorsolve": (lambda z: torch.linalg.tensorsolve(matrix(z).view(2, 2, D), z.view(2, 2)), None),
    "tensorsolve of moved axes": (
        lambda z: torch.linalg.tensorsolve(matrix(z).view(2, 2, 2, 2), z.view(2, 2), dims=(0, 2)).flatten(),
        None,
    ),
    "cholesky_inverse": (
        lambda z: torch.cholesky_inverse(torch.linalg.cholesky(definite(z)))[0],
        lambda z: torch.linalg.inv(definite(z))[0],
    ),
    "cholesky_inverse of an upper factor": (
        lambda z: torch.linalg.cholesky(definite(z), upper=True).cholesky_inverse(upper=True)[0],
        lambda z: torch.linalg.inv(definite(z))[0],
    ),
    "cholesky_solve of a whole matrix": (
        lambda z: torch.cholesky_solve(z[:, None], matrix(z))[:, 0],
        lambda z: torch.linalg.solve(matrix(z).tril() @ matrix(z).tril().T, z),
    ),
    "cholesky_solve of an upper factor": (
        lambda z: z[:, None].cholesky_solve(input2=matrix(z), upper=True)[:, 0],
        lambda z: torch.linalg.solve(matrix(z).triu().T @ matrix(z).triu(), z),
    ),
    "batch norm": (lambda z: F.batch_norm(matrix(z), None, None, training=True)[0], lambda z: spread(matrix(z))[0]),
    "batch norm with weights": (
        lambda z: F.batch_norm(matrix(z)[..., None], None, None, GAIN, BIAS, training=True)[0, :, 0],
        lambda z: spread(matrix(z))[0] * GAIN + BIAS,
    ),
    "batch norm by running numbers": (lambda z: F.batch_norm(matrix(z), BIAS, GAIN.abs(), GAIN, BIAS)[0], None),
    "gated linear unit": (lambda z: F.glu(torch.cat((z, z * z))), lambda z: z * torch.sigmoid(z * z)),
    "gated linear unit of a module": (lambda z: nn.GLU(0)(torch.stack((z, z * z)))[0], lambda z: z * (z * z).sigmoid()),
    "attention": (
        lambda z: F.scaled_dot_product_attention(*3 * (matrix(z)[None],))[0, 0],
        lambda z: attend(matrix(z))[0],
    ),
    "attention with a mask": (
        lambda z: F.scaled_dot_product_attention(*3 * (matrix(z)[None],), attn_mask=MATRIX, scale=0.5)[0, 0],
        lambda z: (torch.softmax(0.5 * matrix(z) @ matrix(z).T + MATRIX, -1) @ matrix(z))[0],
    ),
    "attention to what was before": (
        lambda z: F.scaled_dot_product_attention(*3 * (matrix(z)[None],), is_causal=True)[0, 1],
        lambda z: attend_to(matrix(z)[1], matrix(z)[:2]),
    ),
    "attention of a module": (
        lambda z: HEADS(*3 * (matrix(z)[None],), need_weights=False)[0][0, 0],
        lambda z: HEADS(*3 * (matrix(z)[None],), need_weights=True)[0][0, 0],
    ),
    "distances": (lambda z: torch.cdist(matrix(z), MATRIX)[0], lambda z: distances(z)[0]),
}
"""What torch's forward mode cannot differentiate three times, and what it is where reverse mode cannot either."""


def derivatives(function, state, direction, weights):
    """The first derivative along a direction, and its first two along the state, by reverse mode."""
    a, b = (torch.zeros((), dtype=torch.float64, requires_grad=True) for _ in range(2))
    (found,) = torch.autograd.grad(function(a * state + b * direction) @ weights, b, create_graph=True)
    listed = [found.item()]
    for _ in range(2):
        (found,) = torch.autograd.grad(found, a, create_graph=True)
        listed.append(found.item())
    return listed


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_solve_reads_one_triangle(unit, upper):
    """As its derivative does: those of torch's reverse mode are right."""
    z, direction = draw(D, seed=4), draw(D, seed=5)

    def solved(z):
        return torch.triangular_solve(z[:, None], A=matrix(z), upper=upper, unitriangular=unit).solution[:, 0]

    found = torch.func.jvp(with_written_operations(solved), (z,), (direction,))[1]
    true = torch.autograd.functional.jacobian(solved, z) @ direction
    torch.testing.assert_close(found, true)
    assert not torch.allclose(torch.func.jvp(solved, (z,), (direction,))[1], true)


@pytest.mark.parametrize("name", FURTHER)
def test_three_derivatives_are_those_of_reverse_mode(name):
    state, direction, weights = draw(D, seed=4), draw(D, seed=5), draw(D, seed=6)
    operation, judge = FURTHER[name]
    values = state @ MATRIX + SHIFT
    torch.testing.assert_close(
        with_written_operations(operation)(values), (judge or operation)(values), rtol=1e-12, atol=1e-12
    )

    def step(s):
        return torch.tanh(operation(0.5 * s @ MATRIX + SHIFT))

    def along(alpha):
        return {"image": torch.func.jvp(with_written_operations(step), (alpha * state,), (direction,))[1]}

    true = derivatives(lambda s: torch.tanh((judge or operation)(0.5 * s @ MATRIX + SHIFT)), state, direction, weights)
    for order in (1, 2, 3):
        found = (taylor_sum(order)(along)["image"] @ weights).item()
        assert found == pytest.approx(sum(each / math.factorial(n + 1) for n, each in enumerate(true[:order])), 1e-9)
    assert min(map(abs, true[1:])) > 1e-3  # the control: no derivative is zero


def test_products_of_other_forms_are_those_of_torch():
    z = draw(2, 3, 4, seed=11).float()
    for function in (
        lambda z: z.prod(1, keepdim=True),
        lambda z: torch.prod(z, -1, dtype=torch.float64),
        lambda z: z.cumprod(1),
        lambda z: torch.cumprod(z, 0, dtype=torch.float64),
        lambda z: torch.cumprod(input=z, dim=0),
        lambda z: torch.cdist(x1=z, x2=z + 1),
        lambda z: torch.cholesky_inverse(input=z[0, :, :3].tril() + 9 * torch.eye(3)),
        lambda z: z[:, :0].prod(1),
        lambda z: (z > 0).prod(1),
        lambda z: (z > 0).int().cumprod(-1),
        lambda z: torch.prod((9 * z).int(), 0, keepdim=True),
        lambda z: (z > 0).prod(),
        lambda z: z[:0].cumprod(1),
        lambda z: z[0, 0, 0].prod(0, keepdim=True),
        lambda z: z[0, 0, 0].cumprod(-1),
        lambda z: torch.linalg.tensorsolve(input=z[:, :2].view(2, 2, 4), other=z[0, :2, :2]),
    ):
        torch.testing.assert_close(with_written_operations(function)(z), function(z))


class OfOperation(nn.Module):
    """A loop over a step that runs one operation."""

    def __init__(self, operation):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.read, self.keep = nn.Embedding(9, D), nn.Linear(D, D), nn.Linear(D, D)
        self.cell, self.head = OfOperationCell(operation, self.read, self.keep), nn.Linear(D, 2)
        self.double()

    def forward(self, tokens):
        h = self.head.weight.new_zeros(len(tokens), D)
        for x in self.embed(tokens).unbind(1):
            h = self.cell(x, h)
        return self.head(h)


class OfOperationCell(nn.Module):
    def __init__(self, operation, read, keep):
        super().__init__()
        self.operation, self.read, self.keep = operation, read, keep

    def forward(self, x, h):
        z = self.read(x) + 0.5 * self.keep(h)
        return torch.tanh(0.3 * torch.stack([self.operation(each) for each in z.unbind(0)]))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gated linear unit", "attention", "distances", "det", "batch norm"])
def test_a_step_of_such_an_operation_is_opened_by_every_expansion(name):
    """Exactly by path, and by Taylor sums the better the more terms they have."""
    model, tokens = OfOperation(FURTHER[name][0]), torch.tensor([[3, 1, 4, 1]])
    exact, *sums = (
        unrolled.explain(model, tokens, target=1, expansion=expansion)
        for expansion in ("path", "taylor(1)", "taylor(2)", "taylor(3)")
    )
    assert abs(exact.ledger.remainder) < 1e-6
    remainders = [abs(each.ledger.remainder) for each in sums]
    assert remainders[0] > remainders[-1] > 0


def test_a_step_with_a_gate_and_attention_has_a_taylor_sum():
    model = OfOperation(lambda z: F.glu(torch.cat((FURTHER["attention"][0](z), z))))
    found = unrolled.explain(model, torch.tensor([[3, 1]]), target=1, expansion="taylor(2)")
    assert abs(found.ledger.remainder) < 0.01 * abs(found.ledger.logit)


@pytest.mark.parametrize("expansion", ["zero", "operating"])
@pytest.mark.parametrize("in_place", [False, True])
def test_a_step_whose_derivative_torch_takes_for_zero_is_refused(in_place, expansion):
    """Forward mode gives products by scatter_reduce no derivative; the account takes others."""

    def products(z):
        ones, places = torch.ones(D, dtype=z.dtype), torch.tensor([0, 0, 1, 1])
        return (
            ones.scatter_reduce_(0, places, z, "prod") if in_place else ones.scatter_reduce(0, places, z, reduce="prod")
        )

    wrong = torch.func.jvp(products, (GAIN,), (BIAS,))[1]
    assert not wrong.any()
    with pytest.raises(UnsupportedOperationError, match="scatter_reduce by 'prod'"):
        unrolled.explain(OfOperation(products), torch.tensor([[3, 1]]), target=1, expansion=expansion)


def test_sums_by_scatter_reduce_are_not_refused():
    sums = OfOperation(lambda z: torch.zeros(D, dtype=z.dtype).scatter_reduce(0, torch.tensor([0, 0, 1, 1]), z, "sum"))
    assert abs(unrolled.explain(sums, torch.tensor([[3, 1]]), target=1, expansion="path").ledger.remainder) < 1e-6


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("bessel_j0", special.bessel_j0),
        ("bessel_j1", torch.func.grad(lambda z: (special.bessel_j1(z.detach()) * z).sum())),
        ("hermite_polynomial_h", lambda z: special.hermite_polynomial_h(z, 3)),
    ],
)
def test_a_function_of_which_torch_has_no_derivative_is_refused(name, function):
    assert not torch.func.jvp(function, (GAIN,), (BIAS,))[1].any()
    with pytest.raises(UnsupportedOperationError, match=f"derivative of {name} for zero"):
        unrolled.explain(OfOperation(function), torch.tensor([[3, 1]]), target=1, expansion="operating")


@pytest.mark.parametrize("name", ["bessel_j0", "scatter_reduce"])
def test_constants_of_such_functions_are_not_refused(name):
    places = torch.tensor([0, 0, 1, 1])
    given = (0, places, GAIN, "prod") if name == "scatter_reduce" else ()
    function = getattr(torch, name, None) or getattr(special, name)
    model = OfOperation(lambda z: z * function(torch.ones_like(GAIN), *given))
    assert unrolled.explain(model, torch.tensor([[3, 1]]), target=1, expansion="operating").exact


def test_every_special_function_that_changes_has_a_derivative_or_is_refused():
    z, counts = torch.tensor([0.3, 0.6, 0.7]).double(), torch.tensor([2.0, 3.0, 4.0]).double()
    names = [name for name in special.__all__ if name not in ("round", "expit", "softmax", "log_softmax", "logsumexp")]
    tried = 0
    for name in names:
        function, given = getattr(special, name), ()
        for given in ((), (counts,), (2,)):
            try:
                changes = bool((function(z, *given) - function(z + 0.01, *given)).abs().max() > 1e-6)
                break
            except (TypeError, RuntimeError):
                continue
        else:
            continue
        tried += changes
        try:
            written = with_written_operations(lambda x, f=function, others=given: f(x, *others))
            slope = torch.func.jvp(written, (z,), (torch.ones_like(z),))[1]
        except NotImplementedError:
            continue
        assert bool(slope.any()) == changes, name
    assert tried > 40


def test_operations_that_write_into_a_tensor_are_left_to_torch():
    """It computes them, and refuses to differentiate them in its own words."""
    kept = torch.empty(3, dtype=torch.float64)

    def written_out(z):
        return torch.prod(z, 1, out=kept.clone())

    z = draw(3, 4, seed=20)
    torch.testing.assert_close(with_written_operations(written_out)(z), z.prod(1))
    with pytest.raises(RuntimeError, match="out="):
        torch.func.jvp(with_written_operations(written_out), (z,), (z,))


def test_a_singular_system_keeps_the_word_of_solve_ex_that_it_is_one():
    singular = torch.stack((torch.diag(torch.tensor([1.0, 0.0, 2.0])), torch.eye(3)))
    assert with_written_operations(torch.linalg.solve_ex)(singular, torch.ones(2, 3)).info.tolist() == [2, 0]
    with pytest.raises(RuntimeError, match="inversion"):
        with_written_operations(lambda a: torch.linalg.solve_ex(a, torch.ones(2, 3), check_errors=True))(singular)
