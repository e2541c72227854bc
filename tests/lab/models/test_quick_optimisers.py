"""Optimisers that do not load torch's compiler: the numbers of torch's own, in all that a training does with them."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

from unrolled.lab.models.quick_optimisers import without_compiler

CASES = [
    (torch.optim.Adam, {"lr": 0.01, "fused": True}),
    (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}),
    (torch.optim.AdamW, {"lr": 0.01, "fused": True}),
    (torch.optim.Adagrad, {"lr": 0.01, "fused": True}),
    (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9, "fused": True}),
]


def trained(kind, options):
    """Six steps in two groups, the last three by an optimiser that was given the state of the one before."""
    torch.manual_seed(0)
    model = nn.GRU(3, 4)

    def made():
        weights, biases = [model.weight_ih_l0, model.weight_hh_l0], [model.bias_ih_l0, model.bias_hh_l0]
        optimiser = kind([{"params": weights}], **options)
        optimiser.add_param_group({"params": biases, "lr": 0.02})
        return optimiser

    optimiser = made()
    for step in range(6):
        if step == 3:
            state, optimiser = optimiser.state_dict(), made()
            optimiser.load_state_dict(state)
        optimiser.zero_grad()
        model(torch.randn(5, 2, 3))[0].square().sum().backward()
        optimiser.step()
    return [each.detach() for each in model.parameters()], optimiser.state_dict()


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_the_weights_and_the_state_are_those_of_torchs_optimiser(kind, options):
    ours, theirs = trained(without_compiler(kind), options), trained(kind, options)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    assert not torch.equal(ours[0][0], trained(kind, options | {"lr": 0.03})[0][0])  # the control


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_the_compiler_is_not_loaded(kind, options, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)  # an import of it is an error
    trained(without_compiler(kind), options)
    with pytest.raises(ImportError, match=r"torch\._dynamo"):
        trained(kind, options)


def test_a_function_may_compute_the_loss_within_a_step():
    weight = nn.Parameter(torch.ones(3))
    optimiser = without_compiler(torch.optim.SGD)([weight], lr=0.1)

    def loss():
        optimiser.zero_grad()
        found = weight.square().sum()
        found.backward()
        return found

    assert optimiser.step(loss).item() == 3
    torch.testing.assert_close(weight.detach(), torch.full((3,), 0.8))
    assert weight.requires_grad
