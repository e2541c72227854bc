"""The names of steps: one for each step that contributes; padding, last or first, needs none."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import unrolled
from unrolled.errors import ShapeError, UsageError

PAD = "‹pad›"


class Series(nn.Module):
    """Reads the steps of a series that are no padding, and a second series of other length if there is one."""

    def __init__(self):
        super().__init__()
        self.rnn, self.beside = nn.GRU(2, 4, bias=False, batch_first=True), nn.Linear(2, 4, bias=False)
        self.head = nn.Linear(4, 2)
        self.double()

    def forward(self, series, real, *others):
        read = (self.rnn(series)[0] * real[..., None]).sum(1)
        return self.head(sum((self.beside(other).sum(1) for other in others), read))


def series_of(*lengths, steps=5):
    real = (torch.arange(steps) < torch.tensor(lengths)[:, None]).double()
    return torch.randn(len(lengths), steps, 2).double(), real


@pytest.mark.parametrize("names", [list("ab"), list("abcd"), []])
def test_fewer_names_than_steps_are_refused(names):
    series, real = series_of(5)
    with pytest.raises(ShapeError, match=rf"{len(names)} tokens for numbers of 5 steps; expected one for each that is"):
        unrolled.account(Series(), series, real, target=0, tokens=names)
    found = unrolled.account(Series(), series, real, target=0, tokens=list("abcde"))  # the control
    assert found.words == (tuple("abcde"),)


def test_steps_that_contribute_nothing_need_no_name_in_a_batch_of_different_lengths():
    series, real = series_of(3, 5)
    found = unrolled.account(Series(), series, real, target=0, tokens=[list("abc"), list("abcde")])
    assert found.words == (("a", "b", "c", PAD, PAD), tuple("abcde"))
    with pytest.raises(ShapeError, match="2 tokens for numbers of 5 steps"):
        unrolled.account(Series(), series, real, target=0, tokens=[list("ab"), list("abcde")])


def test_padding_in_front_needs_no_name_either():
    series, real = series_of(3)
    found = unrolled.account(
        Series(), series.flip(1) * real.flip(1)[..., None], real.flip(1), target=0, tokens="a b c".split()
    )
    assert found.words == ((PAD, PAD, "a", "b", "c"),)


def test_padding_in_front_needs_no_name_where_a_step_contributes_nothing():
    class Largest(nn.Module):
        def forward(self, series):
            return series.amax(dim=1)

    series = torch.tensor([[[0.0, 0.0], [0.0, 0.0], [3.0, 2.0], [-1.0, 1.0], [-2.0, -3.0]]])
    found = unrolled.account(Largest(), series, target=0, tokens=list("abc"))
    assert found.words == ((PAD, PAD, "a", "b", "c"),)
    assert found.features["0"][0, :, 0].tolist() == [0.0, 0.0, 3.0, 0.0, 0.0]
    found = unrolled.account(Largest(), series[:, 2:], target=0, tokens=list("ab"))  # a step that contributes nothing
    assert found.words == (("a", "b", PAD),)


def test_a_series_without_an_axis_of_features_has_its_names_by_features():
    class Single(Series):
        def forward(self, series):
            return self.head(self.rnn(series[..., None].expand(-1, -1, 2))[0].sum(1))

    series, days = torch.randn(2, 5).double(), [f"day {step}" for step in range(5)]
    with pytest.raises(ShapeError, match=r"^5 tokens, and no argument has steps of numbers.* by features=$"):
        unrolled.account(Single(), series, target=0, tokens=[days] * 2)
    found = unrolled.account(Single(), series, target=0, features=days)  # the control
    assert found.closes
    assert "day 3" in str(found)


def test_the_names_are_those_of_the_series_that_they_fit():
    series, real = series_of(5, 5)
    other = torch.randn(2, 8, 2).double()
    for steps in (5, 8):
        names = [f"day {step}" for step in range(steps)]
        assert (
            unrolled.account(Series(), series, real, other, target=0, tokens=[names] * 2).words == (tuple(names),) * 2
        )
    with pytest.raises(ShapeError, match="7 tokens for numbers of 8 steps"):
        unrolled.account(Series(), series, real, other, target=0, tokens=[list("abcdefg")] * 2)


def test_steps_of_a_packed_sequence_of_numbers_have_no_names():
    class Packed(Series):
        def forward(self, packed):
            return self.head(self.rnn(packed)[1][-1])

    packed = pack_padded_sequence(torch.randn(2, 6, 2).double(), torch.tensor([6, 3]), batch_first=True)
    assert unrolled.account(Packed(), packed, target=0).closes
    with pytest.raises(UsageError, match="packed sequence of numbers"):
        unrolled.account(Packed(), packed, target=0, tokens=[list("abcdef"), list("abc")])


def test_a_step_that_is_zero_in_one_of_several_series_has_a_name():
    class Shared(nn.Module):
        def forward(self, series, other):
            return (series + other[None]).tanh().sum(dim=1)

    series = torch.ones(2, 4, 3)
    series[:, [0, 3]] = 0.0
    with pytest.raises(ShapeError, match="3 tokens for numbers of 4 steps"):
        unrolled.account(Shared(), series, torch.ones(4, 3), target=1, tokens=[list("abc")] * 2)
