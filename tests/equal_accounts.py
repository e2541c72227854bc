"""Models that differ in one operation, and the comparison of their accounts."""

from __future__ import annotations

import warnings

import torch
from torch import nn

import unrolled
from whole_model_zoo import WORDS, D, E, ids

A = torch.randn(D, D, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
A[A.abs() < 0.7] = 0.0
with warnings.catch_warnings(action="ignore"):  # torch calls its sparse rows a trial
    ROWS = A.to_sparse_csr()


class Read(nn.Module):
    """A network, an operation on its last state, and a head.

    Args:
        read: the operation; it receives the model and a state for each text.
    """

    def __init__(self, read):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn = nn.Embedding(WORDS, E), nn.GRU(E, D, batch_first=True)
        self.middle = nn.Linear(D, D)
        self.register_buffer("dense", A)
        self.register_buffer("sparse", A.to_sparse())
        self.register_buffer("rows", ROWS)
        self.read = read
        self.double()
        generator = torch.Generator().manual_seed(4)
        self.head = torch.randn(200, generator=generator, dtype=torch.float64)

    def forward(self, tokens):
        read = self.read(self, self.rnn(self.embed(tokens))[0][:, -1])
        one = read.reshape(len(tokens), -1)
        return one @ self.head[: 2 * one.shape[1]].reshape(one.shape[1], 2)


def everything(found):
    """All parts of an account; of biases and constants the sums, since names may differ."""
    nothing = torch.zeros_like(found.output)
    sums = (sum(parts.values(), nothing) for parts in (found.biases, found.constants))
    return [found.tokens, found.initial, *sums]


def assert_equal(one, other):
    """Compare two models' accounts and explanations."""
    tokens = ids(3, 4)
    found, expected = (unrolled.account(Read(read), tokens, target=1) for read in (one, other))
    assert found.closes
    assert found.tokens.abs().max() > 1e-3
    torch.testing.assert_close(everything(found), everything(expected), rtol=1e-9, atol=1e-10)
    scores = [unrolled.explain(Read(read), tokens[:1], target=1) for read in (one, other)]
    for each in scores:
        assert not any("ray" in note for note in each.notes)
    torch.testing.assert_close(scores[0].token_scores, scores[1].token_scores, rtol=1e-9, atol=1e-10)
