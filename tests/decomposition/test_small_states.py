"""States recomputed of small ones agree in relation to the size of what they are sums of, not to 1."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import ParityError, UnsupportedOperationError

E, D, T = 8, 6, 12


class OfTwice(nn.GRU):
    """Reads twice its input, which no weight says."""

    def forward(self, input, hx=None):
        return super().forward(2 * input, hx)


def with_small_states(rnn: nn.RNNBase, size: float) -> nn.RNNBase:
    """Scale what makes the candidates, so that the states are of some size."""
    with torch.no_grad():
        for name, weight in rnn.named_parameters():
            if "bias" in name:
                weight.zero_()
            elif "ih" in name:
                weight.mul_(size)
    return rnn


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1.0, 1e-4, 1e-12, 1e-20])
@pytest.mark.parametrize("layers", [1, 2])
def test_another_network_is_refused_however_small_its_states_are(dtype, size, layers):
    torch.manual_seed(0)
    inputs = torch.randn(T, 2, E, dtype=dtype)
    other = with_small_states(OfTwice(E, D, layers).to(dtype), size)
    with pytest.raises(ParityError, match="is its forward the one of"):
        unrolled.decompose(other, inputs)
    itself = with_small_states(nn.GRU(E, D, layers).to(dtype), size)  # the control
    found = unrolled.decompose(itself, inputs)
    assert found.parity <= 1e-3 * float(itself(inputs)[0].detach().abs().max())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_another_network_of_a_coarse_type_is_refused_as_such(dtype):
    torch.manual_seed(0)
    inputs = torch.randn(T, 2, E, dtype=dtype)
    with pytest.raises(ParityError, match=f"in {dtype}: is its forward the one of"):
        unrolled.decompose(OfTwice(E, D).to(dtype), inputs)
    unrolled.decompose(nn.GRU(E, D).to(dtype), inputs)  # the control


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_states_below_the_smallest_numbers_of_a_type_are_rounding(kind):
    torch.manual_seed(0)
    inputs, eps = torch.randn(T, 2, E).mul(1e-6).half(), 2.0**-24
    network = with_small_states(kind(E, D), 1.0).half()
    found, own = unrolled.decompose(network, inputs), network(inputs)[0].detach()
    assert 0.02 * float(own.abs().max()) < found.parity < 20 * eps  # in relation to the states they differ
    network = with_small_states(OfTwice(E, D), 1.0).half()
    with pytest.raises(ParityError, match="is its forward the one of"):  # the control
        unrolled.decompose(network, inputs * 1e3)


@pytest.mark.parametrize("size", [3e-7, 1e-6, 1e-4])
def test_another_network_is_refused_where_its_states_are_some_smallest_numbers(size):
    torch.manual_seed(0)
    inputs, eps = torch.randn(T, 2, E).mul(size).half(), 2.0**-24
    other = with_small_states(OfTwice(E, D), 1.0).half()
    assert float(other(inputs)[0].detach().abs().max()) > 10 * eps
    with pytest.raises(ParityError, match="is its forward the one of"):
        unrolled.decompose(other, inputs)
    for kind in (nn.RNN, nn.GRU, nn.LSTM):  # the control
        itself = with_small_states(kind(E, D, bidirectional=True), 1.0).half()
        assert unrolled.decompose(itself, inputs).parity < max(2 * eps, 0.02 * size)


def test_rounding_of_the_smallest_numbers_grows_with_layers():
    torch.manual_seed(0)
    inputs, eps = torch.randn(5, 2, E).mul(1e-6).half(), 2.0**-24
    deep = with_small_states(nn.RNN(E, 256, 6), 1.0)
    with torch.no_grad():
        for level in range(6):
            getattr(deep, f"weight_hh_l{level}").mul_(3)
    assert 5 * eps < unrolled.decompose(deep.half(), inputs).parity < 20 * eps


def test_states_that_are_small_since_large_sums_cancel_are_rounding():
    torch.manual_seed(0)
    rnn, half = with_small_states(nn.RNN(E, 2 * D), 1e-3), torch.randn(D, D).mul(1e4)
    with torch.no_grad():
        rnn.weight_ih_l0[D:] = rnn.weight_ih_l0[:D]  # each number of the state stands there twice
        rnn.weight_hh_l0.copy_(torch.cat((half, -half), dim=1).repeat(2, 1))  # U h is 0 but for rounding
    inputs = torch.randn(T, 1, E)
    found, states = unrolled.decompose(rnn, inputs), rnn(inputs)[0].detach()
    assert found.parity > 1e-3 * float(states.abs().max())  # in relation to the states alone they differ


class Row(nn.Module):
    """A step whose states are small; a row may read the mean of all."""

    def __init__(self, size: float, mixes: bool) -> None:
        super().__init__()
        self.x, self.h, self.size, self.mixes = nn.Linear(E, D), nn.Linear(D, D), size, mixes

    def forward(self, x, h):
        new = torch.tanh(self.x(x) + self.h(h / self.size))
        return self.size * (new - new.mean(0) if self.mixes else new)


class OfRows(nn.Module):
    def __init__(self, size: float, mixes: bool) -> None:
        super().__init__()
        self.cell, self.head = Row(size, mixes), nn.Linear(D, 2)
        with torch.no_grad():
            self.head.weight.div_(size)

    def forward(self, x):
        h = x.new_zeros(len(x), D)
        for step in x.unbind(1):
            h = self.cell(step, h)
        return self.head(h)


@pytest.mark.quick_diagonal(2)  # quick: every size, both types
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1.0, 1e-6, 1e-12])
def test_rows_that_change_each_other_are_refused_however_small_the_states_are(dtype, size):
    torch.manual_seed(0)
    x = torch.randn(3, 5, E, dtype=dtype)
    with pytest.raises(UnsupportedOperationError, match="a row of the batch changes another one"):
        unrolled.explain_batch(OfRows(size, True).to(dtype), x, target=0)
    apart = unrolled.explain_batch(OfRows(size, False).to(dtype), x, target=0)  # the control
    assert all(each.exact for each in apart)


class Counted(nn.Module):
    """A step whose state is small, beside a count that is not."""

    def __init__(self, step: Row) -> None:
        super().__init__()
        self.step = step

    def forward(self, x, h, count):
        return self.step(x, h), count + x.abs().sum(1, keepdim=True)


class OfCounted(OfRows):
    def forward(self, x):
        cell, h, count = self.cell, x.new_zeros(len(x), D), x.new_zeros(len(x), 1)
        for step in x.unbind(1):
            h, count = cell(step, h, count)
        return self.head(h) + count


@pytest.mark.parametrize("size", [1.0, 1e-6])
def test_a_part_of_the_state_is_measured_by_its_own_size(size):
    torch.manual_seed(0)
    x, model = torch.randn(3, 5, E), OfCounted(size, True)
    model.cell = Counted(model.cell)
    with pytest.raises(UnsupportedOperationError, match="a row of the batch changes another one"):
        unrolled.explain_batch(model, x, target=0)
    model.cell.step.mixes = False  # the control
    assert len(unrolled.explain_batch(model, x, target=0)) == 3


class Cancels(nn.Module):
    """A step that takes large numbers from large numbers; rows do not read each other."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.h = nn.Linear(64, D, bias=False), nn.Linear(D, D, bias=False)
        with torch.no_grad():
            self.x.weight[:, 32:] = -self.x.weight[:, :32]

    def forward(self, x, h):
        return torch.tanh(self.x(x) + self.h(h))


def test_rows_of_sums_that_cancel_do_not_change_each_other():
    torch.manual_seed(0)
    model = OfRows(1.0, False)
    model.cell = Cancels()
    x = torch.randn(3, 4, 32).mul(300).repeat(1, 1, 2)
    assert len(unrolled.explain_batch(model, x, target=0)) == 3
