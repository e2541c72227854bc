"""Random models with a recurrent network in them: one seed makes one model, its arguments and the options of a call.

python tests/random_models.py 1234      prints the model of a seed
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field

import torch
from torch import nn

from parts_of_models import FRONTS, HEADS, ODD_POOLINGS, POOLINGS, WORDS, Cells, Model, Network, Siamese, Stack, Two
from unrolled.cells import recurrent


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
