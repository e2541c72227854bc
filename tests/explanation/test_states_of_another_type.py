"""First states, second inputs and buffers of another type than the weights are named by both types."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError

CALLS = {
    "explain": unrolled.explain,
    "explain_batch": unrolled.explain_batch,
    "account": unrolled.account,
    "check": unrolled.check,
}
X = torch.tensor(np.linspace(-1, 1, 12).reshape(1, 4, 3), device="cpu")
IDS = torch.tensor([[1, 2, 3, 1]], device="cpu")


class Starts(nn.Module):
    """Starts its network from a state that it is given, or from one of a buffer."""

    def __init__(self, kind, buffer=False):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(7, 3), kind(3, 5), nn.Linear(5, 2)
        self.register_buffer("first", torch.zeros(1, 1, 5, dtype=torch.float64) if buffer else None)

    def forward(self, x, state=None):
        steps = (x if x.is_floating_point() else self.embed(x)).transpose(0, 1)
        state = self.first if state is None else state
        if isinstance(self.rnn, nn.RNNBase):
            pair = isinstance(self.rnn, nn.LSTM) and isinstance(state, torch.Tensor)
            return self.head(self.rnn(steps, (state, state) if pair else state)[0][-1])
        for each in steps:
            state = self.rnn(each, state)
        return self.head(state if isinstance(state, torch.Tensor) else state[0])


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM, nn.GRUCell, nn.LSTMCell])
def test_a_first_state_of_another_type(call, kind):
    zeros = torch.zeros(1, 1, 5, device="cpu") if issubclass(kind, nn.RNNBase) else torch.zeros(1, 5, device="cpu")
    state = (zeros, zeros) if issubclass(kind, nn.LSTM | nn.LSTMCell) else zeros
    twice = (zeros.double(), zeros.double()) if isinstance(state, tuple) else zeros.double()
    said = r"^the model fails on an argument of torch.float64, since it computes in torch.float32; pass x.to\(torch.flo"
    with pytest.raises(UsageError, match=said):
        call(Starts(kind), IDS, twice)
    with pytest.raises(UsageError, match=rf"{said}at32\)$"):  # to convert the model would not fit the series
        call(Starts(kind), X.float(), twice)
    for given in (IDS, X.float()):
        assert call(Starts(kind), given, state) is not None  # the remedy


class Weighs(Starts):
    def __init__(self):
        super().__init__(nn.GRU)
        self.both = nn.Bilinear(5, 2, 3)

    def forward(self, ids, numbers):
        return self.both(self.rnn(self.embed(ids))[0][:, -1], numbers)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_second_input_of_a_bilinear_layer_of_another_type(call):
    numbers = torch.ones(1, 2, dtype=torch.float64, device="cpu")
    with pytest.raises(
        UsageError, match=r"^the model fails on an argument of torch.float64, .* pass x.to\(torch.float32"
    ):
        call(Weighs(), IDS, numbers)
    assert call(Weighs(), IDS, numbers.float()) is not None  # the remedy


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_a_buffer_of_another_type(call, kind):
    model = Starts(kind, buffer=True)
    said = (
        r"float32 and torch.float64: its weights have the first type, its buffer first the second; convert the model: "
    )
    with pytest.raises(UsageError, match=said):
        call(model, IDS)
    assert call(model.to(torch.float32), IDS) is not None  # the remedy


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_first_state_that_the_model_makes_is_its_own(call):
    class Makes(Starts):
        def forward(self, x):
            return super().forward(x, torch.zeros(1, len(x), 5, dtype=torch.float64))

    with pytest.raises(RuntimeError, match="same dtype") as told:
        call(Makes(nn.GRU), IDS)
    assert not isinstance(told.value, UsageError)
    fails = Starts(nn.GRU, buffer=True)
    fails.head = nn.Linear(4, 2)
    with pytest.raises((RuntimeError, UsageError)) as told:  # another fault, of a model with a buffer that is not read
        call(fails, IDS, torch.zeros(1, 1, 5, device="cpu"))
    assert "buffer" not in str(told.value)
