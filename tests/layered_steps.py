"""A model with a step of the user's own around one function, for the tests of what a step may hold."""

from __future__ import annotations

import torch
from torch import nn

import unrolled
from unrolled.held_forward.step_operator import HeldStep

D, T = 6, 3
SERIES = torch.randn(2, T, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


class Layered(nn.Module):
    def __init__(self, function, *layers):
        super().__init__()
        self.x, self.h, self.layers, self.function = nn.Linear(3, D), nn.Linear(D, D), nn.ModuleList(layers), function

    def forward(self, x, h):
        return torch.tanh(self.function(self.x(x) + self.h(h), *self.layers))


class Loop(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell, self.head = cell, nn.Linear(D, 2)

    def forward(self, xs):
        h = xs.new_zeros(len(xs), D)
        for x in xs.unbind(1):
            h = self.cell(x, h)
        return self.head(h)


def model_with(*parts):
    torch.manual_seed(3)
    made = Loop(Layered(*parts)).double()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5)
    return made


def judge_transposed(cell, share=None):
    """Judge the transpose of a step, which finds n-grams up to an order: ⟨u, A v + C w⟩ = ⟨Aᵀ u, v⟩ + ⟨Cᵀ u, w⟩."""

    def in_rows(x, s):
        rows = x.reshape(-1, 3)
        return torch.cat((cell(rows, s.reshape(-1, D)), rows[:, :0]), dim=1).reshape(s.shape)  # also if all is held

    draw = torch.Generator().manual_seed(0)
    x, s, u = (torch.randn(4, size, dtype=torch.float64, generator=draw) for size in (3, D, D))
    step = HeldStep(in_rows, torch.zeros_like(x), x, s, share)
    v, w = (torch.randn(1, *each.shape, dtype=torch.float64, generator=draw) for each in (s, x))
    by_state, by_input = step.apply_transpose(u[None])
    forward = (step.apply(v, w) * u).sum()
    torch.testing.assert_close((by_state * v).sum() + (by_input * w).sum(), forward, rtol=1e-12, atol=1e-12)
    return forward


def judge_same_n_grams(models, expansion="secant"):
    """Judge two models whose steps compute the same numbers otherwise; the control is an inexact expansion of those."""
    found, expected, control = (
        unrolled.explain(model, SERIES[:1], target=1, expansion=each)
        for model, each in zip((*models, models[-1]), (expansion, expansion, "zero"), strict=True)
    )
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, rtol=0, atol=1e-12)
    assert abs(found.ledger.remainder) < 1e-12
    assert not any("quadrature" in note for note in found.notes)
    assert abs(control.ledger.remainder) > 1e-3
    judge_transposed(models[0].cell, None if expansion == "secant" else 0.75)
