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
    assert note.endswith(
        "which is more than rounding: no gradient by the states shows it; change the input and run the model"
    )


def test_numbers_that_decide_nothing_leave_no_remainder():
    found = unrolled.explain(Classifier(lambda states: 0.0 * states.max().item()), IDS, target=1)
    assert not any("remainder" in note for note in found.notes)
    assert found.closes


@pytest.mark.parametrize("way", TAKEN)
def test_the_model_is_not_run_thousands_of_times_for_what_no_gradient_shows(way):
    model, runs = Classifier(TAKEN[way]), []
    model.register_forward_hook(lambda *_: runs.append(1))
    found = unrolled.explain(model, IDS, target=1, every_class=False)
    assert len(runs) < 300
    # the readout is that of the model without the numbers, whose head is linear
    plain = unrolled.explain(Classifier(lambda _: 0.0), IDS, target=1, every_class=False)
    torch.testing.assert_close(found.triangle.contributions, plain.triangle.contributions, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_no_finer_type_is_advised_for_a_remainder_that_no_rounding_makes(dtype):
    found = unrolled.explain(Classifier(lambda states: 5 * states.max().item()).to(dtype), IDS, target=1)
    (note,) = (note for note in found.notes if note.startswith("the remainder"))
    assert "more than rounding" in note
    assert "model." not in note


def test_a_finer_type_is_advised_for_a_remainder_that_rounding_makes():
    """The control: a ray in float16, whose numbers taken out decide nothing."""
    model = Classifier(lambda states: 0.0 * states.max().item())
    model.head = nn.Sequential(nn.LayerNorm(4), model.head)
    found = unrolled.explain(model.half(), IDS, target=1)
    (note,) = (note for note in found.notes if note.startswith("the remainder"))
    assert "which is rounding or the readout's; convert the model: model.float()" in note
