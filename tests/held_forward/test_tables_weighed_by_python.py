"""A table of vectors that is multiplied by what Python made of ids: a note says that its rows are among the biases."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

V, D = 7, 4
IDS = torch.tensor([[1, 2, 3, 2]])


class Bag(nn.Module):
    """Adds the sum of the vectors of all words, whose weights ``weigh`` makes of the ids."""

    def __init__(self, weigh):
        super().__init__()
        torch.manual_seed(0)
        self.weigh, self.embed = weigh, nn.Embedding(V, D)
        self.rnn, self.head = nn.GRU(D, D, batch_first=True), nn.Linear(D, 2)
        self.double()

    def forward(self, ids):
        bag = self.weigh(ids).to(self.embed.weight.dtype) @ self.embed.weight
        return self.head(self.rnn(self.embed(ids) + bag[:, None])[0][:, -1])


def by_a_list(ids):
    weights = torch.zeros(len(ids), V)
    for row, words in enumerate(ids.tolist()):
        weights[row, words] = 1
    return weights


BY_PYTHON = {
    "a list": by_a_list,
    "numpy": lambda ids: torch.from_numpy((ids.numpy()[..., None] == torch.arange(V).numpy()).any(1)),
}
BY_TORCH = {
    "an operation that keeps the tokens": lambda ids: nn.functional.one_hot(ids, V).sum(1),
    "a constant": lambda ids: torch.ones(len(ids), V),
}


def notes_of(weigh):
    found = unrolled.account(Bag(weigh), IDS, target=0)
    return found, [note for note in found.notes if "numbers of Python" in note]


@pytest.mark.parametrize("name", BY_PYTHON)
def test_a_note_names_the_table(name):
    """The judge moves the words of the table: what they contribute is in the bias of that name."""
    found, notes = notes_of(BY_PYTHON[name])
    (note,) = notes
    assert "reads embed.weight at such numbers" in note
    assert abs(float(found.biases["embed.weight"])) > 1e-3
    changed = IDS.clone()
    changed[0, 0] = 5
    other = unrolled.account(Bag(BY_PYTHON[name]), changed, target=0)
    assert abs(float(other.biases["embed.weight"] - found.biases["embed.weight"])) > 1e-4


@pytest.mark.parametrize("name", BY_TORCH)
def test_weights_that_torch_makes_are_not_noted(name):
    assert notes_of(BY_TORCH[name])[1] == []


def test_a_table_that_weighs_states_is_not_noted_where_ids_are_logged():
    class Tied(Bag):
        def forward(self, ids):
            self.last = ids.tolist()
            return self.rnn(self.embed(ids))[0][:, -1] @ self.embed.weight.T

    found = unrolled.account(Tied(None), IDS, target=0)
    assert not [note for note in found.notes if "numbers of Python" in note]


def test_a_table_that_a_parameter_turns_is_not_noted_where_lengths_are_taken():
    class Turned(Bag):
        def forward(self, ids):
            longest = int((ids != 0).sum(1).max())
            table = self.embed.weight @ self.rnn.weight_hh_l0[:D].T
            return self.head(self.rnn(nn.functional.embedding(ids[:, :longest], table))[0][:, -1])

    found = unrolled.account(Turned(None), IDS, target=0)
    assert found.closes
    assert not [note for note in found.notes if "numbers of Python" in note]


def test_a_table_that_is_read_at_a_list_of_ids_is_noted_and_at_other_numbers_not():
    class Listed(Bag):
        def forward(self, ids):
            bag = torch.stack([self.embed.weight[self.weigh(words)].sum(0) for words in ids.tolist()])
            return self.head(self.rnn(self.embed(ids) + bag[:, None])[0][:, -1])

    for weigh, count in ((list, 1), (lambda _: [0, 5], 0)):
        notes = unrolled.account(Listed(weigh), IDS, target=0).notes
        assert len([note for note in notes if "reads embed.weight at such numbers" in note]) == count


class Greedy(nn.Module):
    """Reads the vector of the likeliest word of its first state, as ``read`` finds it."""

    def __init__(self, read):
        super().__init__()
        torch.manual_seed(0)
        self.read, self.embed, self.rnn, self.head = read, nn.Embedding(V, D), nn.GRUCell(D, D), nn.Linear(D, V)
        self.double()

    def forward(self, ids):
        state = self.rnn(self.embed(ids[:, 0]))
        return self.head(self.rnn(self.read(self.embed, self.head(state).argmax(1)), state))


CHOSEN_BY_PYTHON = {
    "tolist": lambda embed, word: embed(torch.tensor(word.tolist())),
    "item": lambda embed, word: torch.stack([embed.weight[each.item()] for each in word]),
    "a list as an index": lambda embed, word: embed.weight[word.tolist()],
}


@pytest.mark.parametrize("name", CHOSEN_BY_PYTHON)
def test_a_choice_of_the_model_that_python_reads_is_noted_as_ids_are(name):
    found = unrolled.account(Greedy(CHOSEN_BY_PYTHON[name]), IDS, target=0)
    assert abs(float(found.biases["embed.weight"])) > 1e-3
    assert any("numbers of Python and reads embed.weight at such numbers" in note for note in found.notes)


def test_a_choice_of_the_model_that_python_only_logs_is_not_noted():
    def logged(embed, word):
        seen.append(word.tolist())
        return embed(word)

    seen = []
    found = unrolled.account(Greedy(logged), IDS, target=0)
    assert seen
    assert "embed.weight" not in found.biases
    assert not [note for note in found.notes if "numbers of Python" in note]
