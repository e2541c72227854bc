"""Steps have the names of those of the argument whose numbers are shown there, also beside factors of other steps."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

SERIES = torch.rand(2, 7, 3, generator=torch.Generator().manual_seed(0)).double() + 0.5


class Read(nn.Module):
    """A network over what a function makes of the series."""

    def __init__(self, change, in_a_loop=False):
        super().__init__()
        torch.manual_seed(0)
        self.change, self.in_a_loop = change, in_a_loop
        self.rnn, self.cell, self.head = nn.GRU(3, 4, batch_first=True), nn.GRUCell(3, 4), nn.Linear(4, 1)
        self.double()

    def forward(self, *given):
        x = self.change(*given)
        if not self.in_a_loop:
            return self.head(self.rnn(x)[0].mean(1))
        state = x.new_zeros(len(x), 4)
        for step in x.unbind(1):
            state = self.cell(step, state)
        return self.head(state)


CHANGED = {
    "ratios": (lambda x: x[:, 1:] / x[:, :-1], range(1, 7)),
    "rates": (lambda x: x[:, 1:] / x[:, :-1] - 1, range(1, 7)),
    "of the first": (lambda x: x[:, 1:] / x[:, :1], range(1, 7)),
    "chosen by the last": (lambda x: torch.where(x[:, :-1] > 1, x[:, 1:], -x[:, 1:]), range(1, 7)),
    "by the next, reversed": (lambda x: (x[:, :-1] / x[:, 1:]).flip(1), range(5, -1, -1)),
}


@pytest.mark.parametrize("in_a_loop", [False, True])
@pytest.mark.parametrize("change", CHANGED)
def test_steps_are_those_of_the_numbers_that_are_shown(change, in_a_loop):
    made, steps = CHANGED[change]
    account = unrolled.account(Read(made, in_a_loop), SERIES, target=0)
    for example, found in enumerate(unrolled.explain_batch(Read(made, in_a_loop), SERIES, target=0)):
        assert found.tokens == tuple(f"x{step}" for step in steps)
        torch.testing.assert_close(found.features.values, SERIES[example, list(steps)])
        contributed = account.features["0"][example, list(steps)]
        assert bool((contributed != 0).any(dim=1).all())
        torch.testing.assert_close(found.feature_scores, contributed, rtol=1e-9, atol=1e-12)


def test_words_are_not_replaced():
    found = unrolled.explain(Read(CHANGED["rates"][0]), SERIES[:1], target=0, tokens=[f"x{k}" for k in range(6)])
    assert found.tokens == ("x0", "x1", "x2", "x3", "x4", "x5")


def test_positions_that_show_numbers_of_several_steps_are_numbered():
    """The negative control: neither numbers of two arguments, nor those of several steps, stand at one step."""
    apart = unrolled.explain(
        Read(lambda x, y: torch.cat([(x[:, 1:] / x[:, :-1])[..., :2], y[:, :6, :1]], -1)),
        SERIES[:1],
        SERIES[1:],
        target=0,
    )
    assert apart.features.names == (
        "0, feature 0",
        "0, feature 1",
        "0, feature 2",
        "1, feature 0",
        "1, feature 1",
        "1, feature 2",
    )
    mixed = unrolled.explain(Read(lambda x: x[:, 1:] - x[:, :-1]), SERIES[:1], target=0)
    assert mixed.features is None
    for found in (apart, mixed):
        assert found.tokens == ("x0", "x1", "x2", "x3", "x4", "x5")
