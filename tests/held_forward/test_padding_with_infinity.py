"""States that are padded with minus infinity, so that a maximum over time does not read their padding."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

import unrolled

IDS, LENGTHS = torch.tensor([[3, 1, 4, 0, 0], [2, 7, 1, 8, 5], [6, 6, 0, 0, 0]]), torch.tensor([3, 5, 2])
LOW = float("-inf")


class Reader(nn.Module):
    """Reads the maximum over time of a packed network's states."""

    def __init__(self, pool):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(9, 4), nn.GRU(4, 5, batch_first=True), nn.Linear(5, 2)
        self.pool = pool
        self.double()

    def forward(self, ids, lengths):
        given = pack_padded_sequence(self.embed(ids), lengths, batch_first=True, enforce_sorted=False)
        return self.head(self.pool(self.rnn(given)[0], lengths))


def masked(states, lengths):
    padded, _ = pad_packed_sequence(states, batch_first=True)
    return padded.masked_fill((torch.arange(5) >= lengths[:, None])[..., None], LOW).max(1).values


def rows(states, lengths):
    padded, _ = pad_packed_sequence(states, batch_first=True)
    return [row[:count] for row, count in zip(padded, lengths.tolist(), strict=True)]


def padded(states, value=LOW):
    return pad_packed_sequence(states, batch_first=True, padding_value=value)[0]


POOLS = {
    "max": lambda states, _: padded(states).max(1).values,
    "time first": lambda states, _: pad_packed_sequence(states, padding_value=LOW)[0].max(0).values,
    "amax": lambda states, _: padded(states).amax(1),
    "a layer": lambda states, _: F.adaptive_max_pool1d(padded(states).transpose(1, 2), 1)[..., 0],
    "pad_sequence": lambda states, lengths: pad_sequence(rows(states, lengths), True, LOW).amax(1),
    "row by row": lambda states, lengths: torch.stack([row.max(0).values for row in rows(states, lengths)]),
}


@pytest.mark.parametrize("name", POOLS)
def test_a_maximum_over_padding_of_minus_infinity_is_that_over_masked_states(name):
    found, expected = (unrolled.account(Reader(pool), IDS, LENGTHS, target=1) for pool in (POOLS[name], masked))
    assert found.closes
    torch.testing.assert_close(found.tokens, expected.tokens, rtol=1e-12, atol=1e-12)
    for one, other in zip(
        *(unrolled.explain_batch(Reader(pool), IDS, LENGTHS, target=1) for pool in (POOLS[name], masked)), strict=True
    ):
        assert not any("ray" in note for note in one.notes)
        torch.testing.assert_close(one.token_scores, other.token_scores, rtol=1e-12, atol=1e-12)


def test_a_maximum_over_zeros_is_another():
    """The control: the padding decides."""
    found, expected = (
        unrolled.account(Reader(pool), IDS, LENGTHS, target=1)
        for pool in (lambda states, _: padded(states, 0.0).max(1).values, masked)
    )
    assert float((found.tokens - expected.tokens).abs().max()) > 1e-3


class Normalised(nn.Module):
    """Normalises a series whose steps of padding hold no numbers, and leaves these out afterwards."""

    def __init__(self, norm):
        super().__init__()
        torch.manual_seed(0)
        self.norm, self.layer = norm, nn.Linear(4, 4)
        self.rnn, self.head = nn.GRU(4, 5, batch_first=True), nn.Linear(5, 2)
        self.double()

    def forward(self, series, lengths):
        given = torch.relu(self.layer(self.norm(series)))
        packed = pack_padded_sequence(given, lengths, batch_first=True, enforce_sorted=False)
        return self.head(self.rnn(packed)[1][0])


@pytest.mark.parametrize("number", [float("nan"), LOW])
@pytest.mark.parametrize("norm", [nn.LayerNorm(4), nn.RMSNorm(4), nn.Identity()])
def test_a_series_padded_with_no_numbers_has_the_account_of_one_padded_with_zeros(norm, number):
    series = torch.randn(3, 5, 4).double()
    beyond = (torch.arange(5) >= LENGTHS[:, None])[..., None]
    found, expected, other = (
        unrolled.account(Normalised(norm), series.masked_fill(beyond, padding), lengths, target=1)
        for padding, lengths in ((number, LENGTHS), (0.0, LENGTHS), (0.0, LENGTHS.clamp(min=4)))
    )
    assert found.closes
    torch.testing.assert_close(found.features["0"], expected.features["0"], rtol=1e-12, atol=1e-12)
    assert float((other.features["0"] - expected.features["0"]).abs().max()) > 1e-3  # the control reads padding
