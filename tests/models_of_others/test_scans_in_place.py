"""Scans that overwrite what they have read, as the custom functions of published state spaces do."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

V, D = 12, 4
IDS = torch.tensor([[1, 2, 3, 4, 5, 6, 7]])


class InPlace(torch.autograd.Function):
    """h_t = a_t h_{t-1} + x_t in log2(T) rounds, in place; its factors a change after their products."""

    @staticmethod
    def forward(_, a, x):
        a, x, step = a.clone(), x.clone(), 1
        while step < a.shape[1]:
            x[:, step:].add_(a[:, step:] * x[:, :-step].clone())
            a[:, step:].mul_(a[:, :-step].clone())
            step *= 2
        return x

    @staticmethod
    def backward(*_):
        raise NotImplementedError


def by_loop(a, x):
    states, h = [], torch.zeros_like(x[:, 0])
    for t in range(x.shape[1]):
        h = a[:, t] * h + x[:, t]
        states.append(h)
    return torch.stack(states, 1)


class Recurrence(nn.Module):
    def __init__(self, scan):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.forget, self.inner, self.head = nn.Embedding(V, D), *(nn.Linear(D, n) for n in (D, D, 2))
        self.scan = scan
        self.double()

    def forward(self, ids):
        x = self.embed(ids)
        return self.head(self.scan(self.forget(x).sigmoid(), self.inner(x))[:, -1])


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_scan_in_place_has_the_account_of_the_loop(share):
    found, expected = (
        unrolled.account(Recurrence(scan), IDS, target=1, share=share) for scan in (InPlace.apply, by_loop)
    )
    torch.testing.assert_close(found.tokens, expected.tokens)
    assert {name: float(value) for name, value in found.biases.items()} == pytest.approx(
        {name: float(value) for name, value in expected.biases.items()}
    )
    assert found.closes
    assert (found.tokens.abs() > 1e-4).sum() >= 5
