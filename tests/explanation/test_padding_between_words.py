"""Words of a text with padding in its middle: each token but padding has one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import ShapeError


class Reads(nn.Module):
    def __init__(self, padding=None):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn = nn.Embedding(10, 4, padding_idx=padding), nn.GRU(4, 5, batch_first=True)
        self.head = nn.Linear(5, 2)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0][:, -1])


@pytest.mark.parametrize("padding", [None, 1])
def test_padding_between_words_needs_no_word(padding):
    number = padding or 0
    ids = torch.tensor([[5, 6, number, number, 7, number], [8, number, 9, 4, 3, number]])
    model = Reads(padding)
    words = [list("abc"), list("defg")]
    named = [("a", "b", "‹pad›", "‹pad›", "c", "‹pad›"), ("d", "‹pad›", "e", "f", "g", "‹pad›")]
    assert [each.tokens for each in unrolled.explain_batch(model, ids, target=0, tokens=words)] == named
    assert unrolled.explain(model, ids[:1], target=0, tokens=words[0]).tokens == named[0]
    for count in (2, 4):  # the controls
        with pytest.raises(ShapeError, match=f"{count} tokens for a sequence of 6"):
            unrolled.explain(model, ids[:1], target=0, tokens=list("abcd")[:count])
    whole = unrolled.explain(model, ids[:1], target=0, tokens=list("abcde"))  # that at the end alone has none
    assert whole.tokens == ("a", "b", "c", "d", "e", "‹pad›")


def test_padding_between_words_of_several_sequences_needs_no_word():
    class Pair(Reads):
        def forward(self, one, other):
            return self.head(self.rnn(self.embed(one))[1][0] - self.rnn(self.embed(other))[1][0])

    one, other = torch.tensor([[5, 0, 7]]), torch.tensor([[8, 9, 0, 3]])
    given = {"rnn, call 0": list("ab"), "rnn, call 1": list("cde")}
    found = unrolled.explain(Pair(), one, other, target=0, tokens=given)
    assert [each.tokens for each in found.sequences] == [("a", "‹pad›", "b"), ("c", "d", "‹pad›", "e")]
    with pytest.raises(ShapeError):
        unrolled.explain(Pair(), one + 1, other, target=0, tokens=given)
