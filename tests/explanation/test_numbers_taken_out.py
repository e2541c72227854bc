"""What a model makes of numbers that it takes out of torch is the remainder, and a note says how to see it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

IDS = torch.tensor([[1, 2, 3, 4]])


class Classifier(nn.Module):
    def __init__(self, take):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(9, 4), nn.LSTM(4, 4, batch_first=True), nn.Linear(4, 2)
        self.take = take

    def forward(self, ids):
        states = self.rnn(self.embed(ids))[0]
        return self.head(states[:, -1]) + self.take(states)


TAKEN = {
    "item": lambda states: 5 * states.max().item(),
    "numpy": lambda states: torch.from_numpy(5 * states.detach().numpy().max(axis=(1, 2)))[:, None],
    "a list": lambda states: 5 * torch.tensor(states[:, -1, :1].tolist()),
}


@pytest.mark.parametrize("way", TAKEN)
def test_what_is_made_of_numbers_taken_out_is_the_remainder_and_a_note_says_how_to_see_it(way):
    found = unrolled.explain(Classifier(TAKEN[way]), IDS, target=1)
    made = float(unrolled.explain(Classifier(lambda _: 0.0), IDS, target=1).ledger.logit)
    assert found.ledger.remainder == pytest.approx(found.ledger.logit - made, rel=1e-4)
    (ray,) = (note for note in found.notes if note.startswith("the readout is a ray"))
    assert "takes numbers out of torch" in ray
    (note,) = (note for note in found.notes if note.startswith("the remainder"))
    assert note.endswith("No gradient by the states shows what stays then: change the input and run the model")


def test_numbers_that_decide_nothing_leave_no_remainder():
    found = unrolled.explain(Classifier(lambda states: 0.0 * states.max().item()), IDS, target=1)
    assert not any("remainder" in note for note in found.notes)
    assert found.closes
