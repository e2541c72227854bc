"""Numbers that the output depends on only through held factors have no feature's contribution, and a note says so."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled

SERIES = torch.linspace(0.1, 1.3, 12).view(1, 4, 3).double()
TIMES = torch.linspace(0.2, 0.8, 4).view(1, 4, 1).double()
HELD = "only through factors that are held"


def notes(model, *args, **options):
    return [note for note in unrolled.explain(model, *args, target=0, **options).notes if HELD in note]


class Reads(nn.Module):
    """Reads two numbers of a step by a network; what else it does with the third, a function says."""

    def __init__(self, forward):
        super().__init__()
        self.rnn, self.cell, self.back = (kind(2, 4) for kind in (nn.GRU, nn.GRUCell, nn.GRU))
        self.one, self.head, self.start = nn.GRU(1, 4), nn.Linear(4, 1), nn.Linear(1, 4)
        self.forward_of_it = forward
        self.double()

    def forward(self, series, *others):
        return self.forward_of_it(self, series.transpose(0, 1), *(each.transpose(0, 1) for each in others))


def decayed(model, series, times=None):
    """A state that decays with the time since the last step, between the calls of a cell."""
    times, h = series[..., 2:] if times is None else times, series.new_zeros(series.shape[1], 4)
    for step, time in zip(series[..., :2], times, strict=True):
        h = model.cell(step, h * torch.exp(-time))
    return model.head(h)


def last(model, series, start=None):
    return model.rnn(series[..., :2], start)[0][-1]


BEHIND = {
    "a decay between the cells": (decayed, 3),
    "a factor of the last state": (lambda m, s: m.head(last(m, s) * torch.exp(-s[-1, :, 2:])), 1),
    "attention weights": (lambda m, s: m.head((m.rnn(s[..., :2])[0] * s[..., 2:].softmax(0)).sum(0)), 4),
}


@pytest.mark.parametrize("way", BEHIND)
@pytest.mark.parametrize("expansion", ["secant", "shares", "mean(operating, gates)"])
def test_a_number_of_each_step_behind_a_held_factor_is_noted(way, expansion):
    forward, count = BEHIND[way]
    model = Reads(forward)
    found = unrolled.explain(model, SERIES, target=0, expansion=expansion)
    (note,) = (each for each in found.notes if HELD in each)
    assert note.startswith(f"{count} of the 12 numbers other than zero in argument 0 ")
    changes = torch.autograd.functional.jacobian(model, SERIES)[0, 0, 0] != 0
    assert int((changes & (found.features.scores == 0)).sum()) == count


def test_an_argument_of_each_step_behind_a_held_factor_is_noted():
    (note,) = notes(Reads(decayed), SERIES[..., :2], TIMES)
    assert note.startswith("argument 1 enters only through")


def test_each_example_of_a_batch_has_the_note():
    batch = torch.cat([SERIES, SERIES + 0.3])
    for each in unrolled.explain_batch(Reads(decayed), batch, target=0):
        (note,) = (note for note in each.notes if HELD in note)
        assert note.startswith("6 of the 24 numbers")


class Decays(nn.Module):
    """One step of a user's, in which the state decays with the time since the last one."""

    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(6, 4).double()

    def forward(self, step, h):
        return torch.tanh(self.cell(torch.cat([step[:, :2], h * torch.exp(-step[:, 2:])], dim=1)))


class OwnSteps(nn.Module):
    def __init__(self):
        super().__init__()
        self.step, self.head = Decays(), nn.Linear(4, 1).double()

    def forward(self, series):
        h = series.new_zeros(len(series), 4)
        for t in range(series.shape[1]):
            h = self.step(series[:, t], h)
        return self.head(h)


def test_a_decay_inside_a_step_of_a_users_own_is_noted():
    (note,) = notes(OwnSteps(), SERIES)
    assert note.startswith("3 of the 12 numbers")


NOT_BEHIND = {
    "a number without effect": lambda m, s: m.head(last(m, s)),
    "a number past the network": lambda m, s: m.head(last(m, s)) + s[..., 2].sum(0)[:, None],
    "the first state": lambda m, s: m.head(last(m, s, m.start(s[..., 2:].mean(0))[None])),
    "another network": lambda m, s: m.head(last(m, s) + m.one(s[..., 2:])[0][-1]),
    "a gate of what the network reads": lambda m, s: m.head(m.rnn(s[..., :2] * s[..., 2:].sigmoid())[0][-1]),
    "a product of two contents": lambda m, s: m.head(last(m, s) * (1 + s[-1, :, 2:])),
    "parts that cancel": lambda m, s: m.head(last(m, s * s - SERIES[0, 1, 0] * s)),
}


@pytest.mark.parametrize("way", NOT_BEHIND)
def test_numbers_that_have_no_effect_or_are_read_another_way_are_not_noted(way):
    assert not notes(Reads(NOT_BEHIND[way]), SERIES)


ENDS = {
    "softmax": lambda logit: torch.cat([logit, -logit], dim=1).softmax(1),
    "exp": torch.exp,
    "an ensemble": lambda logit: torch.cat([logit, -logit], dim=1).softmax(1) + torch.cat([logit, logit**2], 1).exp(),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_model_whose_output_is_a_held_result_has_the_note_too(end):
    for forward, count in BEHIND.values():
        (note,) = notes(Reads(lambda m, s, forward=forward: ENDS[end](forward(m, s))), SERIES)
        assert note.startswith(f"{count} of the 12 numbers other than zero in argument 0 ")
    for forward in NOT_BEHIND.values():
        assert not notes(Reads(lambda m, s, forward=forward: ENDS[end](forward(m, s))), SERIES)


class Relu(nn.Module):
    """A network of which the expansion zero leaves out the first step, and all steps if both numbers are the same."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(2, 2, nonlinearity="relu", bias=False, batch_first=True).double()
        with torch.no_grad():
            self.rnn.weight_ih_l0.copy_(torch.tensor([[-1.0, 0.0], [1.0, -1.0]]))
            self.rnn.weight_hh_l0.copy_(torch.tensor([[3.0, 0.0], [0.0, 0.0]]))

    def forward(self, series):
        return self.rnn(series)[0][:, -1].sum(-1, keepdim=True)


def test_what_an_expansion_leaves_out_is_not_called_held():
    series = torch.tensor([[[-1.0, 0.5], [1.0, 0.5]]]).double()
    left_out = unrolled.explain(Relu(), series, target=0, expansion="zero")
    assert not left_out.features.scores[0].any()
    assert left_out.features.scores[1].all()
    assert not [note for note in left_out.notes if HELD in note]
    assert notes(Reads(decayed), SERIES, expansion="zero")


def runs_of(forward, *args):
    runs = []

    def counted(*given):
        runs.append(1)
        return forward(*given)

    unrolled.explain(Reads(counted), *args, target=0)
    return len(runs)


def test_only_numbers_without_a_contribution_cost_further_runs():
    two = SERIES[..., :2]
    read = runs_of(lambda m, s: m.head(last(m, s)), two)
    at_a_step = runs_of(lambda m, s: m.head(m.rnn(s)[0][1]), two)
    beside = runs_of(lambda m, s, of_all: m.head(last(m, s) * of_all.exp()), two, TIMES[:, 0, :])
    assert read == at_a_step == beside < runs_of(NOT_BEHIND["a number without effect"], SERIES)
