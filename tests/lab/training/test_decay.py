"""Weight decay as parameter groups."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.errors import UsageError
from unrolled.lab.training.optimisation import decay_groups


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
