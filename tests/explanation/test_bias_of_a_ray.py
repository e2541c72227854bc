"""The bias of a ray is the output at states of zero; a note says where words or numbers make it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

SERIES = torch.randn(1, 5, 3, generator=torch.Generator().manual_seed(0)).double()
OTHER = torch.randn(1, 5, 3, generator=torch.Generator().manual_seed(1)).double()
IDS, OTHERS = torch.tensor([[3, 1, 4, 1, 5]]), torch.tensor([[2, 6, 5, 3, 5]])


class OfSeries(nn.Module):
    """Gives what ``made`` makes of the states of a series and of the series."""

    def __init__(self, made):
        super().__init__()
        torch.manual_seed(0)
        self.made, self.rnn, self.head = made, nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)
        self.double()

    def network(self, given):
        return self.rnn(given)[0]

    def forward(self, given):
        return self.made(self.head, self.network(given), given)


class OfWords(OfSeries):
    def __init__(self, made):
        super().__init__(made)
        self.embed = nn.Embedding(9, 3).double()

    def forward(self, given):
        vectors = self.embed(given)
        return self.made(self.head, self.network(vectors), vectors)


def at_zero(model, given, column):
    """Compute the output where the network returns zeros."""
    model.network = lambda _: torch.zeros(1, 5, 4).double()
    with torch.no_grad():
        return model(given.clone())[0, column].item()


def masked_mean(states, given):
    mask = (given.abs() > 0.2).double().mean(-1, keepdim=True)
    return (states * mask).sum(1) / mask.sum(1)


def scaled_without_gradients(head, states, given):
    with torch.no_grad():
        scale = given.abs().mean()
    return head(states[:, -1]).exp() * scale


def changed_in_place(head, states, given):
    return torch.acosh(1.5 + head(states[:, -1]) ** 2) + given.mul_(2.0).sum()


MADE = {
    "nothing": lambda head, states, _: head(states[:, -1]).exp(),
    "a factor": lambda head, states, given: head(states[:, -1]).exp() * given.abs().mean(),
    "a detached factor": lambda head, states, given: head(states[:, -1]).exp() * given.abs().mean().detach(),
    "a factor without gradients": scaled_without_gradients,
    "a summand": lambda head, states, given: torch.acosh(1.5 + head(states[:, -1]) ** 2) + given.sum(),
    "a summand that is changed in place": changed_in_place,
    "a factor of the states": lambda head, states, given: head(states[:, -1] * given.mean(1).norm()).exp(),
    "weights of the states": lambda head, states, given: head(masked_mean(states, given)).exp(),
    "a root of the states": lambda _, states, given: (states * given.mean()).norm(dim=1)[:, :2].exp(),
    "a root whose slope at zero is no number": (
        lambda _, states, given: (states * given.mean()).square().sum(1).sqrt()[:, :2].exp()
    ),
    "a summand of the other class": (
        lambda head, states, given: head(states[:, -1]).exp() + given.mean() * torch.tensor([1.0, 0.0])
    ),
}


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize(("kind", "given", "other"), [(OfSeries, SERIES, OTHER), (OfWords, IDS, OTHERS)])
def test_a_note_stands_where_the_output_at_states_of_zero_changes_with_what_the_model_is_given(
    kind, given, other, made
):
    model = kind(MADE[made])
    found = unrolled.explain(model, given, target=1)
    assert not found.biases
    assert any("a ray from states of zero" in note for note in found.notes)
    notes = [note for note in found.notes if "the output at states of zero" in note]
    before, after = at_zero(model, given, 1), at_zero(model, other, 1)
    assert found.ledger.bias == pytest.approx(before)
    assert len(notes) == (abs(before - after) > 1e-12)
    what = "vectors of embed.weight" if kind is OfWords else "numbers of the arguments"
    assert all(f"{before:+.2g}" in note and what in note and "unrolled.account" in note for note in notes)
    assert torch.is_grad_enabled()


def test_a_ray_that_was_asked_for_has_the_note_as_well():
    model = OfSeries(lambda head, states, given: head(states[:, -1]) + given.sum())
    assert any("the output at states of zero" in note for note in unrolled.explain(model, SERIES, readout="ray").notes)
    model = OfSeries(lambda head, states, _: head(states[:, -1]))
    assert not unrolled.explain(model, SERIES, readout="ray").notes


def test_a_difference_of_classes_reads_what_either_reads():
    model = OfSeries(MADE["a summand of the other class"])
    found = unrolled.explain(model, SERIES, target=1, against=0)
    assert any("numbers of the arguments" in note for note in found.notes)


@pytest.mark.parametrize(("readout", "size", "notes"), [("ray", 1.0, 1), ("ray", 1e-6, 0), ("held", 1.0, 0)])
def test_a_small_part_has_no_note_and_a_held_readout_has_one_of_its_own(readout, size, notes):
    model = OfSeries(lambda head, states, given: head(states[:, -1]) - head.bias + size * given.sum())
    found = unrolled.explain(model, SERIES, target=1, readout=readout)
    assert sum("the output at states of zero" in note for note in found.notes) == notes
    assert sum("reads past its recurrent network" in note for note in found.notes) == (size == 1.0)
