"""What an account says of an example is what it says of that example alone, whatever order the model puts them in."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import unrolled

LENGTHS = (3, 6, 4)


class Reordered(nn.Module):
    """Reads its texts in another order, and returns the outputs in it or in the order of the texts."""

    def __init__(self, order, restores=False, size=1.0):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(60, 6, padding_idx=0), nn.GRU(6, 5, batch_first=True)
        self.head, self.order, self.restores, self.size = nn.Linear(5, 2), torch.tensor(order), restores, size

    def forward(self, ids):
        ids = ids[self.order]
        lengths = (ids != 0).sum(1)
        packed = pack_padded_sequence(self.embed(ids), lengths, batch_first=True, enforce_sorted=False)
        output = self.size * self.head(self.rnn(packed)[1][-1])
        return output[self.order.argsort()] if self.restores else output


class TwoTexts(nn.Module):
    """Compares each text with the text of another example."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(60, 6), nn.Linear(12, 2)

    def forward(self, first, second):
        return self.head(torch.cat([self.embed(first).mean(1), self.embed(second.roll(1, 0)).mean(1)], 1))


def padded(time, lengths=LENGTHS):
    ids = torch.randint(1, 60, (len(lengths), time))
    for row, length in enumerate(lengths):
        ids[row, length:] = 0
    return ids


def remainder(found):
    """The largest remainder, relative to the sum of the sizes of what contributed."""
    return float((found.remainder.abs() / (found.tokens.abs().sum(1) + found.output.abs())).max())


# as many steps as examples, and others; a batch of as many examples as classes
@pytest.mark.parametrize(
    ("order", "lengths", "time"),
    [([2, 0, 1], LENGTHS, 6), ([2, 1, 0], (3, 1, 2), 3), ([1, 0], (4, 5), 5), ([1, 0], (1, 2), 2)],
)
@pytest.mark.parametrize("restores", [False, True])
def test_every_example_has_its_own_contributions_and_words(order, lengths, time, restores):
    model, ids = Reordered(order, restores).double().eval(), padded(time, lengths)
    found = unrolled.account(model, ids, target=1)
    assert found.exact
    assert remainder(found) < 1e-12
    alone = Reordered([0]).double().eval()
    alone.load_state_dict(model.state_dict())
    for place, row in enumerate(range(len(order)) if restores else order):
        one = unrolled.account(alone, ids[row : row + 1], target=1)
        torch.testing.assert_close(found[place].output, one.output)
        torch.testing.assert_close(found[place].tokens, one.tokens)
        assert found[place].words == one.words


def test_a_text_in_two_places_contributes_to_both():
    model = Reordered([0, 0, 1]).double().eval()
    found = unrolled.account(model, padded(6), target=1)
    assert found.exact
    by_text = [one.tokens.reshape(3, 6).abs().sum(1) > 0 for one in found]
    assert [row.tolist() for row in by_text] == [[True, False, False], [True, False, False], [False, True, False]]


def test_words_of_a_text_that_is_moved_follow_it_and_those_of_another_stay():
    first, second = padded(4, (4, 4, 4)), padded(2, (2, 2, 2))
    model = TwoTexts().double().eval()
    found = unrolled.account(model, first, second, target=1)
    moved = second.roll(1, 0)
    expected = tuple(tuple(map(str, (*a, *b))) for a, b in zip(first.tolist(), moved.tolist(), strict=True))
    assert found.words == expected
    words = [[f"{name}{row}{place}" for name, n in (("a", 4), ("b", 2)) for place in range(n)] for row in range(3)]
    named = unrolled.account(model, first, second, target=1, tokens=words)
    assert [one.words[0][0] for one in named] == ["a00", "a10", "a20"]
    assert [one.words[0][-1] for one in named] == ["b21", "b01", "b11"]
    assert found.exact
    for place in range(3):
        one = unrolled.account(model, first[[place]], moved[[place]], target=1)
        torch.testing.assert_close(found[place].tokens, one.tokens)


@pytest.mark.parametrize("size", [1.0, 1e-4, 1e-9])
def test_outputs_of_any_size_are_told_apart(size):
    model = Reordered([2, 0, 1], restores=True, size=size).double().eval()
    found = unrolled.account(model, padded(6), target=1)
    assert found.exact
    assert remainder(found) < 1e-12
    # as if the axis counted examples: the remainder would be as large as the outputs differ
    wrong = (found.output - found.output[model.order]).abs().max() / found.output.abs().max()
    assert wrong > 1e-3


class Time(nn.Module):
    """Reads numbers, time first, the examples from the last to the first."""

    def __init__(self, size):
        super().__init__()
        self.rnn, self.head, self.size = nn.GRU(4, 4), nn.Linear(4, 2), size

    def forward(self, x):
        return self.size * self.head(self.rnn(x.flip(1))[0][-1]).flip(0)


@pytest.mark.parametrize("size", [1.0, 1e-4])
def test_numbers_of_small_outputs_are_told_apart(size):
    model, x = Time(size).double().eval(), torch.randn(5, 3, 4, dtype=torch.float64)
    found = unrolled.account(model, x, target=1)
    assert found.exact
    for place in range(3):
        one = unrolled.account(model, x[:, place : place + 1], target=1)
        torch.testing.assert_close(found[place].features["0"], one.features["0"], rtol=1e-9, atol=1e-12 * size)
