"""Gates that a mask closes, and functions of minus infinity."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from equal_accounts import everything

IDS = torch.tensor([[3, 1, 4, 5], [2, 7, 8, 6], [4, 2, 1, 3]])
READ = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], dtype=torch.bool)
LOW = float("-inf")


class Reader(nn.Module):
    """Weighs words by a function of their scores and a mask, and sums them."""

    def __init__(self, weights):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.content = nn.Embedding(9, 4), nn.Linear(4, 5)
        self.score, self.head = nn.Linear(5, 1), nn.Linear(5, 2)
        self.weights = weights
        self.double()

    def forward(self, ids, mask):
        words = torch.tanh(self.content(self.embed(ids)))
        return self.head((self.weights(self.score(words), mask[..., None]) * words).sum(1))


def account(weights):
    found = unrolled.account(Reader(weights), IDS, READ, target=1)
    assert found.closes
    return found


GATES = {
    "sigmoid": torch.sigmoid,
    "hardsigmoid": F.hardsigmoid,
    "the complement of a sigmoid": lambda s: 1 - torch.sigmoid(-s),
}
CLOSED = {
    "minus infinity": lambda s, m: s.masked_fill(~m, LOW),
    "the smallest number": lambda s, m: torch.where(m, s, torch.finfo(s.dtype).min),
    "minus ten thousand": lambda s, m: s + (~m).to(s.dtype) * -1e4,
}


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("close", CLOSED)
def test_what_a_mask_closes_a_gate_to_has_no_part(gate, close):
    """A state that is multiplied by zero contributes nothing, and neither does the mask."""
    function = GATES[gate]
    found, expected = account(lambda s, m: function(CLOSED[close](s, m))), account(lambda s, m: function(s) * m)
    torch.testing.assert_close(everything(found), everything(expected), rtol=1e-10, atol=1e-12)
    assert torch.equal(found.tokens != 0, READ)


@pytest.mark.parametrize("gate", GATES)
def test_what_a_mask_leaves_open_has_a_part(gate):
    """The control."""
    found = account(lambda s, m: GATES[gate](s.masked_fill(~m, -1.0)))
    assert bool((found.tokens.abs() > 1e-6).all())


def test_the_complement_of_a_closed_gate_passes_all():
    found, expected = (
        account(lambda s, m, gate=gate: 1 - gate(s, m))
        for gate in (lambda s, m: torch.sigmoid(s.masked_fill(~m, LOW)), lambda s, m: torch.sigmoid(s) * m)
    )
    torch.testing.assert_close(everything(found), everything(expected), rtol=1e-10, atol=1e-12)
    assert bool((found.tokens.abs() > 1e-6).all())


@pytest.mark.parametrize("function", [torch.tanh, torch.relu, F.softplus, torch.atan, F.relu6])
def test_a_function_of_minus_infinity_is_that_of_a_very_small_number(function):
    found, expected, other = (
        account(lambda s, m, low=low: function(s.masked_fill(~m, low))) for low in (LOW, -1e300, 1.0)
    )
    torch.testing.assert_close(everything(found), everything(expected), rtol=1e-10, atol=1e-12)
    assert float((found.tokens - other.tokens).abs().max()) > 1e-3  # the control


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_gate_of_half_precision_that_is_nearly_open_is_one_of_double_precision(dtype):
    """A mask has set what is beyond ±87, as in float32; a logit of 12 is one that the network has learned."""
    found, expected, other = (
        unrolled.account(
            Reader(lambda s, _, at=at, kind=kind: torch.sigmoid((at + 0 * s).to(kind)).double()), IDS, READ, target=1
        )
        for at, kind in ((12.0, dtype), (12.0, torch.float64), (1e4, dtype))
    )
    torch.testing.assert_close(found.tokens, expected.tokens, rtol=0, atol=1e-2)
    assert float((other.tokens - expected.tokens).abs().max()) > 5e-2  # the control: what a mask opens
