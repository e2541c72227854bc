"""Random networks: the sum of an explanation is the model's own logit, whatever the network."""

from __future__ import annotations

import random
from pathlib import Path

import torch
from torch import nn

from cases import Part
from unrolled import explain
from unrolled.errors import UnrolledError

_AT_ONCE = 30
"""Networks of one case."""


class Reader(nn.Module):
    """Embeds tokens, or takes numbers; a recurrent network; a pooling; a head."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        sizes = [draw.randrange(1, 9) for _ in range(3)]
        self.embedding = nn.Embedding(7, sizes[0]) if draw.random() < 0.7 else None
        kind, layers = draw.choice((nn.RNN, nn.LSTM, nn.GRU)), draw.choice((1, 1, 2, 3))
        both = draw.random() < 0.3
        options = {"nonlinearity": draw.choice(("tanh", "relu"))} if kind is nn.RNN else {}
        self.rnn = kind(
            sizes[0], sizes[1], layers, batch_first=True, bidirectional=both, bias=draw.random() < 0.8, **options
        )
        width = sizes[1] * (1 + both)
        self.pool = draw.choice(("last", "mean", "max", "sum"))
        self.head = draw.choice(
            (
                nn.Linear(width, 3),
                nn.Sequential(nn.Linear(width, sizes[2]), nn.ReLU(), nn.Linear(sizes[2], 3)),
                nn.Sequential(nn.Dropout(0.3), nn.Linear(width, sizes[2]), nn.Tanh(), nn.Linear(sizes[2], 3)),
            )
        )
        self.size = sizes[0]

    def forward(self, inputs):
        states, _ = self.rnn(inputs if self.embedding is None else self.embedding(inputs))
        pooled = {
            "last": lambda: states[:, -1],
            "mean": lambda: states.mean(1),
            "max": lambda: states.amax(1),
            "sum": lambda: states.sum(1),
        }[self.pool]()
        return self.head(pooled)


def check(draw: random.Random) -> str | None:
    """Explain one random network on one random input."""
    torch.manual_seed(draw.randrange(2**31))
    model = Reader(draw).double().train(draw.random() < 0.2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(draw.choice((0.5, 1.0, 3.0)))
    steps = draw.randrange(1, 9)
    inputs = (
        torch.randint(0, 7, (1, steps)) if model.embedding is not None else torch.randn(1, steps, model.size).double()
    )
    target, expansion = draw.randrange(3), draw.choice(("secant", "secant", "shares"))
    training = model.training
    model.eval()
    with torch.no_grad():
        logit = float(model(inputs)[0, target])
    model.train(training)
    try:
        ledger = explain(model, inputs, target=target, expansion=expansion).ledger
    except UnrolledError as error:
        return None if "\n" not in str(error) else f"more than a line: {error}"
    total = float(ledger.ngrams + ledger.initial + ledger.bias)
    if model.training != training:
        return "the mode was changed"
    if abs(total - logit) > 1e-6 * max(1.0, abs(logit)) or abs(float(ledger.logit) - logit) > 1e-6 * max(
        1.0, abs(logit)
    ):
        return f"{expansion}, {model.rnn}, {model.pool}: the parts are {total:.9g}, the logit is {logit:.9g}"
    return None


def run(_: int, draw: random.Random, _place: Path, _shared) -> list[str]:
    """Some networks."""
    return [fault for _ in range(_AT_ONCE) if (fault := check(draw))]


PARTS = (Part(f"random networks, {_AT_ONCE} a case", "the parts of an explanation add up to the logit", 100, run),)
