"""Steps that are written for one example: for vectors, for columns, or for a batch that may have one row only."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UnsupportedOperationError, UsageError

V, E, D = 11, 4, 6
IDS = torch.tensor([3, 1, 4, 1, 5])


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.W, self.U, self.b = (nn.Parameter(torch.empty(D, width)) for width in (E, D, 1))

    def gated(self, a, h):
        return torch.sigmoid(a) * h + torch.tanh(a.flip(0)) / (1 + a.norm())


class OfColumns(Cell):
    def forward(self, x, h):
        return self.gated(self.W @ x + self.U @ h + self.b, h)


class OfVectors(Cell):
    def forward(self, x, h):
        return self.gated(self.W @ x + self.U @ h + self.b[:, 0], h)


class OfABatch(Cell):
    def forward(self, x, h):
        a = x @ self.W.T + h @ self.U.T + self.b[:, 0]
        return torch.sigmoid(a) * h + torch.tanh(a.flip(1)) / (1 + a.norm(dim=1, keepdim=True))


class OfOneRow(Cell):
    """Its norm is that of all rows: for one example it is the same function."""

    def forward(self, x, h):
        a = x @ self.W.T + h @ self.U.T + self.b[:, 0]
        return torch.sigmoid(a) * h + torch.tanh(a.flip(1)) / (1 + a.norm())


class OfTheFirstRow(Cell):
    """It reads one row, and returns one."""

    def forward(self, x, h):
        return self.gated(self.W @ x[0] + self.U @ h[0] + self.b[:, 0], h[0])[None]


class OneAtATime(OfABatch):
    """It refuses several rows by an error of its own."""

    def forward(self, x, h):
        assert len(x) == 1, "one at a time"
        return super().forward(x, h)


SHAPES = {
    OneAtATime: (1, D),
    OfColumns: (D, 1),
    OfVectors: (D,),
    OfABatch: (1, D),
    OfOneRow: (1, D),
    OfTheFirstRow: (1, D),
}


class Reader(nn.Module):
    def __init__(self, cell):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.cell, self.head = nn.Embedding(V, E), cell, nn.Linear(D, 3)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.5)
        self.double()

    def forward(self, ids):
        shape = SHAPES[type(self.cell)]
        h = self.embed.weight.new_zeros(shape)
        for each in ids:
            h = self.cell(self.embed(each).reshape(*(E if size == D else size for size in shape)), h)
        return self.head(h.reshape(1, D))


@pytest.mark.quick_diagonal(3)  # quick: every kind, every expansion
@pytest.mark.parametrize("expansion", ["secant", "shares", "path"])
@pytest.mark.parametrize("kind", [OfColumns, OfVectors, OfOneRow, OfTheFirstRow, OneAtATime])
def test_a_step_of_one_example_has_the_n_grams_of_that_of_a_batch(kind, expansion):
    found, expected = (
        unrolled.explain(Reader(each()), IDS, target=1, expansion=expansion) for each in (kind, OfABatch)
    )
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, rtol=0, atol=1e-10)
    assert found.tokens == expected.tokens
    assert len(found) == len(IDS)
    assert abs(found.ledger.remainder) < (1e-5 if expansion == "path" else 1e-12)
    assert not [note for note in found.notes if "could not be found" in note]
    zero = unrolled.explain(Reader(kind()), IDS, target=1, expansion="zero")
    assert abs(zero.ledger.remainder) > 1e-4


def test_columns_of_several_examples_side_by_side_are_refused():
    class Wide(Reader):
        def forward(self, ids):
            h = self.embed.weight.new_zeros(D, len(ids))
            for x in self.embed(ids).unbind(1):
                h = self.cell(x.T, h)
            return self.head(h.T)

    class Plain(OfColumns):
        def gated(self, a, h):
            return torch.tanh(a)

    with pytest.raises(UnsupportedOperationError, match=r"\(batch, features\)"):
        unrolled.explain(Wide(Plain()), torch.stack((IDS, IDS.flip(0))), target=1)
    alone = unrolled.explain(Wide(Plain()), IDS[None], target=1)  # the control: one example
    assert abs(alone.ledger.remainder) < 1e-12


class Keeping(OfABatch):
    def forward(self, x):
        self.h = super().forward(x, self.h)
        return self.h


class Boxed(OfABatch):
    def forward(self, both):
        return {"x": both["x"], "h": super().forward(both["x"], both["h"])}


class Read(Reader):
    def forward(self, ids):
        h = self.cell.h = self.embed.weight.new_zeros(1, D)
        for each in ids:
            x = self.embed(each)[None]
            h = self.cell(x) if isinstance(self.cell, Keeping) else self.cell({"x": x, "h": h})["h"]
        return self.head(h)


@pytest.mark.parametrize("kind", [Keeping, Boxed])
def test_a_state_that_is_no_argument_by_itself_is_accounted_for_and_explain_says_what_to_write(kind):
    SHAPES[kind] = SHAPES[OfABatch]
    model = Read(kind())
    for rnn in (None, "cell"):
        with pytest.raises(UsageError, match=r"forward\(x, h\).*self\.h, or beside x in one dictionary") as told:
            unrolled.explain(model, IDS, target=1, rnn=rnn)
        assert "\n" not in str(told.value)
    found, expected = (unrolled.account(each, IDS, target=1) for each in (model, Reader(OfABatch())))
    assert found.closes
    torch.testing.assert_close(next(iter(found.texts.values())), next(iter(expected.texts.values())))
