"""Parts that a model with a recurrent network in it is put together of."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

WORDS = 12


class Cells(nn.Module):
    """A loop over one of torch's cells, with something between its steps."""

    def __init__(self, kind, inputs, units, between):
        super().__init__()
        self.cell = kind(inputs, units)
        self.norm = nn.LayerNorm(units) if between == "norm" else nn.Dropout(0.3) if between == "dropout" else None

    def forward(self, x, lengths=None):
        lstm = isinstance(self.cell, nn.LSTMCell)
        h = x.new_zeros(len(x), self.cell.hidden_size)
        state, outputs = ((h, h) if lstm else h), []
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
            h = state[0] if lstm else state
            h = h if self.norm is None else self.norm(h)
            state = (h, state[1]) if lstm else h
            outputs.append(h)
        return torch.stack(outputs, 1), h


class Stack(nn.Module):
    """Networks one above the other, with functions of each position between them."""

    def __init__(self, kind, inputs, units, layers, both, between):
        super().__init__()
        width = units * (1 + both)
        sizes = [inputs, *[width] * (layers - 1)]
        self.layers = nn.ModuleList(kind(size, units, batch_first=True, bidirectional=both) for size in sizes)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in sizes)
        self.between = between

    def forward(self, x, lengths=None):
        final = None
        for k, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            below = x
            x, final = layer(x)
            if self.between == "residual" and k:
                x = x + below
            elif self.between == "norm":
                x = norm(x)
            elif self.between == "relu":
                x = torch.relu(x)
            elif self.between == "highway" and k:
                gate = torch.sigmoid(norm(x))
                x = gate * x + (1 - gate) * below
        final = final[0] if isinstance(final, tuple) else final
        return x, torch.cat(list(final), -1)


class Network(nn.Module):
    """One recurrent module, padded or packed, with or without an initial state."""

    def __init__(self, network, packed, learned, units, rows):
        super().__init__()
        self.rnn, self.packed = network, packed
        self.start = nn.Parameter(torch.randn(rows, 1, units) * 0.5) if learned else None

    def forward(self, x, lengths=None):
        state = None
        if self.start is not None:
            h = self.start.expand(-1, len(x), -1).contiguous()
            state = (h, torch.tanh(h)) if isinstance(self.rnn, nn.LSTM) else h
        given = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False) if self.packed else x
        if not self.packed and not self.rnn.batch_first:
            given = x.transpose(0, 1)
        out, final = self.rnn(given, state)
        if self.packed:
            out, _ = pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])
        elif not self.rnn.batch_first:
            out = out.transpose(0, 1)
        final = final[0] if isinstance(final, tuple) else final
        top = 2 if self.rnn.bidirectional else 1
        return out, torch.cat(list(final[-top:]), -1)


class Two(nn.Module):
    """Two networks over one text: side by side, or the second above the first."""

    def __init__(self, one, other, way):
        super().__init__()
        self.one, self.other, self.way = one, other, way

    def forward(self, x, lengths=None):
        out, final = self.one(x, lengths)
        if self.way == "side by side":
            more, last = self.other(x, lengths)
            return torch.cat([out, more], -1), torch.cat([final, last], -1)
        return self.other(out, lengths)


class Pooling(nn.Module):
    def __init__(self, way, width):
        super().__init__()
        self.way, self.score, self.project = way, nn.Linear(width, 1), nn.Linear(width, width)

    def forward(self, states, final, mask):
        inside = mask[..., None]
        match self.way:
            case "last":
                return states[:, -1]
            case "first":
                return states[:, 0]
            case "final":
                return final
            case "sum":
                return states.sum(1)
            case "mean":
                return states.mean(1)
            case "masked mean":
                return (states * inside).sum(1) / inside.sum(1)
            case "max":
                return states.amax(1)
            case "masked max":
                return states.masked_fill(~inside, -1e9).max(dim=1).values
            case "both ends":
                return (states[:, 0] + states[:, -1]) / 2
            case "attention":
                return (self.score(torch.tanh(self.project(states))).softmax(1) * states).sum(1)
            case "masked attention":
                logits = self.score(states).masked_fill(~inside, -torch.inf)
                return (logits.softmax(1) * states).sum(1)
            case "self-attention":
                weights = (self.project(states) @ states.transpose(1, 2) / states.shape[-1] ** 0.5).softmax(-1)
                return (weights @ states).mean(1)
            case "gated":
                return (torch.sigmoid(self.score(states)) * torch.tanh(self.project(states))).sum(1)
            case "zeros masked":  # bias of -1e9 where a state is zero
                return states.masked_fill(states == 0, -1e9).amax(1)
            case "rounded":
                return torch.round(states * 8).mean(1) / 8


HEADS = {
    "linear": lambda w: nn.Linear(w, 3),
    "relu": lambda w: nn.Sequential(nn.Linear(w, 5), nn.ReLU(), nn.Linear(5, 3)),
    "gelu": lambda w: nn.Sequential(nn.LayerNorm(w), nn.Linear(w, 5), nn.GELU(), nn.Dropout(0.5), nn.Linear(5, 3)),
    "tanh": lambda w: nn.Sequential(nn.Linear(w, 5), nn.Tanh(), nn.Linear(5, 4), nn.Sigmoid(), nn.Linear(4, 3)),
    "glu": lambda w: nn.Sequential(nn.Linear(w, 8), nn.GLU(), nn.Linear(4, 3)),
    "silu": lambda w: nn.Sequential(nn.Linear(w, 5), nn.SiLU(), nn.Softplus(), nn.Linear(5, 3)),
    "leaky": lambda w: nn.Sequential(
        nn.Dropout(0.2), nn.Linear(w, 5), nn.LeakyReLU(), nn.BatchNorm1d(5), nn.Linear(5, 3)
    ),
    "elu": lambda w: nn.Sequential(nn.Linear(w, 5), nn.ELU(), nn.Linear(5, 3), nn.Hardtanh(-3, 3)),
    "log-softmax": lambda w: nn.Sequential(nn.Linear(w, 3), nn.LogSoftmax(-1)),
    "softmax": lambda w: nn.Sequential(nn.Linear(w, 3), nn.Softmax(-1)),
}
FRONTS = ("none", "none", "linear", "convolution", "norm", "scaled", "reversed", "dropout")
POOLINGS = ["last", "first", "final", "sum", "mean", "max", "both ends", "gated"]
POOLINGS += ["attention", "self-attention", "masked mean", "masked max", "masked attention"]
ODD_POOLINGS = ("zeros masked", "rounded")


class Model(nn.Module):
    """Embedding or features, something in front, recurrent part, pooling, head."""

    def __init__(self, text, front, part, width, pooling, head, size):
        super().__init__()
        self.embed = nn.Embedding(WORDS, size, padding_idx=0) if text else None
        self.front = front
        self.change = {
            "linear": lambda: nn.Linear(size, size),
            "norm": lambda: nn.LayerNorm(size),
            "convolution": lambda: nn.Conv1d(size, size, 3, padding=1),
            "dropout": lambda: nn.Dropout(0.4),
        }.get(front, nn.Identity)()
        self.part, self.pooling, self.head = part, Pooling(pooling, width), HEADS[head](width)

    def forward(self, given, lengths):
        x = given if self.embed is None else self.embed(given)
        if self.front == "convolution":
            x = torch.tanh(self.change(x.transpose(1, 2)).transpose(1, 2))
        elif self.front == "scaled":
            x = x * x.shape[-1] ** 0.5
        elif self.front == "reversed":
            x = x.flip(1)
        else:
            x = self.change(x)
        states, final = self.part(x, lengths)
        mask = torch.arange(given.shape[1])[None] < lengths[:, None]
        return self.head(self.pooling(states, final, mask))


class Siamese(nn.Module):
    """One network for two texts."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, one, other, lengths):
        return self.model(one, lengths) - 0.5 * self.model(other, lengths)
