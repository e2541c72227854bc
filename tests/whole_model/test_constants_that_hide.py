"""A constant so large that its rounding hides what the inputs contribute is noted beside an account."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import StrictError


class Offset(nn.Module):
    def __init__(self, offset, layer):
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.head, self.offset = layer(3, 5, batch_first=True), nn.Linear(5, 2), offset

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1]) + self.offset


def account(offset, kind, layer=nn.GRU, **options):
    x = torch.linspace(-1, 1, 30, device="cpu").reshape(2, 5, 3).to(kind)
    return unrolled.account(Offset(offset, layer).to(kind), x, target=1, **options)


@pytest.mark.parametrize("layer", [nn.GRU, nn.LSTM, nn.RNN])
@pytest.mark.parametrize(
    ("offset", "kind", "advice"),
    [(1e7, torch.float32, r"use float64: model\.double\(\)"), (1e15, torch.float64, "account for a target without .*")],
)
def test_a_constant_whose_rounding_hides_the_contributions_is_noted(layer, offset, kind, advice):
    found = account(offset, kind, layer)
    (note,) = found.notes
    said = (
        r"rounding of the output, \+1e\+\d+, is up to .* what inputs and initial states contribute: the remainder does"
    )
    assert re.fullmatch(rf"{said} not show whether they are right; {advice}", note)
    assert (found.output.abs() * torch.finfo(kind).eps > 0.01 * found.inputs.abs()).any()
    with pytest.raises(StrictError, match="does not show whether"):
        account(offset, kind, layer, strict=True)


@pytest.mark.parametrize("layer", [nn.GRU, nn.LSTM, nn.RNN])
@pytest.mark.parametrize(("offset", "kind"), [(0.0, torch.float32), (1e3, torch.float32), (1e7, torch.float64)])
def test_a_constant_that_leaves_the_contributions_their_digits_is_not_noted(layer, offset, kind):
    """The control: its rounding is below a hundredth of them."""
    assert not any("does not show whether" in note for note in account(offset, kind, layer).notes)


def test_inputs_that_contribute_nothing_beside_a_constant_are_not_noted():
    model = Offset(1e7, nn.GRU)
    nn.init.zeros_(model.head.weight)
    assert not unrolled.account(model, torch.ones(1, 5, 3, device="cpu"), target=1).notes


class Words(Offset):
    """Reads words, of which 0 is padding."""

    def __init__(self, offset, layer):
        super().__init__(offset, layer)
        self.embed = nn.Embedding(5, 3, padding_idx=0)

    def forward(self, ids):
        return super().forward(self.embed(ids))


@pytest.mark.parametrize("layer", [nn.GRU, nn.LSTM, nn.RNN])
@pytest.mark.parametrize(("kind", "large"), [(torch.float32, 1e7), (torch.float64, 1e15)])
def test_an_example_of_padding_alone_beside_others_is_not_noted(layer, kind, large):
    ids = torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]], device="cpu")
    assert not unrolled.account(Words(1.0, layer).to(kind), ids, target=1).notes
    (note,) = unrolled.account(Words(large, layer).to(kind), ids, target=1).notes  # the control
    assert "does not show whether" in note
