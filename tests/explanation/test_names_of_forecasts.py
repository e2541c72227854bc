"""Names for the steps and the numbers of a forecast: a decoder that begins with the last value of the past."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import ShapeError

PAST, FUTURE = torch.randn(2, 2, 5, 2, generator=torch.Generator().manual_seed(0)).double()
DAYS, NEXT = ["Mon", "Tue", "Wed", "Thu", "Fri"], ["Sat", "Sun", "Mon"]


class Forecast(nn.Module):
    """Reads what it has predicted, beside what is known of the future."""

    known = 2

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.encoder, self.decoder = nn.GRU(2, 4, batch_first=True), nn.GRUCell(1 + self.known, 4)
        self.head = nn.Linear(4, 1)
        self.double()

    def forward(self, past, future):
        state, value, found = self.encoder(past)[1][0], past[:, -1, :1], []
        for step in range(future.shape[1]):
            state = self.decoder(torch.cat([value, future[:, step, : self.known]], -1), state)
            value = self.head(state)
            found.append(value)
        return torch.cat(found, -1)


class WithoutFuture(Forecast):
    known = 0


def forecast(kind, steps, **named):
    return unrolled.explain(kind(), PAST[:1], FUTURE[:1, :steps], target=steps - 1, **named)


@pytest.mark.parametrize("steps", [3, 5])
@pytest.mark.parametrize("kind", [Forecast, WithoutFuture])
def test_words_of_a_decoder_name_its_steps(kind, steps):
    names = [f"day {k}" for k in range(steps)]
    found = forecast(kind, steps, tokens={"encoder": DAYS, "decoder": names})
    assert [list(each.tokens) for each in found.sequences] == [DAYS, names]
    alone = forecast(kind, steps, tokens=names, rnn="decoder")
    assert list(alone.tokens) == names


def test_words_of_the_past_name_the_first_input_of_another_number_of_steps():
    """The negative control: they are as many as the argument has steps, and the decoder has fewer."""
    found = forecast(WithoutFuture, 3, tokens={"encoder": DAYS, "decoder": DAYS})
    assert list(found.sequences[1].tokens) == ["Fri", "‹no token›", "‹no token›"]
    with pytest.raises(ShapeError, match="6 tokens for decoder of 3 positions"):
        forecast(Forecast, 3, tokens={"encoder": DAYS, "decoder": [*DAYS, "Sat"]})


class Continued(Forecast):
    """One network reads the past, and then what it has predicted of it."""

    def __init__(self):
        super().__init__()
        self.back = nn.Linear(4, 2).double()

    def forward(self, past, future):
        found, state = self.encoder(past)
        for _ in range(future.shape[1]):
            found, state = self.encoder(self.back(found[:, -1:]), state)
        return self.head(found[:, -1])


def test_words_of_the_past_name_the_steps_that_read_it():
    found = unrolled.explain(Continued(), PAST[:1], FUTURE[:1, :2], target=0, tokens=DAYS)
    assert list(found.tokens) == [*DAYS, "‹no token›", "‹no token›"]
    found = unrolled.explain(Continued(), PAST[:1], FUTURE[:1, :2], target=0, tokens=[*DAYS, *NEXT[:2]])
    assert list(found.tokens) == [*DAYS, *NEXT[:2]]
