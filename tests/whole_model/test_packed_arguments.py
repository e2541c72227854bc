"""An account of a packed batch names each token of an example by its id or its word, and those of others not at all."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

import unrolled
from unrolled.errors import ShapeError
from unrolled.explanation.tokens.token_names import PADDING_NAME

TEXTS = [[3, 4], [5, 6, 7, 8], [9]]
WORDS = [["a", "b"], ["c", "d", "e", "f"], ["g"]]


class Reads(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(11, 4), nn.GRU(4, 5), nn.Linear(5, 2)
        self.double()

    def forward(self, texts):
        vectors = PackedSequence(self.embed(texts.data), *texts[1:])
        return self.head(self.rnn(vectors)[1][0])


def packed(texts):
    return pack_sequence([torch.tensor(each) for each in texts], enforce_sorted=False)


@pytest.mark.parametrize("tokens", [None, WORDS], ids=["ids", "words"])
def test_each_example_has_the_names_of_its_own_tokens(tokens):
    model = Reads()
    found = unrolled.account(model, packed(TEXTS), target=1, tokens=tokens)
    for place, (ids, words) in enumerate(zip(TEXTS, WORDS, strict=True)):
        alone = unrolled.account(model, packed([ids]), target=1)
        named = list(zip(found.words[place], found.tokens[place].tolist(), strict=True))
        own = [(word, value) for word, value in named if word != PADDING_NAME]
        assert [word for word, _ in own] == (list(map(str, ids)) if tokens is None else words)
        assert [value for _, value in own] == pytest.approx(alone.tokens.tolist(), abs=1e-12)
        assert all(value == 0 for word, value in named if word == PADDING_NAME)
        assert alone.words == (tuple(map(str, ids)),)


def test_texts_of_one_token_and_words_that_are_too_few():
    model = Reads()
    found = unrolled.account(model, packed([[3], [4]]), target=1, tokens=[["a"], ["b"]])
    assert found.words == (("a",), ("b",))
    with pytest.raises(ShapeError, match="3 tokens for a text of 7"):
        unrolled.account(model, packed(TEXTS), target=1, tokens=[WORDS[0], WORDS[1][:3], WORDS[2]])
