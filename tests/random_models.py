"""Random models with a recurrent network in them: one seed makes one model, its arguments and the options of a call.

python tests/random_models.py 1234      prints the model of a seed
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from unrolled.cells import recurrent

WORDS = 12


@dataclass
class Case:
    """One model, the arguments of one call, and how it is to be explained."""

    seed: int
    model: nn.Module
    args: tuple
    target: object
    expansion: str
    words: list[str] = field(default_factory=list)
    """What the model is made of."""
    jumps: bool = False
    """Whether its readout jumps: what is rounded, or masked by what the states are."""

    def __str__(self):
        return f"seed {self.seed}: {', '.join(self.words)}; expansion {self.expansion}"


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


OWN = ("mlstm", "mrnn", "mi_gru", "mi_lstm", "gru_reset_before", "mgu", "lstm", "gru", "rnn")


def _part(draw, words, size, units):
    """One recurrent part, and the width of its states."""
    kind = draw.choice([nn.RNN, nn.GRU, nn.LSTM])
    layers, both = draw.choice([1, 1, 1, 2, 2, 3]), draw.random() < 0.4
    form = draw.choices(["network", "stack", "cells", "own"], [12, 2, 2, 2])[0]
    words.append(f"{form} {kind.__name__} {layers} layers{' both ways' if both else ''}")
    if form == "cells":
        between = draw.choice(["nothing", "norm", "dropout"])
        words.append(f"{between} between the steps")
        cell = {nn.RNN: nn.RNNCell, nn.GRU: nn.GRUCell, nn.LSTM: nn.LSTMCell}[kind]
        return Cells(cell, size, units, between), units
    if form == "stack":
        between = draw.choice(["nothing", "residual", "norm", "relu", "highway"])
        words.append(f"{between} between the layers")
        return Stack(kind, size, units, max(2, layers), both, between), units * (1 + both)
    packed = draw.random() < 0.3
    options = {"batch_first": packed or draw.random() < 0.7, "bidirectional": both}
    width = units
    if form == "own":
        from unrolled.cells import CELLS

        name = draw.choice([each for each in OWN if each in CELLS.names()])
        words.append(f"of {name}")
        network = recurrent(name, size, units, layers, both, batch_first=True)
        return Network(network, packed, False, units, 1), units * (1 + both)
    options |= {"bias": draw.random() < 0.85, "dropout": 0.3 if layers > 1 and draw.random() < 0.3 else 0.0}
    if kind is nn.RNN and draw.random() < 0.4:
        options["nonlinearity"] = "relu"
    if kind is nn.LSTM and draw.random() < 0.15:
        options["proj_size"] = width = units - 1
    learned = draw.random() < 0.25 and "proj_size" not in options
    words.append(", ".join(f"{k}={v}" for k, v in options.items()) + (", packed" if packed else ""))
    network = kind(size, units, layers, **options)
    part = Network(network, packed, learned, units, layers * (1 + both))
    return part, width * (1 + both)


def case(seed: int) -> Case:
    """Make the case of a seed."""
    draw = random.Random(seed)
    words: list[str] = []
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        dtype = torch.float32 if draw.random() < 0.12 else torch.float64
        batch, time = draw.choice([1, 1, 2, 3]), draw.randint(1, 7)
        size, units = draw.randint(2, 4), draw.randint(2, 4)
        text, scale = draw.random() < 0.7, draw.choice([1.0, 1.0, 2.0, 3.0])
        part, width = _part(draw, words, size, units)
        if draw.random() < 0.1:
            way = draw.choice(["side by side", "above"])
            other, more = _part(draw, words, size if way == "side by side" else width, units)
            part, width = Two(part, other, way), width + more if way == "side by side" else more
            words.append(way)
        pooling = draw.choice(POOLINGS) if draw.random() < 0.95 else draw.choice(ODD_POOLINGS)
        head, front = draw.choice(list(HEADS)), draw.choice(FRONTS)
        model: nn.Module = Model(text, front, part, width, pooling, head, size)
        words += [
            f"{front} in front",
            pooling,
            f"{head} head",
            str(dtype)[6:],
            f"batch {batch}, time {time}, x{scale:g}",
        ]
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if "part" in name:
                    weight.mul_(scale)
        lengths = torch.tensor([time, *(draw.randint(1, time) for _ in range(batch - 1))])
        given = torch.randint(1, WORDS, (batch, time)) if text else torch.randn(batch, time, size).to(dtype)
        for row, n in enumerate(lengths.tolist()):
            given[row, n:] = 0
        args: tuple = (given, lengths)
        if draw.random() < 0.07:
            other = given.flip(0) if text else given * 0.5
            model, args = Siamese(model), (given, other, lengths)
            words.append("siamese")
        target = draw.choice([0, 1, 2, None, lambda out: out[:, 1] - out[:, 0]])
        expansion = draw.choices(
            ["secant", "operating", "gates", "shares", "path", "mean(operating,gates)"], [10, 3, 2, 2, 1, 1]
        )[0]
        return Case(seed, model.to(dtype).eval(), args, target, expansion, words, pooling in ODD_POOLINGS)


if __name__ == "__main__":
    shown = case(int(sys.argv[1]))
    sys.stdout.write("\n".join(map(str, (shown, shown.model, *shown.args))) + "\n")
