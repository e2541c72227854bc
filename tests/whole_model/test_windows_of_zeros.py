"""An account in which nothing moves the output closes by the rounding of the numbers that were added up."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

import unrolled
from unrolled.held_forward import rule
from unrolled.held_forward.mode import RULES


class Series(nn.Module):
    """A network that reads windows of numbers."""

    def __init__(self, kind, seed, read=None):
        super().__init__()
        torch.manual_seed(seed)
        self.rnn, self.head = kind(2, 32, num_layers=2, batch_first=True), nn.Linear(32, 1)
        self.read = read or nn.Identity()
        for weight in self.rnn.parameters():
            weight.data.mul_(2.0)

    def forward(self, series):
        return self.head(self.read(self.rnn(series)[0][:, -1]))


def accounts(kind, dtype, windows):
    return [unrolled.account(Series(kind, seed).to(dtype), windows.to(dtype), target=0) for seed in range(20)]


@pytest.mark.quick_diagonal(2)  # quick: every network, both types
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_windows_of_zeros_close(kind, dtype):
    found = accounts(kind, dtype, torch.zeros(1, 12, 2))
    assert any(float(each.remainder.abs()) > 4 * torch.finfo(dtype).eps * float(each.output.abs()) for each in found)
    assert all(each.closes and each.exact for each in found)


def test_a_window_of_zeros_closes_beside_another_one():
    windows = torch.stack((torch.zeros(12, 2), torch.randn(12, 2)))
    for each in accounts(nn.GRU, torch.float32, windows):
        assert each.closes
        assert all(one.closes for one in each)


def test_the_numbers_of_one_bias_pass_apart():
    """What passes is at least Σ|c| of the parts, and it is more where the numbers of one part have both signs."""
    for each in accounts(nn.GRU, torch.float64, torch.zeros(1, 12, 2)):
        parts = sum(value.abs() for value in (*each.biases.values(), *each.constants.values()))
        assert bool((each.passed >= parts).all())
        assert bool((each.passed > 2 * parts).any())


def test_examples_in_another_order_pass_what_they_pass_alone():
    class Turned(Series):
        def forward(self, series):
            return super().forward(series.flip(0))

    windows, model = torch.randn(3, 12, 2).double(), Turned(nn.GRU, 0).double()
    together = unrolled.account(model, windows, target=0).passed
    alone = [unrolled.account(model, windows[place : place + 1], target=0).passed for place in (2, 1, 0)]
    torch.testing.assert_close(together, torch.cat(alone))


def test_a_remainder_that_is_more_than_rounding_does_not_close():
    @rule("special_bessel_j0")
    def lossy(call):
        x = call.args[0]
        return x * (call.held() - 1e-6) / x.detach() + 1e-6  # which no row holds

    model = Series(nn.GRU, 0, torch.special.bessel_j0).double()
    try:
        found = unrolled.account(model, torch.zeros(1, 12, 2).double(), target=0)
    finally:
        del RULES["special_bessel_j0"]
    assert not found.closes
    assert "more than rounding" in found.notes[0]


def test_what_moves_the_output_is_still_measured_by_its_movement():
    """The control: a remainder of a hundredth of a small movement, which is the rounding of large biases."""
    found = unrolled.account(Series(nn.GRU, 0), 0.1 * torch.randn(1, 12, 2), target=0)
    assert found.closes
    rounding = torch.finfo(torch.float32).eps * found.passed
    biases = {"head.bias": found.output - 100 * rounding}
    inputs = {name: part * (99 * rounding / found.inputs) for name, part in found.features.items()}
    small = replace(found, biases=biases, constants={}, features=inputs)
    assert float(small.remainder.abs()) < 4 * float(rounding)
    assert not small.closes
