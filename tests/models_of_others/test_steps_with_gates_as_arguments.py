"""A step that receives its gates and its candidate, as that of a QRNN, has one state, however they are called."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

IDS = torch.tensor([[1, 2, 3, 4]])
D = 4


class Quasi(nn.Module):
    """Computes gates and candidates of all steps at once; ``norm`` stands between the steps."""

    def __init__(self, norm=nn.Identity):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.gates, self.head = nn.Embedding(10, D), nn.Linear(D, 3 * D), nn.Linear(D, 2)
        self.norm = norm(D)
        self.double()

    def pool_step(self, z, f, o, c):
        c = f * c + (1 - f) * z
        return o * c, c

    def forward(self, tokens):
        candidates, forgets, outs = self.gates(self.embed(tokens)).chunk(3, -1)
        c, gates = torch.zeros_like(candidates[:, 0]), (each.sigmoid().unbind(1) for each in (forgets, outs))
        for z, f, o in zip(candidates.tanh().unbind(1), *gates, strict=True):
            h, c = self.pool_step(z, f, o, self.norm(c))
        return self.head(h)


class OtherNames(Quasi):
    def pool_step(self, new, forget, out, c):
        return Quasi.pool_step(self, new, forget, out, c)


class Masked(Quasi):
    """Reads a mask that changes from step to step beside its input."""

    def pool_step(self, z, f, m, c):
        return Quasi.pool_step(self, z, f, m, c)


@pytest.mark.parametrize("kind", [Quasi, Masked])
def test_a_candidate_is_an_input_and_no_state(kind):
    found, expected = (unrolled.explain(each().eval(), IDS, target=1) for each in (kind, OtherNames))
    assert found.closes
    assert found.ledger.initial == 0
    assert not found.notes
    assert abs(found.ledger.ngrams) > 1e-3
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, rtol=0, atol=1e-12)


class NamedZ(Quasi):
    """Keeps a state that is called z, and is normalised between the steps."""

    def pool_step(self, x, z):
        return torch.tanh(x + 0.5 * z)

    def forward(self, tokens):
        z = torch.zeros(len(tokens), D, dtype=torch.float64)
        for x in self.embed(tokens).unbind(1):
            z = self.pool_step(x, self.norm(z))
        return self.head(z)


def test_a_state_of_that_name_is_found_where_no_other_is_known():
    found = unrolled.explain(NamedZ(nn.LayerNorm).eval(), IDS, target=1)
    assert found.closes
    assert found.ledger.initial == 0
    assert all(abs(found.contribution(start, 4)) > 1e-6 for start in range(4))


class TwoStates(Quasi):
    """Keeps two states, and changes the second between the steps."""

    def pool_step(self, x, h, m):
        h = torch.tanh(x + 0.5 * h + 0.3 * m)
        return h, 0.5 * m + h

    def forward(self, tokens):
        h = m = torch.zeros(len(tokens), D, dtype=torch.float64)
        for x in self.embed(tokens).unbind(1):
            h, m = self.pool_step(x, h, self.norm(m))
        return self.head(h + m)


class TwoStatesOfOtherNames(TwoStates):
    def pool_step(self, x, h, memory):
        return TwoStates.pool_step(self, x, h, memory)


@pytest.mark.parametrize("norm", [nn.LayerNorm, lambda _: nn.Hardtanh(-0.5, 0.5)], ids=["normalised", "clamped"])
def test_a_second_state_of_that_name_is_found_though_it_changes_between_the_steps(norm):
    found, expected = (unrolled.explain(e(norm).eval(), IDS, target=1) for e in (TwoStates, TwoStatesOfOtherNames))
    assert found.closes
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, rtol=0, atol=1e-12)
