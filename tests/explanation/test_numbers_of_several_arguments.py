"""Names of features are given to the numbers of one argument, and not to those of another."""

from __future__ import annotations

from functools import partial

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
    assert found.features.names == ("seen, feature 0", "seen, feature 1")
    assert any("argument 0 enter several steps" in note for note in found.notes)
    with pytest.raises(
        UsageError,
        match=r"features= may name numbers of argument values,.*shown are 'seen, feature 0', 'seen, feature 1'\."
        ".*unrolled.account",
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


class ListOfSeries(nn.Module):
    """Packs or pads a list of series, one for each example."""

    def __init__(self, packs):
        super().__init__()
        self.rnn, self.head, self.packs = nn.GRU(2, 4).double(), nn.Linear(4, 1).double(), packs

    def forward(self, series):
        pack = partial(nn.utils.rnn.pack_sequence, enforce_sorted=False)
        join = pack if self.packs else nn.utils.rnn.pad_sequence
        return self.head(self.rnn(join(series))[1][-1])


SEVERAL = [torch.linspace(0.1, 0.9, 2 * steps).view(steps, 2).double() for steps in (5, 4, 2)]


@pytest.mark.parametrize("packs", [True, False])
def test_an_example_of_a_list_of_series_has_the_features_of_its_own_series(packs):
    """The judge is the series alone."""
    found = unrolled.explain_batch(ListOfSeries(packs), SEVERAL, target=0, features=["rain", "wind"])
    for each, series in zip(found, SEVERAL, strict=True):
        assert each.features.names == ("rain", "wind")
        torch.testing.assert_close(each.features.values[: len(series)], series)
    if packs:
        model = ListOfSeries(packs)
        alone = unrolled.explain(model, SEVERAL[1:2], target=0).features
        beside = unrolled.explain_batch(model, SEVERAL, target=0)[1].features
        torch.testing.assert_close(beside.scores, alone.scores, rtol=0, atol=1e-12)


def test_a_series_for_all_examples_is_shown_beside_those_of_a_list():
    beside = torch.linspace(0.3, 0.7, 12).view(3, 4, 1).double()

    class Both(ListOfSeries):
        def forward(self, series, beside):
            read = nn.utils.rnn.pad_sequence(series, batch_first=True)
            return self.head(self.rnn(torch.cat([read, beside], dim=2).transpose(0, 1))[1][-1])

    series = [each[:4, :1] for each in (SEVERAL[0], SEVERAL[1], SEVERAL[0] + 1)]
    for number, each in enumerate(unrolled.explain_batch(Both(False), series, beside, target=0)):
        assert each.features.names == (f"series.{number}, feature 0", "beside, feature 0")
