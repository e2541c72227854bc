"""A number that ids pick from a held result, such as the probability of a class, is held as that result is."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import unrolled
from whole_model_zoo import WORDS, D, E, ids

CLASSES = torch.tensor([2, 0, 1])
LENGTH = 5


class Classifier(nn.Module):
    """Returns probabilities, or those that ``pick`` takes of them."""

    def __init__(self, pick=None, first=lambda logits: logits.softmax(-1)):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(WORDS, E), nn.GRU(E, D, batch_first=True), nn.Linear(D, 3)
        self.prior = nn.Parameter(torch.tensor([0.1, 0.2, 0.3]))
        self.pick, self.first = pick, first
        self.double()

    def forward(self, tokens, classes=None):
        probabilities = self.first(self.head(self.rnn(self.embed(tokens))[0][:, -1]))
        return probabilities if self.pick is None else self.pick(self, probabilities, classes)


def rows(classes):
    return torch.arange(len(classes))


PICKS = {
    "gather": lambda _, p, classes: p.gather(1, classes[:, None])[:, 0],
    "take_along_dim": lambda _, p, classes: torch.take_along_dim(p, classes[:, None], 1)[:, 0],
    "an index": lambda _, p, classes: p[rows(classes), classes],
    "index_select": lambda _, p, classes: p.index_select(1, classes).diagonal(),
    "embedding": lambda _, p, classes: F.embedding(classes, p.T).diagonal(),
}


@pytest.mark.parametrize("first", [lambda z: z.softmax(-1), torch.exp], ids=["softmax", "exp"])
@pytest.mark.parametrize("name", PICKS)
def test_a_picked_probability_has_the_account_of_its_class(name, first):
    tokens = ids(3, LENGTH)
    found = unrolled.account(Classifier(PICKS[name], first), tokens, CLASSES)
    expected = unrolled.account(Classifier(first=first), tokens, target=lambda out: out[rows(CLASSES), CLASSES])
    assert found.closes
    assert list(found.texts) == ["0"]  # the classes are no tokens
    torch.testing.assert_close(found.tokens, expected.tokens, rtol=1e-9, atol=1e-12)
    assert found.tokens.abs().max() > 1e-4
    assert found.notes == expected.notes


def test_what_ids_pick_of_a_table_beside_it_is_theirs():
    def scaled(model, p, classes):
        return PICKS["gather"](model, p, classes) * model.prior[classes]

    tokens = ids(3, LENGTH)
    found = unrolled.account(Classifier(scaled), tokens, CLASSES)
    assert found.closes
    torch.testing.assert_close(found.texts["1"], found.output[:, None].reshape(found.texts["1"].shape))
    assert any("argument 0 enters only through factors that are held" in note for note in found.notes)


@pytest.mark.parametrize("name", ["gather", "take_along_dim", "an index"])
def test_no_note_of_a_ray_takes_states_of_zero_for_a_table(name):
    tokens = ids(1, LENGTH)
    found = unrolled.explain(Classifier(PICKS[name]), tokens, CLASSES[:1])
    assert any("a ray from states of zero" in note for note in found.notes)
    assert not any("the output at states of zero" in note for note in found.notes)
    beside = Classifier(lambda model, p, classes: PICKS[name](model, p, classes) * model.prior[classes])
    notes = unrolled.explain(beside, tokens, CLASSES[:1], readout="ray").notes  # the control: a table is read
    assert any("the output at states of zero" in note and "prior" in note for note in notes)
