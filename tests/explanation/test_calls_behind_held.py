"""A network that the output reads only through what is held has no n-grams to show, and a note says so."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import StrictError
from unrolled.explanation.calls import calls_behind_held

TEXT, QUESTION, ANOTHER = torch.tensor([[4, 9, 2, 7]]), torch.tensor([[5, 1, 8]]), torch.tensor([[3, 6, 2]])
NOTE = "only through what is held"


class Reader(nn.Module):
    """Reads a text by one network, and a question by another one."""

    def __init__(self, shared=False):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(12, 6), nn.GRU(6, 5, batch_first=True)
        self.asked = self.rnn if shared else nn.GRU(6, 5, batch_first=True)
        self.codes, self.head = nn.Embedding(12, 6), nn.Linear(5, 2)
        self.codes.weight.data.mul_(0.3)

    def states(self, text, question):
        return self.rnn(self.embed(text))[0], self.asked(self.embed(question))[1][0]


class Attends(Reader):
    def forward(self, text, question):
        read, query = self.states(text, question)
        weights = torch.softmax((read * query[:, None]).sum(2, keepdim=True), dim=1)
        return self.head((weights * read).sum(1))


class Adds(Reader):
    def forward(self, text, question):
        read, query = self.states(text, question)
        weights = torch.softmax((read * query[:, None]).sum(2, keepdim=True), dim=1)
        return self.head((weights * read).sum(1) + query)


class LeavesOut(Reader):
    def forward(self, text, question):
        read, _ = self.states(text, question)
        return self.head(read[:, -1])


class Chooses(Reader):
    """Looks up the nearest code of each state, as a quantised representation does."""

    def forward(self, text, question):
        states = self.asked(self.embed(question))[0]
        near = (states[:, :, None] - self.codes.weight[:, :5]).square().sum(-1).argmin(-1)
        return self.head(self.rnn(self.codes(near))[0][:, -1])


class Highest(Reader):
    """Reads the higher of two texts: the other one loses a maximum."""

    def forward(self, text, question):
        ends = [self.rnn(self.embed(ids))[1][0].sum(1, keepdim=True) for ids in (text, question)]
        return self.head(torch.stack(ends).amax(0).expand(-1, 5))


class Waits(Chooses):
    """Does not end where a state has another sign."""

    positive = True

    def forward(self, text, question):
        states = self.asked(self.embed(question))[0]
        while bool(states[0, -1, 0] > 0) is not self.positive:
            self.rnn(self.embed(text))
        near = (states[:, :, None] - self.codes.weight[:, :5]).square().sum(-1).argmin(-1)
        return self.head(self.rnn(self.codes(near))[0][:, -1])


def made(kind, **options):
    torch.manual_seed(0)
    return kind(**options).double().eval()


def depends(model):
    """Tell whether another question gives another output: the model's own word for it."""
    with torch.no_grad():
        return not torch.equal(model(TEXT, QUESTION), model(TEXT, ANOTHER))


def notes(model):
    found = unrolled.explain(model, TEXT, QUESTION, target=1)
    assert abs(found.ledger.remainder) < 1e-12
    return [note for note in found.notes if NOTE in note]


@pytest.mark.parametrize("kind", [Attends, Chooses])
def test_a_network_that_acts_only_through_what_is_held_is_named(kind):
    model = made(kind)
    assert depends(model)
    (note,) = notes(model)
    assert note.startswith("the output reads asked only through")
    with pytest.raises(StrictError, match="reads asked only"):
        unrolled.explain(model, TEXT, QUESTION, target=1, strict=True)


@pytest.mark.parametrize(("kind", "reads"), [(Adds, True), (LeavesOut, False)])
def test_a_network_that_is_read_or_not_read_at_all_is_not_named(kind, reads):
    model = made(kind)
    assert depends(model) is reads
    assert notes(model) == []


def test_of_a_network_that_is_called_twice_one_call_may_act_only_through_what_is_held():
    (note,) = notes(made(Attends, shared=True))
    assert note.startswith("the output reads some sequences of rnn only through")


class ManyQuestions(Reader):
    """Reads each word of the question by a call of its own."""

    def forward(self, text, question):
        read = self.rnn(self.embed(text))[0]
        query = sum(self.rnn(self.embed(word))[1][0] for word in question.split(1, dim=1))
        weights = torch.softmax((read * query[:, None]).sum(2, keepdim=True), dim=1)
        return self.head((weights * read).sum(1))


def test_the_number_of_runs_does_not_grow_with_the_calls():
    counts = []
    for words in (2, 12):
        model, runs = made(ManyQuestions), []
        model.register_forward_pre_hook(lambda *_, runs=runs: runs.append(1))
        question = torch.arange(words)[None] % 11 + 1
        found = unrolled.explain(model, TEXT, question, target=1)
        assert sum(NOTE in note for note in found.notes) == 1
        counts.append(len(runs))
    assert counts[0] == counts[1]


def test_a_call_that_loses_a_maximum_over_calls_is_not_named():
    model = made(Highest)
    assert len(unrolled.explain(model, TEXT, QUESTION, target=1).sequences) == 1
    assert notes(model) == []


def test_a_loop_that_does_not_end_with_other_states_is_left(monkeypatch):
    monkeypatch.setattr(calls_behind_held, "LOOP", 50)
    model = made(Waits)
    with torch.no_grad():
        model.positive = bool(model.asked(model.embed(QUESTION))[1][0][0, 0] > 0)
    assert len(notes(model)) == 1  # smaller states of the same signs tell


def test_every_example_of_a_batch_has_the_note():
    found = unrolled.explain_batch(made(Attends), TEXT.expand(2, -1), torch.cat([QUESTION, ANOTHER]), target=1)
    assert all(any(NOTE in note for note in each.notes) for each in found)
