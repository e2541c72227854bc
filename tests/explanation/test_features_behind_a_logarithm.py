"""Numbers that a network reads only through held results: no features are shown, and a note names what is held."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import unrolled
from unrolled.errors import StrictError, UsageError

NOTE = "held last: {}); unrolled.account may follow"


class Forecaster(nn.Module):
    """Reads a series through a function."""

    def __init__(self, function, *, by_hand=False, packed=False, start=None):
        super().__init__()
        self.by_hand, self.packed, self.start = by_hand, packed, start
        self.rnn = nn.GRU(2, 4, batch_first=True)
        self.cell = nn.GRUCell(2, 4)
        self.head = nn.Linear(4, 1)
        self.function = function

    def forward(self, series):
        x = self.function(series)
        if self.by_hand:
            state = x.new_zeros(len(x), 4)
            for step in x.unbind(1):
                state = self.cell(step, state)
            return self.head(state)
        if self.packed:
            x = pack_padded_sequence(x, torch.full((len(x),), x.shape[1]), batch_first=True)
        initial = None if self.start is None else self.start(series)
        return self.head(self.rnn(x, initial)[1][-1])


FORMS = [{}, {"by_hand": True}, {"packed": True}]
HELD = {
    "log": lambda x: torch.log(x.abs() + 1),
    "log10": lambda x: 3 * torch.log10(x.abs() + 2)[..., :2] - 1,
    "softmax": lambda x: x.softmax(-1),
}


@pytest.fixture
def series():
    torch.manual_seed(0)
    return torch.randn(1, 5, 2)


@pytest.mark.parametrize("form", FORMS, ids=["network", "cell", "packed"])
@pytest.mark.parametrize("name", HELD)
def test_a_note_and_the_refusal_of_names_say_what_is_held(name, form, series):
    model = Forecaster(HELD[name], **form)
    found = unrolled.explain(model, series)
    assert found.features is None
    assert sum(NOTE.format(name) in note for note in found.notes) == 1
    with pytest.raises(UsageError, match=rf"held last: {name}"):
        unrolled.explain(model, series, features=["a", "b"])
    with pytest.raises(StrictError, match=rf"held last: {name}"):
        unrolled.explain(model, series, strict=True)
    assert unrolled.account(model, series).features is not None  # it follows them


@pytest.mark.parametrize("form", FORMS, ids=["network", "cell", "packed"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x,
        lambda x: torch.cat([x[..., :1], torch.log(x[..., 1:].abs() + 1)], -1),
        torch.ones_like,
    ],
    ids=["numbers", "some numbers", "constants"],
)
def test_the_control_what_reads_numbers_or_none_has_no_note(function, form, series):
    found = unrolled.explain(Forecaster(function, **form), series)
    assert not [note for note in found.notes if "held last" in note]


def test_the_control_a_softmax_beside_the_steps_is_not_named(series):
    """The network reads constants and begins at what a softmax makes of the numbers."""
    model = Forecaster(torch.ones_like, start=lambda x: x.mean(1).softmax(-1).repeat(1, 2)[None])
    found = unrolled.explain(model, series)
    assert found.features is None
    assert not [note for note in found.notes if "held last" in note]
