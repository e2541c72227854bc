"""Words of a padded text stand at its tokens, also where a token contributes nothing, as behind a maximum."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import ShapeError


class Largest(nn.Module):
    """Keeps the largest number of each column; the vectors of later ids are smaller."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding.from_pretrained(torch.tensor([[0.0, 0.0], [3.0, 2.0], [-1.0, -2.0], [-2.0, -3.0]]))
        self.head = nn.Linear(2, 2)

    def forward(self, ids):
        return self.head(self.embed(ids).amax(dim=1))


def labels(ids, words):
    found = unrolled.account(Largest(), torch.tensor(ids), target=1, tokens=words)
    rows = [row for row in found.to_records() if row["kind"] == "token"]
    return [row["label"] for row in rows], [row["contribution"] != 0 for row in rows]


@pytest.mark.parametrize(
    ("ids", "named"),
    [
        ([0, 1, 2], ["‹pad›", "a", "b"]),
        ([1, 2, 0], ["a", "b", "‹pad›"]),
        ([1, 0, 2], ["a", "‹pad›", "b"]),
        ([0, 0, 1, 2], ["‹pad›", "‹pad›", "a", "b"]),
        ([0, 1, 2, 0], ["‹pad›", "a", "b", "‹pad›"]),
    ],
)
def test_words_stand_beside_padding_though_a_token_contributes_nothing(ids, named):
    found, contributes = labels([ids], ["a", "b"])
    assert found == named
    assert contributes == [name == "a" for name in named]


def test_words_of_a_batch_that_is_padded_at_the_left():
    found, _ = labels([[0, 1, 2], [1, 2, 3]], [["a", "b"], ["a", "b", "c"]])
    assert found == ["‹pad›", "a", "b", "a", "b", "c"]


def test_as_many_words_as_ids_name_all_of_them_and_too_few_are_refused():
    assert labels([[0, 1, 2]], ["x", "a", "b"])[0] == ["x", "a", "b"]
    with pytest.raises(ShapeError, match="1 tokens for a text of 3"):
        labels([[0, 1, 1]], ["a"])


class Reads(nn.Module):
    """Sums the vectors of a text, without those of id 1 where ``masks``, beside the largest of another text."""

    def __init__(self, table, masks=False):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.masks = table, masks
        self.other, self.head = nn.Embedding(9, 4, padding_idx=0), nn.Linear(4, 2)

    def forward(self, ids, other=None):
        read = self.embed(ids)
        if read.dim() == 3:
            read = (read * (ids != 1)[..., None] if self.masks else read).sum(dim=1)
        return self.head(read if other is None else read + self.other(other).amax(dim=1))


def names(model, *texts, words):
    found = unrolled.account(model, *map(torch.tensor, texts), target=1, tokens=words)
    return [row["label"] for row in found.to_records() if row["kind"] == "token"]


@pytest.mark.parametrize(
    "model",
    [
        lambda: Reads(nn.Embedding(9, 4, padding_idx=1)),
        lambda: Reads(nn.EmbeddingBag(9, 4, padding_idx=1, mode="sum")),
        lambda: Reads(nn.Embedding(9, 4), masks=True),
    ],
)
@pytest.mark.parametrize(
    ("ids", "named"),
    [
        ([0, 5, 2, 1], ["a", "b", "c", "‹pad›"]),
        ([1, 0, 5, 2], ["‹pad›", "a", "b", "c"]),
        ([5, 0, 6, 1], ["a", "b", "c", "‹pad›"]),
        ([0, 5, 1, 1], ["a", "b", "‹pad›", "‹pad›"]),
    ],
)
def test_a_word_of_the_id_0_is_no_padding_where_another_id_is(model, ids, named):
    words = [name for name in named if name != "‹pad›"]
    assert names(model(), [ids], words=words) == named


def test_each_text_has_the_padding_of_its_own_table():
    model = Reads(nn.Embedding(9, 4, padding_idx=1))
    found = names(model, [[0, 5, 2, 1]], [[5, 1, 7, 0]], words=list("abcxyz"))
    assert found == ["a", "b", "c", "‹pad›", "x", "y", "z", "‹pad›"]
    found = names(model, [[0, 5, 2], [0, 5, 1]], [[5, 6, 0], [7, 8, 5]], words=[list("abcxy"), list("abxyz")])
    assert found == ["a", "b", "c", "x", "y", "‹pad›", "a", "b", "‹pad›", "x", "y", "z"]
