# ruff: noqa: ARG004  # autograd gives a context
"""Custom functions of autograd in a step of the user's own, such as the spikes of networks with surrogate gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import unrolled
from layered_steps import SERIES, model_with
from surrogate_gradients import Spike
from unrolled.errors import UnsupportedOperationError


class NewSpike(torch.autograd.Function):
    """The same in torch's newer form."""

    @staticmethod
    def forward(z):
        return (z > 0).to(z.dtype)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    backward = Spike.backward


class Swish(torch.autograd.Function):
    """A smooth function that saves memory; its gradient is wrong, which no exact expansion may see."""

    @staticmethod
    def forward(ctx, z):
        return z * torch.sigmoid(z)

    @staticmethod
    def backward(ctx, gradient):
        return 100 * gradient


class ByNumpy(torch.autograd.Function):
    """Computes outside of torch."""

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return torch.from_numpy(np.tanh(z.detach().numpy()))

    @staticmethod
    def backward(ctx, gradient):
        (z,) = ctx.saved_tensors
        return gradient * (1 - z.tanh() ** 2)


PAIRS = {
    "spike": (lambda z: z - Spike.apply(z - 0.3), lambda z: z - (z > 0.3).to(z.dtype)),
    "kept": (lambda z, spike=Spike.apply: z - spike(z - 0.3), lambda z: z - (z > 0.3).to(z.dtype)),
    "newer form": (lambda z: z - NewSpike.apply(z - 0.3), lambda z: z - (z > 0.3).to(z.dtype)),
    "swish": (lambda z: Swish.apply(z), lambda z: z * torch.sigmoid(z)),
}


@pytest.mark.quick_diagonal(3)  # quick: every function, every expansion
@pytest.mark.parametrize("expansion", ["secant", "shares", "shares(0.25)"])
@pytest.mark.parametrize("name", PAIRS)
def test_a_custom_function_has_the_n_grams_of_its_operations(name, expansion):
    found, expected = (
        unrolled.explain(model_with(function), SERIES[:1], target=1, expansion=expansion) for function in PAIRS[name]
    )
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, rtol=0, atol=1e-12)
    assert abs(found.ledger.remainder) < 1e-12
    assert abs(found.triangle.contributions).max() > 0.01


class ByAnExtension(ByNumpy):
    """Computes in compiled code, which no mode of torch meets."""

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        with torch._C.DisableTorchFunction():
            return torch.tanh(z)


UNMET = {
    ByNumpy: "by secant: the operation torch.Tensor.numpy",
    ByAnExtension: "by secant: the custom autograd function ByAnExtension does not compute its result by operations",
}


@pytest.mark.parametrize("function", UNMET)
def test_what_is_computed_outside_of_torch_is_refused(function):
    with pytest.raises(UnsupportedOperationError, match=f"torch does not differentiate it.*; {UNMET[function]}"):
        unrolled.explain(model_with(function.apply), SERIES[:1], target=1)


class LeakyIntegrator(nn.Module):
    """One layer of leaky integrate-and-fire neurons with connections among them; a spike takes the threshold off."""

    def __init__(self, spike):
        super().__init__()
        self.reads, self.recurs, self.spike = nn.Linear(3, 6), nn.Linear(6, 6, bias=False), spike

    def forward(self, x, membrane, spikes):
        membrane = 0.9 * membrane + self.reads(x) + self.recurs(spikes) - spikes
        return membrane, self.spike(membrane - 0.5)


class Spiking(nn.Module):
    def __init__(self, spike):
        super().__init__()
        self.cell, self.head = LeakyIntegrator(spike), nn.Linear(6, 2)

    def forward(self, xs):
        membrane = spikes = xs.new_zeros(len(xs), 6)
        counts = 0
        for x in xs.unbind(1):
            membrane, spikes = self.cell(x, membrane, spikes)
            counts = counts + spikes
        return self.head(counts / xs.shape[1])


@pytest.mark.parametrize("expansion", ["secant", "shares"])
def test_a_spiking_network_is_opened(expansion):
    torch.manual_seed(0)
    model, plain = (Spiking(each).double() for each in (Spike.apply, lambda z: (z > 0).to(z.dtype)))
    plain.load_state_dict(model.state_dict())
    found, expected = (unrolled.explain(each, SERIES[1:], target=1, expansion=expansion) for each in (model, plain))
    assert abs(found.ledger.remainder) < 1e-12
    torch.testing.assert_close(found.triangle.contributions, expected.triangle.contributions, rtol=0, atol=1e-12)
    assert abs(found.triangle.contributions).max() > 0.01
    model(SERIES).sum().backward()  # the function is the user's own again
    assert model.cell.reads.weight.grad.abs().max() > 0
