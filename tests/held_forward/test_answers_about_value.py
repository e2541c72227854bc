"""What a model asks about its numbers and adds is held, and stands in an account by the operation's name."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UnsupportedOperationError

X = torch.tensor([[1.5, -0.5, 2.0], [0.25, 3.0, -1.0]], dtype=torch.float64)

ANSWERS = {
    "ge": lambda x: x >= 0,
    "greater_equal": lambda x: torch.greater_equal(x, 0),
    "less": lambda x: x.less(1),
    "not_equal": lambda x: torch.not_equal(x, 2),
    "isfinite": lambda x: x.isfinite(),
    "isclose": lambda x: x.isclose(torch.full_like(x, 2.0)),
    "signbit": lambda x: torch.signbit(x),
    "any": lambda x: (x > 0).any(1, keepdim=True),
    "count_nonzero": lambda x: x.count_nonzero(1)[:, None],
    "logical_not": lambda x: x.logical_not() + x.logical_or(x),
    "in a step before": lambda x: torch.logical_and(x > 0, x < 2).double(),
}


class Model(nn.Module):
    def __init__(self, asks):
        super().__init__()
        self.asks = asks

    def forward(self, x):
        return x * 2 + self.asks(x)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_is_added_is_held_and_named(name):
    found = unrolled.account(Model(ANSWERS[name]), X, target=lambda output: output.sum(1))
    torch.testing.assert_close(found.features["0"], 2 * X)
    assert "constants" not in found.constants
    added = sum(found.constants.values())
    torch.testing.assert_close(added, (torch.zeros_like(X) + ANSWERS[name](X)).sum(1))
    assert any("held contribute" in note for note in found.notes)


@pytest.mark.parametrize("form", [torch.ones_like, lambda x: torch.randint_like(x, 1, 5)], ids=["ones", "drawn"])
def test_the_form_of_a_number_is_a_constant(form):
    found = unrolled.account(Model(form), X, target=lambda output: output.sum(1), seed=0)
    assert list(found.constants) == ["constants"]
    assert not found.notes


def test_the_type_that_numbers_have_together_is_no_value():
    class Converts(Model):
        def forward(self, x):
            return x.to(torch.result_type(x, torch.zeros(1))) * 2 + self.asks(x)

    found, expected = (
        unrolled.account(kind(torch.tanh), X, target=lambda output: output.sum(1)) for kind in (Converts, Model)
    )
    assert found.constants.keys() == expected.constants.keys()
    torch.testing.assert_close(found.features["0"], expected.features["0"])
    with pytest.raises(UnsupportedOperationError, match="svdvals has no rule"):  # the control: numbers carry value
        unrolled.account(Model(lambda x: torch.linalg.svdvals(x)[:1]), X, target=lambda output: output.sum(1))


@pytest.mark.parametrize(
    ("one", "other"),
    [("greater", "gt"), ("greater_equal", "ge"), ("less", "lt"), ("less_equal", "le"), ("not_equal", "ne")],
)
def test_two_names_of_one_operation_give_one_account(one, other):
    def account(name):
        made = Model(lambda x: getattr(x, name)(0.3))
        return unrolled.account(made, X, target=lambda output: output.sum(1))

    constants = [account(name).constants for name in (one, other)]
    assert list(constants[0]) == list(constants[1]) == [other]
    assert torch.equal(constants[0][other], constants[1][other])
