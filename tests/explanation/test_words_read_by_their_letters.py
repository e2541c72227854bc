"""A word that a step reads by several rows of a table, as by its letters, is named once."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

IDS, WORDS = torch.tensor([[7, 3, 9]]), ["seven", "three", "nine"]


class ByLetters(nn.Module):
    """Looks up the letters of each word in a table of its own."""

    def __init__(self, read, networks):
        super().__init__()
        torch.manual_seed(0)
        self.read, self.words, self.letters = read, nn.Embedding(12, 6), nn.Embedding(20, 6)
        self.conv, self.head = nn.Conv1d(6, 6, 2), nn.Linear(5, 2)
        self.rnns = nn.ModuleList(nn.GRU(6, 5, batch_first=True) for _ in range(networks))
        self.register_buffer("spelling", (torch.arange(12)[:, None] * 3 + torch.tensor([1, 5, 2])) % 20)
        self.double()

    def forward(self, ids):
        vectors = self.read(self, ids)
        return self.head(sum(rnn(vectors)[0][:, -1] for rnn in self.rnns))


def convolved(model, ids):
    letters = model.letters(model.spelling[ids])
    return model.conv(letters.flatten(0, 1).transpose(1, 2)).amax(-1).view(*ids.shape, -1)


READ = {
    "the mean of the letters": lambda model, ids: model.letters(model.spelling[ids]).mean(2),
    "a convolution of the letters": convolved,
    "the word and its letters": lambda model, ids: model.words(ids) + model.letters(model.spelling[ids]).mean(2),
}


@pytest.mark.parametrize("networks", [1, 2])
@pytest.mark.parametrize("way", READ)
def test_a_word_that_is_read_by_its_letters_is_named_once(way, networks):
    model = ByLetters(READ[way], networks)
    for tokens, expected in ((None, ("7", "3", "9")), (WORDS, tuple(WORDS))):
        found = unrolled.explain(model, IDS, target=1, tokens=tokens)
        assert {each.tokens for each in found.sequences} == {expected}
        assert not any("could not be found" in note for note in found.notes)


def test_several_words_that_one_step_reads_are_all_named():
    def pairs(model, ids):
        return model.words(ids).unflatten(1, (2, 2)).sum(2)

    found = unrolled.explain(ByLetters(pairs, 1), torch.tensor([[7, 3, 9, 3]]), target=1)
    assert found.tokens == ("7 3", "9 3")
