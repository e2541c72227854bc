"""Tokens are accounted for by the weights of their vectors; what a model does to the vectors first must not matter."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import unrolled

KINDS = {"GRU": nn.GRU, "LSTM": nn.LSTM, "RNN": nn.RNN}


class Reader(nn.Module):
    """Looks vectors up, changes them or not, and reads them."""

    def __init__(self, kind: str, change: str, both: bool = False, bias: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.change = change
        self.table = nn.Embedding(20, 5)
        self.rnn = KINDS[kind](5, 6, bidirectional=both, bias=bias, batch_first=change != "time first")
        self.head = nn.Linear(12 if both else 6, 3)

    def vectors(self, ids: Tensor) -> Tensor:
        return self.table(ids.T if self.change == "time first" else ids)

    def read(self, vectors: Tensor) -> Tensor:
        if self.change == "in place":
            vectors.mul_(2.0)
        elif self.change == "in place through a view":
            vectors.view(-1)[3:].mul_(-1.5)
        elif self.change == "one token is written over":
            vectors[:, 1] = 0.5 * vectors[:, 0]
        elif self.change == "reversed":
            vectors = vectors.flip(1)
        states = self.rnn(vectors)[0]
        return self.head(states[-1] if self.change == "time first" else states[:, -1])

    def forward(self, ids: Tensor) -> Tensor:
        return self.read(self.vectors(ids))


class Vectors(nn.Module):
    """The same network, which gets the vectors as numbers: they are accounted for number by number."""

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self.reader = reader

    def forward(self, vectors: Tensor) -> Tensor:
        return self.reader.read(vectors)


CHANGES = (
    "none",
    "time first",
    "in place",
    "in place through a view",
    "one token is written over",
    "reversed",
)


@pytest.mark.quick_diagonal(3)  # quick: every change, every network
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_token_contributes_what_the_numbers_of_its_vector_do(kind, change, both):
    model = Reader(kind, change, both).double().eval()
    ids = torch.randint(20, (4, 7), generator=torch.Generator().manual_seed(1))
    by_token = unrolled.account(model, ids, target=2)
    by_number = unrolled.account(Vectors(model), model.vectors(ids).detach(), target=2)
    numbers = by_number.features["0"].sum(dim=-1)
    torch.testing.assert_close(by_token.tokens, numbers.T if change == "time first" else numbers, rtol=0, atol=1e-12)
    assert float(by_token.remainder.abs().max()) <= 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_so_it_does_in_a_network_without_biases_and_beside_another_reader(kind):
    model = Reader(kind, "none", bias=False).double().eval()
    ids = torch.randint(20, (4, 7), generator=torch.Generator().manual_seed(1))

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.reader = model

        def forward(self, ids: Tensor) -> Tensor:
            vectors = self.reader.vectors(ids)
            return self.reader.read(vectors) + self.reader.head(vectors.mean(1).repeat(1, 2)[:, :6])

    class OfVectors(Both):
        def forward(self, vectors: Tensor) -> Tensor:
            return self.reader.read(vectors) + self.reader.head(vectors.mean(1).repeat(1, 2)[:, :6])

    by_token = unrolled.account(Both(), ids, target=0)
    by_number = unrolled.account(OfVectors(), model.vectors(ids).detach(), target=0)
    torch.testing.assert_close(by_token.tokens, by_number.features["0"].sum(dim=-1), rtol=0, atol=1e-12)
