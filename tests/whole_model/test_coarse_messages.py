"""Parts of a model that exchange float16 or bfloat16: the account is exact to that rounding, and says so."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UnsupportedOperationError, UsageError

IDS = torch.tensor([[1, 2, 3, 4]])


class Messages(nn.Module):
    """Passes vectors on in a coarse type; the head reads them in its own."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.embed, self.hidden, self.head = nn.Embedding(9, 8), nn.Linear(8, 8), nn.Linear(8, 2)
        self.dtype = dtype

    def forward(self, ids):
        vectors = torch.tanh(self.hidden(self.embed(ids).to(self.dtype).to(self.embed.weight.dtype)))
        return self.head(vectors.mean(1).to(self.dtype).to(self.embed.weight.dtype))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_contributions_are_exact_to_the_rounding_of_the_messages(dtype, seed):
    torch.manual_seed(seed)
    model = Messages(dtype)
    found = unrolled.account(model, IDS, target=0)
    model.dtype = torch.float64
    true = unrolled.account(model.double(), IDS, target=0)
    wrong = (found.tokens - true.tokens).abs().max()
    assert wrong <= 4 * float(found.rounding)
    if float(found.rounding) > 1e-3 * abs(float(found.movement)):
        assert any(f"computes in {dtype}" in note or "rounding" in note for note in found.notes)
    else:
        assert wrong <= 1e-2 * found.tokens.abs().max()
    # the control: in one type nothing of this is said, and the account is closer
    assert not any("the model computes in" in note for note in true.notes)
    assert abs(float(true.remainder)) <= 1e-12


def test_the_rounding_of_messages_is_not_called_cancelling():
    torch.manual_seed(0)
    found = unrolled.account(Messages(torch.bfloat16), IDS, target=0)
    assert float(found.cancellation) < 10
    assert not any("far larger than their sum" in note for note in found.notes)
    assert any("the model computes in torch.bfloat16" in note for note in found.notes)


class Halves(nn.Module):
    """Its forward makes half of what it computes."""

    def __init__(self, halves: bool) -> None:
        super().__init__()
        self.embed, self.head, self.halves = nn.Embedding(9, 4), nn.Linear(4, 2), halves

    def forward(self, ids):
        logits = self.head(self.embed(ids).mean(1))
        return logits.half() if self.halves else logits


def test_the_advice_on_a_half_output_helps():
    model = Halves(True)
    with pytest.raises(UsageError, match=r"leave out \.half\(\).* target=lambda out: out\.float\(\)\[:, 0\]"):
        unrolled.account(model, IDS, target=0)
    with pytest.raises(UsageError, match=r"leave out \.half\(\)"):
        unrolled.account(model.float(), IDS, target=0)  # the control: this does not
    assert len(unrolled.account(model, IDS, target=lambda out: out.float()[:, 0])) == 1
    assert unrolled.account(Halves(False), IDS, target=0).exact


class HalfCell(nn.Module):
    """Its forward makes half of its cell."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.embed, self.cell, self.head, self.dtype = nn.Embedding(9, 4), nn.GRUCell(4, 5), nn.Linear(5, 2), dtype

    def forward(self, ids):
        h, cell = torch.zeros(len(ids), 5, dtype=self.dtype), self.cell.to(self.dtype)
        for x in self.embed(ids).to(self.dtype).unbind(1):
            h = cell(x, h)
        return self.head(h.float())


def test_the_advice_on_a_cell_that_a_forward_halves_helps():
    with pytest.raises(UnsupportedOperationError, match=r"leave out \.half\(\) and \.bfloat16\(\) in its forward"):
        unrolled.explain(HalfCell(torch.float16).float(), IDS, target=0)
    assert unrolled.explain(HalfCell(torch.float32), IDS, target=0).exact
