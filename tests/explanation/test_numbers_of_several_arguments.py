"""Names of features are given to the numbers of one argument, and not to those of another."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError

SERIES = torch.randn(1, 6, 4, generator=torch.Generator().manual_seed(0)).double() + 10


class LastSeen(nn.Module):
    """Reads at each step the last number that was seen, and whether it was: a number may enter several steps."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.head = nn.GRU(4, 5, batch_first=True), nn.Linear(5, 1)
        self.double()

    def forward(self, values, seen):
        last, steps = torch.zeros_like(values[:, 0]), []
        for step in range(values.shape[1]):
            last = torch.where(seen[:, step] > 0, values[:, step], last)
            steps.append(torch.cat([last, seen[:, step]], -1))
        return self.head(self.rnn(torch.stack(steps, 1))[0][:, -1])


def test_names_are_not_given_to_the_numbers_of_another_argument():
    values = SERIES[:, :, :2]
    seen = torch.tensor([[[1.0, 1], [0, 1], [0, 0], [1, 0], [0, 1], [1, 1]]]).double()
    found = unrolled.explain(LastSeen(), values, seen, target=0)
    assert found.features.names == ("1, feature 0", "1, feature 1")
    assert any("argument 0 enter several steps" in note for note in found.notes)
    with pytest.raises(
        UsageError,
        match=r"features= may name numbers of argument 0.*shown are '1, feature 0', '1, feature 1'\..*unrolled.account",
    ):
        unrolled.explain(LastSeen(), values, seen, target=0, features=["temperature", "load"])


def test_numbers_of_no_step_do_not_stand_in_the_way_of_names():
    class Beside(LastSeen):
        def forward(self, values, fixed):
            steps = fixed[:, None].expand(-1, values.shape[1], -1)
            return self.head(self.rnn(torch.cat([values, steps], -1))[0][:, -1])

    found = unrolled.explain(Beside(), SERIES[:, :, :2], SERIES[:, 0, 2:], target=0, features=["temperature", "load"])
    assert found.features.names == ("temperature", "load")


@pytest.mark.parametrize("shape", [(1, 6), (6, 2)])
def test_a_fixed_argument_is_no_series_whatever_its_sizes(shape):
    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.rnn, self.head = nn.GRU(2 + shape[1], 5, batch_first=True), nn.Linear(5, 1)

        def forward(self, values, fixed):
            return self.head(self.rnn(torch.cat([values, fixed[:, None].expand(-1, 6, -1)], -1))[0][:, -1])

    values, fixed = torch.randn(shape[0], 6, 2), torch.randn(shape)
    for found in unrolled.explain_batch(Fixed(), values, fixed, target=0, features=["temperature", "load"]):
        assert found.features.names == ("temperature", "load")
