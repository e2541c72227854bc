"""How torch's cells act on blocks of increments where a step of the user's own holds one: by their equations."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from unrolled.held_forward.increments.increments import IncrementCall, increment_rule

__all__: list[str] = []


def _products(call: IncrementCall) -> tuple[Tensor, Tensor, Any]:
    """Return the products of the input and of the hidden state with their weights, and the state."""
    x, state, input_weight, hidden_weight, input_bias, hidden_bias = call.args
    hidden = state[0] if isinstance(state, tuple | list) else state
    return linear(x, input_weight, input_bias), linear(hidden, hidden_weight, hidden_bias), state


@increment_rule("lstm_cell")
def lstm_cell(call: IncrementCall) -> tuple[Tensor, Tensor]:
    """Run one step of an LSTM."""
    with call.mode:
        from_input, from_hidden, (_, cell) = _products(call)
        i, f, g, o = (from_input + from_hidden).chunk(4, -1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(cell), cell


@increment_rule("gru_cell")
def gru_cell(call: IncrementCall) -> Tensor:
    """Run one step of a GRU."""
    with call.mode:
        from_input, from_hidden, hidden = _products(call)
        (xr, xz, xn), (hr, hz, hn) = from_input.chunk(3, -1), from_hidden.chunk(3, -1)
        z = torch.sigmoid(xz + hz)
        kept: Tensor = z * hidden
        return (1 - z) * torch.tanh(xn + torch.sigmoid(xr + hr) * hn) + kept


@increment_rule("rnn_tanh_cell", "rnn_relu_cell")
def rnn_cell(call: IncrementCall) -> Tensor:
    """Run one step of an Elman network."""
    with call.mode:
        from_input, from_hidden, _ = _products(call)
        return (torch.tanh if "tanh" in call.name else torch.relu)(from_input + from_hidden)
