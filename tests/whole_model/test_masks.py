"""A mask among the arguments is a factor that is held, of whatever type it is."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

IDS = torch.tensor([[3, 1, 4, 0, 0], [2, 7, 1, 8, 5]])
MASK = IDS > 0
X = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


class Mean(nn.Module):
    """The mean of the states that a mask leaves."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(9, 4), nn.GRU(4, 5, batch_first=True), nn.Linear(5, 2)
        self.double()

    def forward(self, ids, mask):
        states = self.rnn(self.embed(ids))[0]
        mask = mask.unsqueeze(-1).to(states.dtype)
        return self.head((states * mask).sum(1) / mask.sum(1))


class LeavesOut(nn.Module):
    """Leaves out the numbers that are missing, and reads the mask beside the others."""

    def __init__(self, chooses):
        super().__init__()
        torch.manual_seed(0)
        self.chooses, self.before = chooses, nn.Linear(3, 3)
        self.rnn, self.head = nn.GRU(6, 5, batch_first=True), nn.Linear(5, 2)
        self.double()

    def forward(self, x, mask):
        x = self.before(x)
        x = torch.where(mask > 0, x, 0.0) if self.chooses else mask * x
        return self.head(self.rnn(torch.cat([x, mask], 2))[0][:, -1])


class Highway(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.gate, self.made, self.head = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 2)
        self.double()

    def forward(self, x):
        gate = torch.sigmoid(self.gate(x))
        return self.head((gate * self.made(x) + (1 - gate) * x).sum(1))


@pytest.mark.parametrize("kind", [torch.int64, torch.uint8, torch.float32, torch.float64], ids=str)
def test_a_mask_of_any_type_has_the_account_of_one_of_truths(kind):
    found, expected = (unrolled.account(Mean(), IDS, mask, target=1) for mask in (MASK.to(kind), MASK))
    assert found.closes
    assert float(expected.tokens.abs().max()) > 1e-3
    torch.testing.assert_close(found.tokens, expected.tokens, rtol=1e-12, atol=1e-12)
    assert not sum(float(part.abs().sum()) for part in found.features.values())
    for name, part in expected.biases.items():
        torch.testing.assert_close(found.biases[name], part, rtol=1e-12, atol=1e-12)


def test_numbers_that_are_not_zero_or_one_are_no_mask():
    """The control: half of a product with them is theirs."""
    found, expected = (unrolled.account(Mean(), IDS, mask, target=1) for mask in (2.0 * MASK, MASK))
    torch.testing.assert_close(found.tokens, 0.5 * expected.tokens)


def test_a_mask_that_multiplies_is_one_that_chooses():
    mask = (X > 0).double()
    found, expected = (unrolled.account(LeavesOut(chooses), X, mask, target=1) for chooses in (False, True))
    assert found.closes
    for name, part in expected.features.items():
        assert float(part.abs().max()) > 1e-3  # the mask is read beside the numbers
        torch.testing.assert_close(found.features[name], part, rtol=1e-12, atol=1e-12)


def test_zeros_and_ones_alone_are_what_the_model_reads():
    x = (X > 0).double()
    found = unrolled.account(Highway(), x, target=1)
    nearly = unrolled.account(Highway(), x + 1e-9, target=1)
    assert float(found.features["0"].abs().max()) > 1e-2
    torch.testing.assert_close(found.features["0"], nearly.features["0"], rtol=0, atol=1e-7)


class Answers(nn.Module):
    """Reads numbers of exercises beside whether they were solved, each pair as an id of its own."""

    def __init__(self, joined):
        super().__init__()
        torch.manual_seed(0)
        self.joined, self.embed = joined, nn.Embedding(20, 4)
        self.rnn, self.head = nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 2)
        self.double()

    def forward(self, ids, solved):
        return self.head(self.rnn(self.embed(self.joined(ids, solved)))[0][:, -1])


def in_place(ids, solved):
    ids = ids.clone()
    ids += 10 * solved
    return ids


@pytest.mark.parametrize(
    "joined",
    [lambda ids, solved: ids + 10 * solved, lambda ids, solved: 10 * solved + ids, in_place],
    ids=["added", "added to", "in place"],
)
def test_zeros_and_ones_that_turn_ids_into_others_are_noted(joined):
    ids, solved = torch.tensor([[3, 1, 4], [2, 7, 1]]), torch.tensor([[1, 0, 1], [0, 0, 1]])
    found = unrolled.account(Answers(joined), ids, solved, target=1)
    assert found.closes
    assert list(found.texts) == ["0"]
    (note,) = (note for note in found.notes if "turn ids" in note)
    assert note.startswith("the zeros and ones of argument 1 turn ids of tokens into other ids")


def padded_in_place(ids, mask):
    ids = ids * mask
    ids += 9 * (1 - mask)
    return ids


def of_the_same_ids(ids, _):
    return ids + (ids > 2).long()


@pytest.mark.parametrize(
    "kept",
    [
        lambda ids, mask: ids * mask,
        lambda ids, mask: ids * mask + 9 * (1 - mask),
        lambda ids, mask: ids.masked_fill(mask == 0, 9),
        padded_in_place,
        of_the_same_ids,
    ],
    ids=["kept", "others in their place", "filled", "in place", "of the same ids"],
)
def test_masks_that_keep_ids_or_put_others_in_their_place_are_not(kept):
    ids, mask = torch.tensor([[3, 1, 4], [2, 7, 1]]), torch.tensor([[1, 0, 1], [0, 0, 1]])
    found = unrolled.account(Answers(kept), ids, mask, target=1)
    assert found.closes
    assert not any("turn ids" in note for note in found.notes)
