"""The Taylor sum of a step with a norm or a linear system, against reverse mode, which torch computes rightly twice."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from unrolled.forward_mode.written_operations import with_written_operations
from unrolled.linalg.quadrature import taylor_sum

D = 4


def draw(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


MATRIX, SHIFT, GAIN, BIAS = draw(D, D, seed=0), draw(D, seed=1), draw(D, seed=2), draw(D, seed=3)
BATCH_NORM = nn.BatchNorm1d(1, track_running_stats=False).double().eval()
OPERATIONS = {
    "layer norm": lambda z: F.layer_norm(z, (D,)),
    "layer norm with weights": lambda z: F.layer_norm(z, [D], weight=GAIN, bias=BIAS, eps=0.1),
    "layer norm of the package torch": lambda z: torch.layer_norm(z, (D,), GAIN, BIAS),
    "layer norm by keywords": lambda z: torch.layer_norm(input=z, normalized_shape=(D,), weight=GAIN),
    "layer norm of a module": nn.LayerNorm(D).double(),
    "instance norm": lambda z: F.instance_norm(z[None, None], eps=0.1)[0, 0],
    "instance norm with weights": lambda z: F.instance_norm(z[None, None], weight=GAIN[:1], bias=BIAS[:1])[0, 0],
    "instance norm by running numbers": lambda z: F.instance_norm(
        z[None, None], torch.zeros(1).double(), torch.ones(1).double(), use_input_stats=False
    )[0, 0],
    "batch norm": lambda z: F.batch_norm(z[None, None], None, None, GAIN[:1], BIAS[:1], training=True, eps=0.1)[0, 0],
    "batch norm of examples": lambda z: F.batch_norm(z[:, None], None, None, training=True, eps=0.1)[:, 0],
    "batch norm of a module": lambda z: BATCH_NORM(z[None, None])[0, 0],
    "batch norm by running numbers": lambda z: F.batch_norm(z[None], SHIFT, GAIN.square(), GAIN, BIAS)[0],
    "group norm": lambda z: F.group_norm(z[None], 2)[0],
    "solve": lambda z: torch.linalg.solve(torch.eye(D) + z[:, None] * MATRIX, z),
    "solve by keywords": lambda z: torch.linalg.solve(A=torch.eye(D) + z[:, None] * MATRIX, B=z),
    "solve from the right": lambda z: torch.linalg.solve(torch.eye(D) + z[:, None] * MATRIX, z[None], left=False)[0],
    "solve of several systems": lambda z: torch.linalg.solve(
        torch.eye(D) + z[:, None, None] * MATRIX, GAIN.expand(D, D)
    )[0],
    "determinant": lambda z: torch.linalg.det(torch.eye(D) + z[:, None] * MATRIX) * z,
    "determinant by keywords": lambda z: torch.det(input=torch.eye(D) + z[:, None] * MATRIX) * z,
    "determinant of odd rows": lambda z: (torch.eye(D).roll(1, 0) + z[:, None] * MATRIX / 4).det() * z,
    "determinants": lambda z: torch.det(torch.eye(D) + z[:, None, None] * MATRIX / 4),
    "logarithm of a determinant": lambda z: torch.logdet(torch.eye(D) * 9 + z[:, None] * MATRIX) * z,
    "logarithm of a determinant's size": lambda z: torch.linalg.slogdet(torch.eye(D) - 9 * z[:, None] * MATRIX)[1] * z,
    "sign and logarithm": lambda z: (
        torch.slogdet(torch.eye(D) + z[:, None] * MATRIX).logabsdet
        * (torch.eye(D) + z[:, None] * MATRIX).slogdet().sign
        * z
    ),
    "solve of a matrix": lambda z: torch.linalg.solve(torch.eye(D) + z[:, None] * MATRIX, MATRIX)[0],
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_second_derivative_is_that_of_reverse_mode(name):
    state, direction, weights = draw(D, seed=4), draw(D, seed=5), draw(D, seed=6)

    def step(s):
        return torch.tanh(OPERATIONS[name](s @ MATRIX + SHIFT))

    def along(alpha):
        return {"image": torch.func.jvp(with_written_operations(step), (alpha * state,), (direction,))[1]}

    found = [(taylor_sum(order)(along)["image"] @ weights).item() for order in (1, 2)]
    a, b = (torch.zeros((), dtype=torch.float64, requires_grad=True) for _ in range(2))
    (first,) = torch.autograd.grad(step(a * state + b * direction) @ weights, b, create_graph=True)
    (second,) = torch.autograd.grad(first, a)
    assert found[0] == pytest.approx(first.item(), abs=1e-12)
    assert found[1] == pytest.approx(first.item() + second.item() / 2, abs=1e-12)
    assert abs(found[1] - found[0]) > 1e-3  # the control: the second derivative is not zero


def test_n_grams_up_to_a_length_leave_the_contributions_of_words_as_they_are():
    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.read, self.keep, self.norm = nn.Linear(D, D), nn.Linear(D, D), nn.LayerNorm(D)

        def forward(self, x, h):
            return torch.tanh(self.norm(self.read(x) + self.keep(h)))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.cell, self.head = nn.Embedding(9, D), Step(), nn.Linear(D, 2)
            self.double()

        def forward(self, tokens):
            h = self.head.weight.new_zeros(len(tokens), D)
            for x in self.embed(tokens).unbind(1):
                h = self.cell(x, h)
            return self.head(h)

    model, tokens = Model(), torch.tensor([[3, 1, 4, 1]])
    whole, up_to_two, first_order = (
        unrolled.explain(model, tokens, target=1, expansion=expansion, max_order=order)
        for expansion, order in (("taylor(2)", None), ("taylor(2)", 2), ("zero", None))
    )
    torch.testing.assert_close(whole.token_scores, up_to_two.token_scores, rtol=0, atol=1e-12)
    assert (whole.token_scores - first_order.token_scores).abs().max() > 1e-3
