"""Texts in a list or a dictionary are named by their ids, as those that are arguments themselves."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from whole_model_zoo import WORDS, D, E

IDS = torch.tensor([[3, 7, 1, 0], [5, 2, 9, 4]])


class Reader(nn.Module):
    """Finds its text in what it is given."""

    def __init__(self, find):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(WORDS, E), nn.GRU(E, D, batch_first=True), nn.Linear(D, 2)
        self.find = find
        self.double()

    def forward(self, *given):
        last = [self.rnn(self.embed(ids))[0][:, -1] for ids in self.find(*given)]
        return self.head(torch.cat(last))


NESTED = {
    "a dictionary": (lambda given: [given["ids"]], ({"ids": IDS},)),
    "a list": (lambda given: given, ([IDS],)),
    "a list in a dictionary": (lambda given: given["texts"], ({"texts": [IDS]},)),
}


@pytest.mark.parametrize("name", NESTED)
def test_a_text_in_a_container_has_the_words_of_one_that_is_an_argument(name):
    find, args = NESTED[name]
    found, plain = (
        unrolled.account(Reader(find), *args, target=1),
        unrolled.account(Reader(lambda x: [x]), IDS, target=1),
    )
    torch.testing.assert_close(found.tokens, plain.tokens)
    assert found.words == plain.words == (("3", "7", "1", "0"), ("5", "2", "9", "4"))
    words = [["a", "b", "c"], ["d", "e", "f", "g"]]  # padding needs no word
    assert unrolled.account(Reader(find), *args, target=1, tokens=words).words[1] == ("d", "e", "f", "g")


def test_texts_of_several_lengths_have_their_own_words():
    texts = [torch.tensor([3, 7]), torch.tensor([5, 2, 9])]
    found = unrolled.account(Reader(lambda given: [each[None] for each in given]), texts, target=1)
    assert found.words == (("3", "7", "5", "2", "9"),) * 2  # each example is shown beside all texts
    assert found.tokens[0, :2].abs().min() > 0
    assert not found.tokens[0, 2:].any()
    assert not found.tokens[1, :2].any()  # the control
