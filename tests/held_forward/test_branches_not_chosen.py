"""A branch that torch.where does not choose may be no number: nothing of it is in the output."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import NonFiniteError

SERIES = torch.tensor([[0.3, -1.2, 0.8], [-0.4, 0.5, 1.1]], dtype=torch.float64)

BRANCHES = {
    "root": torch.sqrt,
    "power": lambda z: z**0.3,
    "logarithm": torch.log,
    "inverse": lambda z: z.relu().reciprocal(),
    "inverse root": torch.rsqrt,
    "quotient": lambda z: 2 / z.relu(),
    "quotient of two": lambda z: z.cos() / z.relu(),
    "logarithm of one more": lambda z: (4 * z).log1p(),
    "arc sine": lambda z: (z + 1).asin(),
    "infinite factor": lambda z: z * z.relu().reciprocal(),
}


class Branching(nn.Module):
    """Reads a function of positive numbers, beside the numbers themselves or alone."""

    def __init__(self, function, beside):
        super().__init__()
        torch.manual_seed(1)
        self.layer, self.head, self.function, self.beside = nn.Linear(3, 5), nn.Linear(5, 2), function, beside

    def forward(self, x):
        z = self.layer(x)
        return self.head(self.function(z) + self.beside * z)


@pytest.mark.parametrize("beside", [0, 1])
@pytest.mark.parametrize("name", BRANCHES)
def test_an_account_is_that_of_the_model_whose_other_branch_is_finite(name, beside):
    function = BRANCHES[name]

    def chosen(z):
        return (z < 0) & (z > -1) if name == "arc sine" else z > 0

    def directly(z):
        return torch.where(chosen(z), function(z), 0.0)

    def safely(z):
        inside = torch.where(chosen(z), z, -0.5 if name == "arc sine" else 0.5)
        return torch.where(chosen(z), function(inside), 0.0)

    models = [Branching(each, beside).double() for each in (directly, safely)]
    assert not torch.isfinite(function(models[0].layer(SERIES))).all()  # the control: the other branch is no number
    found, expected = (unrolled.account(model, SERIES, target=1) for model in models)
    assert found.closes
    torch.testing.assert_close(found.features["0"], expected.features["0"], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["root", "logarithm"])
def test_a_branch_that_is_chosen_is_refused(name):
    model = Branching(lambda z: torch.where(z < 0, BRANCHES[name](z), 0.0), 1).double()
    with pytest.raises(NonFiniteError, match="the output is"):
        unrolled.account(model, SERIES, target=1)
