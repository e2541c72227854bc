"""Times between the steps of a series, which a model integrates over: a note says where what they contribute stands."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

SERIES, TIMES = torch.linspace(-1, 1, 36).reshape(2, 6, 3), torch.linspace(0.1, 2, 12).reshape(2, 6) ** 2
SAID = "numbers of argument 1 change the states between the calls of cell; what they contribute is in the n-grams and "


class Between(nn.Module):
    """Moves the state from the time of one observation to that of the next."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.head = nn.GRUCell(3, 5), nn.Linear(5, 2)
        self.slope, self.rate = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 5)), nn.Linear(1, 5)

    def read(self, series):
        return series.unbind(1)

    def moved(self, state, passed):
        return state

    def forward(self, series, times):
        state, last = times.new_zeros(len(times), 5), times[:, 0]
        for x, time in zip(self.read(series), times.unbind(1), strict=True):
            state = self.cell(x, self.moved(state, (time - last)[:, None]))
            last = time
        return self.head(state)


class Integrated(Between):
    def moved(self, state, passed):
        for _ in range(3):
            state = state + passed / 3 * self.slope(state)
        return state


class Added(Between):
    def moved(self, state, passed):
        return state + self.rate(passed)


class Decayed(Between):
    def moved(self, state, passed):
        return state * torch.exp(-torch.relu(self.rate(passed)))


class Words(Integrated):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 3)

    def read(self, series):
        return self.embed(series).unbind(1)


def _notes(model, series=SERIES, times=TIMES):
    return [note for each in unrolled.explain_batch(model, series, times, target=0) for note in each.notes]


@pytest.mark.parametrize("made", [Integrated, Added])
def test_what_times_between_the_calls_contribute_is_noted(made):
    model = made()
    notes = [note for note in _notes(model) if note.startswith(SAID)]
    assert len(notes) == 2  # of each example
    assert notes[0].endswith("unrolled.account shows it by number")
    assert bool(unrolled.account(model, SERIES, TIMES, target=0).features["1"].any())  # as the note says


def test_times_between_words_are_noted():
    ids = torch.arange(12).reshape(2, 6) % 7
    assert sum(note.startswith(SAID) for note in _notes(Words(), ids)) == 2


class Read(Between):
    """The control: reads times as numbers of its steps."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 5)

    def forward(self, series, times):
        state = series.new_zeros(len(series), 5)
        for x in torch.cat([series, times[..., None]], dim=-1).unbind(1):
            state = self.cell(x, state)
        return self.head(state)


class Masked(Between):
    """The control: keeps the state where a step is missing."""

    def forward(self, series, times):
        state, given = series.new_zeros(len(series), 5), (times > times.mean(dim=1, keepdim=True)).to(series)
        for x, there in zip(self.read(series), given.unbind(1), strict=True):
            state = there[:, None] * self.cell(x, state) + (1 - there[:, None]) * state
        return self.head(state)


@pytest.mark.parametrize("made", [Between, Decayed, Read, Masked])
def test_times_that_contribute_nothing_between_the_calls_have_no_such_note(made):
    """The control: as numbers that are read at the steps, and as factors that are held, of which another note tells."""
    notes = _notes(made())
    assert not any("between the calls" in note for note in notes)
    assert any("argument 1 enters only through factors that are held" in note for note in notes) is (made is Decayed)
