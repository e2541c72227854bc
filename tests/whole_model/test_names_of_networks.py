"""A module is a recurrent network by its type's name only if it holds a matrix: an RNNDropout is none."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError
from whole_model_zoo import ids


class RNNDropout(nn.Dropout):
    """One mask for all steps, as in ESIM."""

    def forward(self, x):
        return x * nn.functional.dropout(torch.ones_like(x[:, :1]), self.p, self.training)


class LockedDropoutRNN(nn.Module):
    """Holds a module, which has no weights either."""

    def __init__(self):
        super().__init__()
        self.drop = RNNDropout(0.5)

    def forward(self, x):
        return self.drop(x)


class LSTMNorm(nn.Module):
    """Holds vectors."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(6)

    def forward(self, x):
        return self.norm(x)


class SumRNN(nn.Module):
    """The control: it computes its steps itself, so it is a network that does not open."""

    def __init__(self):
        super().__init__()
        self.u = nn.Parameter(torch.randn(6, 6) / 4)

    def forward(self, x):
        states = [x[:, 0]]
        for each in x.unbind(1)[1:]:
            states.append(torch.tanh(each + states[-1] @ self.u))
        return torch.stack(states, 1)


class Reader(nn.Module):
    def __init__(self, part, rnn=None):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.part, self.rnn, self.head = nn.Embedding(30, 6), part, rnn, nn.Linear(6, 3)
        self.eval()

    def forward(self, tokens):
        x = self.part(self.embed(tokens))
        return self.head((x if self.rnn is None else self.rnn(x)[0])[:, -1])


@pytest.mark.parametrize("kind", [lambda: RNNDropout(0.5), LockedDropoutRNN, LSTMNorm])
def test_what_holds_no_matrix_is_no_network_by_its_name(kind):
    assert [part.path for part in unrolled.check(Reader(kind()), ids(1, 5)).parts] == ["whole model"]
    with pytest.raises(UsageError, match=r"^no recurrent network in Reader"):
        unrolled.explain(Reader(kind()), ids(1, 5), target=1)
    beside = Reader(kind(), nn.GRU(6, 6, batch_first=True))
    assert [(part.path, part.opens) for part in unrolled.check(beside, ids(1, 5)).parts] == [
        ("rnn", True),
        ("whole model", True),
    ]


def test_what_holds_one_is():
    assert [part.path for part in unrolled.check(Reader(SumRNN()), ids(1, 5)).parts] == ["part", "whole model"]
    with pytest.raises(UsageError, match="part is a SumRNN that computes its steps itself"):
        unrolled.explain(Reader(SumRNN()), ids(1, 5), target=1)
