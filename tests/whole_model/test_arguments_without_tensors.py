"""Arguments without a tensor, such as a list of Python's ids or a text: the refusal says so, and what to do."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UnsupportedOperationError


class Reader(nn.Module):
    def __init__(self, numbers):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(20, 4), nn.GRU(4, 5, batch_first=True), nn.Linear(5, 2)
        self.numbers = numbers

    def forward(self, given):
        return self.head(self.rnn(self.embed(self.numbers(given)))[0][:, -1])


@pytest.mark.parametrize(
    ("numbers", "given"),
    [
        (lambda ids: torch.tensor([ids]), [1, 2, 3]),
        (lambda text: torch.tensor([[ord(letter) % 20 for letter in text]]), "text"),
    ],
)
def test_they_are_refused_with_the_ways_round(numbers, given):
    model = Reader(numbers)
    with pytest.raises(UnsupportedOperationError, match="no argument of the model holds a tensor") as told:
        unrolled.account(model, given, target=1)
    assert "\n" not in str(told.value)
    assert unrolled.account(model, given, target=1, of="embed").closes  # both ways that it names
    assert unrolled.account(Reader(lambda ids: ids), numbers(given), target=1).closes
