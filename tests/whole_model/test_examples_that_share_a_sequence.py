"""A sequence that two examples of a batch read is credited to both, and refused where one reader is asked for."""

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError


class Gathered(nn.Module):
    """Each example reads the sequence of another one."""

    def __init__(self, of):
        super().__init__()
        self.rnn, self.head = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)
        self.register_buffer("of", torch.tensor(of, device="cpu"))

    def forward(self, series):
        return self.head(self.rnn(series)[0][:, -1])[self.of]


ORDER = list(range(32))
ORDER[3] = ORDER[30] = 29  # ½ · 2³ + ½ · 2³⁰ is nearly 2²⁹
ORDER[29] = 3


def test_a_sequence_that_two_examples_read_is_credited_to_both():
    model, series = Gathered(ORDER), torch.randn(32, 5, 3)
    found = unrolled.account(model, series, target=1)
    assert found.closes
    credited = found.features["0"].abs().sum(dim=(2, 3)) > 0  # by example and sequence
    assert torch.equal(credited, nn.functional.one_hot(model.of, 32).bool())
    with pytest.raises(UsageError, match="depends on the states of another"):
        unrolled.explain_batch(model, series, target=1)


def test_a_sequence_that_one_example_reads_is_its_own():
    turned = Gathered(range(31, -1, -1))
    series = torch.randn(32, 5, 3)
    found = unrolled.account(turned, series, target=1)
    assert found.closes
    assert found.features["0"].shape == (32, 5, 3)
    turned.of = torch.tensor([0], device="cpu")
    one = unrolled.account(turned, series[31:], target=1)
    torch.testing.assert_close(found.features["0"][0], one.features["0"][0])
