"""A series that reads one id at every step beside its numbers, as that of a shop: its steps are numbered."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

X = torch.randn(1, 5, 2, generator=torch.Generator().manual_seed(0))
SHOP = torch.full((1, 5), 3)
WEEKDAYS = torch.tensor([[0, 1, 2, 3, 4]])


class Sales(nn.Module):
    """Reads the sales of the day before beside the id of each day, as forecasting models of several shops do."""

    def __init__(self, shifted=False, steps=False):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn = nn.Embedding(5, 3), (nn.GRUCell(5, 6) if steps else nn.GRU(5, 6, batch_first=True))
        self.head, self.shifted = nn.Linear(6, 1), shifted

    def forward(self, ids, x):
        read = torch.cat([self.embed(ids), torch.roll(x, 1, dims=1) if self.shifted else x], dim=-1)
        read = read[:, 1:] if self.shifted else read
        if isinstance(self.rnn, nn.GRU):
            return self.head(self.rnn(read)[0][:, -1])
        state = None
        for each in read.unbind(1):
            state = self.rnn(each, state)
        return self.head(state)


@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("shifted", [False, True])
def test_steps_that_read_one_id_are_numbered(shifted, steps):
    model = Sales(shifted, steps)
    found = unrolled.explain(model, SHOP, X)
    assert found.tokens == tuple(f"x{t}" for t in range(4 if shifted else 5))
    assert not [note for note in found.notes if "could not be found" in note]
    (batch,) = unrolled.explain_batch(model, SHOP, X)
    assert batch.tokens == found.tokens


@pytest.mark.parametrize("steps", [False, True])
def test_ids_that_tell_steps_apart_and_words_that_were_given_stay(steps):
    model = Sales(steps=steps)
    assert unrolled.explain(model, WEEKDAYS, X).tokens == ("0", "1", "2", "3", "4")
    days = ["Mon"] * 5
    assert unrolled.explain(model, SHOP, X, tokens=days).tokens == tuple(days)


def test_a_text_of_one_word_keeps_its_ids():
    class Text(Sales):
        def forward(self, ids):
            return super().forward(ids, X)

    assert unrolled.explain(Text(), SHOP).tokens == ("3",) * 5


class BesideText(nn.Module):
    """Reads a text, and numbers elsewhere: of the whole text, as weights of its mean, or by a network of their own."""

    def __init__(self, numbers):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.numbers = nn.Embedding(5, 3), nn.GRU(3, 6, batch_first=True), numbers
        self.series, self.head = nn.GRU(2, 6, batch_first=True), nn.Linear(6, 1)

    def forward(self, ids, x):
        states = self.rnn(self.embed(ids))[0]
        if self.numbers == "weights":
            return self.head((states * x[..., :1]).mean(1))
        past = self.series(x)[0] if self.numbers == "series" else x.sum()
        return self.head((states + past).mean(1))


@pytest.mark.parametrize("numbers", ["whole", "weights", "series"])
def test_a_text_of_one_word_keeps_its_ids_where_its_steps_read_no_numbers(numbers):
    found = unrolled.explain(BesideText(numbers), SHOP, X)
    assert found.sequences[0].tokens == ("3",) * 5
    if numbers == "series":
        assert found.sequences[1].tokens == ("x0", "x1", "x2", "x3", "x4")


@pytest.mark.parametrize("steps", [False, True])
def test_steps_that_read_one_id_from_the_last_to_the_first_have_the_names_of_their_numbers(steps):
    class Backwards(Sales):
        def forward(self, ids, x):
            return super().forward(ids, x.flip(1))

    names = ("x4", "x3", "x2", "x1", "x0")
    assert unrolled.explain(Backwards(steps=steps), SHOP, X).tokens == names
    assert unrolled.explain(Sales(steps=steps), SHOP, X).tokens == names[::-1]  # the control
