"""The numbers of one series, and the ids of one text, need the axis of a batch where the model reads it."""

import re

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import ShapeError

CALLS = [unrolled.explain, unrolled.explain_batch, unrolled.account, unrolled.check]
SERIES, IDS = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([1, 4, 2])


class Last(nn.Module):
    """Reads the last state of a series."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.head = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


class OfThreeAxes(Last):
    def forward(self, x):
        _batch, _steps, _width = x.shape
        return super().forward(x)


class OfWords(Last):
    def forward(self, ids):
        _batch, _steps = ids.shape
        return super().forward(nn.functional.one_hot(ids, 6).float()[..., :3])


class OfVectors(Last):
    """Makes a series of each vector of a batch."""

    def __init__(self):
        super().__init__()
        self.spread = nn.Linear(3, 6)

    def forward(self, x):
        return super().forward(self.spread(x).view(len(x), 2, 3))


class Checked(Last):
    def forward(self, x):
        if x.dim() < 3:
            raise RuntimeError("the sensor is off")
        return super().forward(x)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("model", "given", "name"), [(Last, SERIES, "x"), (OfThreeAxes, SERIES, "x"), (OfWords, IDS, "ids")]
)
def test_one_example_without_the_axis_of_a_batch_is_named(call, model, given, name):
    told = f"of shape {tuple(given.shape)}: "
    with pytest.raises(ShapeError, match=re.escape(told) + rf".*; if it expects a batch, .*: {name}\[None\]$"):
        call(model(), given, target=1)
    call(model(), given[None], target=1)


@pytest.mark.parametrize("call", CALLS)
def test_another_failure_is_not_blamed_on_the_axes(call):
    with pytest.raises(RuntimeError, match=r"^the sensor is off$"):
        call(Checked(), SERIES, target=1)
    with pytest.raises(RuntimeError, match=r"Expected 3, got 2$"):  # a batch of another width
        call(Last(), SERIES[None, :, :2], target=1)
    with pytest.raises(RuntimeError, match=r"Expected 3, got 2$"):  # a series of another width
        call(Last(), SERIES[:, :2], target=1)
    with pytest.raises(RuntimeError, match=r"cannot be multiplied \(5x2 and 3x6\)$"):  # vectors of another width
        call(OfVectors(), SERIES[:, :2], target=1)
    call(OfVectors(), SERIES[:1], target=1)
    vectors = nn.Sequential(nn.Linear(4, 2))
    with pytest.raises(RuntimeError, match=r"cannot be multiplied \(5x3 and 4x2\)$"):  # no series is read
        call(vectors, SERIES, target=1)
