"""A batch that is a list of texts of different lengths: every position bears its own token, or a note says why not."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_sequence

import unrolled

TEXTS = [torch.tensor([3, 4, 5]), torch.tensor([6, 7, 8, 9, 1]), torch.tensor([2, 2])]
WORDS = [["a", "b", "c"], ["d", "e", "f", "g", "h"], ["i", "k"]]
UNKNOWN = "which token each position reads could not be found"


class Model(nn.Module):
    """Reads a batch as ``read`` makes it ready."""

    def __init__(self, read):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(10, 4), nn.GRU(4, 5), nn.Linear(5, 2)
        self.read = read

    def forward(self, *texts):
        return self.head(self.rnn(self.read(self, *texts))[1][-1])


def padded(model, texts):
    lengths = [len(each) for each in texts]
    return pack_padded_sequence(model.embed(pad_sequence(texts)), lengths, enforce_sorted=False)


def packed(model, texts):
    ids = pack_sequence(texts, enforce_sorted=False)
    return ids._replace(data=model.embed(ids.data))


@pytest.mark.parametrize("read", [padded, packed])
@pytest.mark.parametrize("kind", [list, tuple])
def test_positions_bear_the_ids_and_the_words_of_their_text(read, kind):
    model = Model(read)
    found = unrolled.explain_batch(model, kind(TEXTS), target=1)
    assert [each.tokens for each in found] == [tuple(str(int(k)) for k in text) for text in TEXTS]
    assert not any(UNKNOWN in note for each in found for note in each.notes)
    named = unrolled.explain_batch(model, kind(TEXTS), target=1, tokens=WORDS)
    assert [list(each.tokens) for each in named] == WORDS
    for one, text in zip(found, TEXTS, strict=True):  # the contributions are those of the text alone
        alone = unrolled.explain(model, [text], target=1)
        assert one.token_scores == pytest.approx(alone.token_scores, abs=1e-5)


@pytest.mark.parametrize("read", [padded, packed])
def test_texts_that_are_arguments_of_their_own_are_not_joined(read):
    model = Model(lambda self, *texts: read(self, list(texts)))
    for each in unrolled.explain_batch(model, *TEXTS, target=1):
        assert each.tokens == tuple(f"x{k}" for k in range(len(each)))
        assert any(UNKNOWN in note for note in each.notes)
