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


class Backwards(Forecast):
    """Reads a series from its last step to its first, without what a mask leaves out."""

    def forward(self, past, mask):
        state = None
        for step in (past * mask[..., None]).flip(1).unbind(1):
            state = self.encoder_cell(step, state)
        return self.head(state)

    def __init__(self):
        super().__init__()
        self.encoder_cell = nn.GRUCell(2, 4).double()


def test_words_of_a_masked_series_of_one_step_stay_at_its_step():
    mask = torch.tensor([[0, 0, 0, 0, 1.0], [1.0] * 5]).double()
    short, whole = unrolled.explain_batch(Backwards(), PAST, mask, target=0, tokens=[DAYS] * 2)
    assert list(short.tokens) == ["Fri", *["‹no token›"] * 4]
    assert list(whole.tokens) == DAYS[::-1]  # the control


PAST_NAMES, FUTURE_NAMES = ["load", "wind"], ["price", "holiday"]
DECODED = ("load", "wind", "price", "holiday")


class FromTheFuture(Forecast):
    """The same, with its arguments in another order, and as a batch."""

    def forward(self, future, past):
        return super().forward(past, future)


def test_names_of_numbers_are_those_of_all_arguments_side_by_side():
    found = forecast(Forecast, 3, features=[*PAST_NAMES, *FUTURE_NAMES])
    encoder, decoder = found.sequences
    assert (encoder.features.names, decoder.features.names) == (tuple(PAST_NAMES), DECODED)
    unnamed = forecast(Forecast, 3)
    for each, other in zip(found.sequences, unnamed.sequences, strict=True):
        torch.testing.assert_close(each.feature_scores, other.feature_scores, rtol=0, atol=0)
    account = unrolled.account(Forecast(), PAST[:1], FUTURE[:1, :3], target=2, features=[*PAST_NAMES, *FUTURE_NAMES])
    in_account = {(each["source"], each["feature"]) for each in account.to_records() if each["kind"] == "feature"}
    assert in_account == {*(("0", each) for each in PAST_NAMES), *(("1", each) for each in FUTURE_NAMES)}


def test_names_follow_the_order_of_the_arguments():
    names = [*FUTURE_NAMES, *PAST_NAMES]
    for found in unrolled.explain_batch(FromTheFuture(), FUTURE[:, :3], PAST, target=2, features=names):
        encoder, decoder = found.sequences
        assert (encoder.features.names, decoder.features.names) == (tuple(PAST_NAMES), tuple(names))


def test_names_of_one_argument_are_those_of_every_sequence_that_reads_it():
    """The negative control: what all sequences read alike needs no names of arguments."""
    for each in forecast(WithoutFuture, 3, features=PAST_NAMES).sequences:
        assert each.features.names == tuple(PAST_NAMES)
    with pytest.raises(ShapeError, match=r"features are 4 names; expected 2, one for each number of a step$"):
        forecast(WithoutFuture, 3, features=DECODED)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_another_number_of_names_is_refused_with_what_is_expected(count):
    message = rf"features are {count} names; expected 4, one for each .*: 2 of argument past, then 2 of argument future"
    with pytest.raises(ShapeError, match=message):
        forecast(Forecast, 3, features=list("abcde")[:count])


def test_sequences_of_different_arguments_have_names_of_their_own():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.first, self.second = (nn.GRU(2, 4, batch_first=True).double() for _ in range(2))
            self.head = nn.Linear(8, 1).double()

        def forward(self, past, future):
            return self.head(torch.cat([self.first(past)[1][0], self.second(future)[1][0]], -1))

    def names(features):
        found = unrolled.explain(Both(), PAST[:1], FUTURE[:1], target=0, features=features)
        return [each.features.names for each in found.sequences]

    assert names(DECODED) == [tuple(PAST_NAMES), tuple(FUTURE_NAMES)]
    assert names(PAST_NAMES) == [tuple(PAST_NAMES), tuple(PAST_NAMES)]
