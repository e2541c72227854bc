"""Learning rates: their ends, their middle, and that they never jump. Weight decay as parameter groups."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from unrolled.errors import UsageError
from unrolled.lab.training.optimisation import decay_groups, learning_rate
from unrolled.lab.training.settings import TrainingSettings


def rates(steps=100, cuts=0, **settings):
    return [learning_rate(TrainingSettings(lr=0.4, **settings), step, steps, cuts) for step in range(steps)]


def test_constant_stays():
    assert set(rates()) == {0.4}


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine", "plateau"])
def test_warmup_rises_in_equal_steps_to_the_whole_rate(schedule):
    found = rates(schedule=schedule, warmup=10)
    assert found[:10] == pytest.approx([0.04 * k for k in range(1, 11)])
    assert found[10] == pytest.approx(0.4)


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_what_falls_falls_to_nothing_by_the_last_step(schedule):
    found = rates(schedule=schedule, warmup=20)
    assert found[60] == pytest.approx(0.2)
    assert all(a > b for a, b in pairwise(found[20:]))
    settings = TrainingSettings(lr=0.4, schedule=schedule, warmup=20)
    assert learning_rate(settings, 100, 100, 0) == pytest.approx(0.0, abs=1e-12)
    assert learning_rate(settings, 130, 100, 0) == pytest.approx(0.0, abs=1e-12)


def test_cosine_is_torchs():
    parameter = torch.zeros(1, requires_grad=True)
    optimiser = torch.optim.SGD([parameter], lr=0.4)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=100)
    for ours in rates(schedule="cosine"):
        assert ours == pytest.approx(optimiser.param_groups[0]["lr"], rel=1e-6, abs=1e-9)
        optimiser.step()
        theirs.step()


def test_plateau_is_cut_by_its_factor_and_the_others_are_not():
    assert set(rates(schedule="plateau", factor=0.25, cuts=2)) == {0.4 / 16}
    assert set(rates(schedule="constant", factor=0.25, cuts=2)) == {0.4}
    assert math.isclose(rates(schedule="linear", cuts=2)[0], 0.4)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"momentum": 0.9}, "momentum is 0.9, but the optimiser is adam; set momentum to 0, or optimiser to sgd"),
        ({"schedule": "cosin"}, "unknown schedule 'cosin'; did you mean 'cosine'"),
        ({"optimiser": "lion"}, "unknown optimiser 'lion'"),
        ({"clip": -1.0}, "clip is -1.0; expected greater than or equal to 0"),
        ({"factor": 1.0}, "factor is 1.0; expected less than 1"),
        ({"device": "tpu"}, "device is 'tpu'"),
        ({"leaning_rate": 1.0}, "unknown setting 'leaning_rate'"),
    ],
)
def test_settings_that_cannot_be(values, message):
    with pytest.raises(UsageError, match=message):
        TrainingSettings(**values)


def test_every_setting_has_its_help():
    assert all(field.description for field in TrainingSettings.model_fields.values())


def test_every_parameter_is_in_one_group_and_matrices_decay():
    model = nn.Sequential(nn.Embedding(5, 3), nn.GRU(3, 4))
    matrices, vectors = decay_groups(model, 3e-4)
    assert (matrices["weight_decay"], vectors["weight_decay"]) == (3e-4, 0.0)
    assert {p.dim() for p in matrices["params"]} == {2}
    assert {p.dim() for p in vectors["params"]} == {1}
    together = [*matrices["params"], *vectors["params"]]
    assert sorted(map(id, together)) == sorted(map(id, model.parameters()))


def test_without_a_gradient_only_what_decays_shrinks():
    model = nn.Linear(3, 4)
    before = [p.detach().clone() for p in model.parameters()]
    optimiser = torch.optim.SGD(decay_groups(model, 0.1), lr=1.0)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimiser.step()
    torch.testing.assert_close(model.weight.detach(), 0.9 * before[0])
    assert torch.equal(model.bias.detach(), before[1])


def test_no_group_is_empty_and_what_is_frozen_is_left_out():
    model = nn.Linear(3, 4, bias=False)
    assert len(decay_groups(model, 0.1)) == 1
    model.weight.requires_grad_(False)
    assert decay_groups(model, 0.1) == []


@pytest.mark.parametrize("decay", [-1.0, float("nan")])
def test_a_coefficient_that_cannot_be(decay):
    with pytest.raises(UsageError, match="expected 0 or more"):
        decay_groups(nn.Linear(2, 2), decay)
