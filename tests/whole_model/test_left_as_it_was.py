"""An account leaves the model, its arguments and the settings of its caller as they were."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError
from whole_model_zoo import Classifier, E, ids


class Stateful(Classifier):
    """Keeps its last state, counts its calls and normalises."""

    def __init__(self):
        super().__init__(nn.LSTM, 2, True, "mean", "norm")
        self.norm = nn.BatchNorm1d(E)
        self.register_buffer("calls", torch.zeros(()))
        self.last = None

    def forward(self, tokens):
        self.calls += 1
        self.last = self.embed(tokens)
        return super().forward(tokens)


def test_the_model_is_left_as_it_was():
    torch.manual_seed(0)
    model = Stateful().train()
    model.rnn.weight_ih_l0.requires_grad_(False)
    seen = []
    model.head.register_forward_hook(lambda *_: seen.append(1))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    flags = {name: p.requires_grad for name, p in model.named_parameters()}
    hooks = [len(module._forward_hooks) for module in model.modules()]
    unrolled.account(model, ids(3, 5), target=1)
    with pytest.raises(UsageError):
        unrolled.account(model, ids(3, 5), target=1, of="rnn")
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert {name: p.requires_grad for name, p in model.named_parameters()} == flags
    assert [len(module._forward_hooks) for module in model.modules()] == hooks
    assert all(module.training for module in model.modules())
    assert all(p.grad is None for p in model.parameters())
    assert model.last is None
    assert not any("forward" in vars(module) for module in model.modules())
    assert seen  # a hook of the user's own is part of the model


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_it_is_the_same_where_gradients_are_off(mode):
    torch.manual_seed(0)
    model, tokens = Classifier(nn.LSTM, 2, True).double(), ids(3, 5)
    expected = unrolled.account(model, tokens, target=1)
    with mode():
        found = unrolled.account(model, tokens.clone(), target=1)
        assert not torch.is_grad_enabled()
    assert torch.equal(found.tokens, expected.tokens)
    assert not found.tokens.requires_grad


def test_autocast_of_the_caller_is_off():
    torch.manual_seed(0)
    model, tokens = Classifier(nn.GRU), ids(2, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = unrolled.account(model, tokens, target=1)
    assert found.output.dtype == torch.float32
    assert found.closes


def test_arguments_that_the_model_changes_are_left_alone():
    class InPlace(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(4, 2)

        def forward(self, x):
            return self.head(x.mul_(2).relu_())

    x = torch.randn(3, 4).double()
    before, model = x.clone(), InPlace().double()
    found = unrolled.account(model, x, target=1)
    assert torch.equal(x, before)
    torch.testing.assert_close(found.features["0"], 2 * before.relu() * model.head.weight[1].detach())
