"""Five parameters that close every bracket: the Dyck-RNN on brackets of two kinds, nested 4, 6 and 8 deep.

    python examples/dyck.py

The network reads a string up to a closing bracket and says which it is. For each depth m it is judged by its
worst-case accuracy (WCPA): the share of closing brackets that get more than 0.8 of the probability, at the distance
from the opening bracket where that share is smallest. The test strings are all longer than the longest that was
trained on. A table is printed; the script fails when a WCPA is below 100%.

From the paper are the model, the embedding, Adam at 0.01, and to stop at a small loss. Ours are the lengths, the loss
to stop at, all closing brackets of a string learned from at once, and Adam's shorter memory: the gradient of the
gate's w shrinks as w grows, and an average over a thousand steps would hold back the last of them.

Sources:
    Second-order RNNs, sections 4.2, 5.1 and 5.2; Hewitt et al. (2020), arXiv:2010.07515, for the automaton.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from unrolled.lab.data.datasets.dyck import DyckStrings
from unrolled.lab.metrics.worst_case import accuracy_by_distance
from unrolled.lab.models.brackets import NextBracketModel, dyck_rnn, fixed_brackets

KINDS, DEPTHS = 2, (4, 6, 8)
SHORT, LONG = (101, 200), (201, 400)
"""Lengths of the strings that are trained on, and of those that are tested on."""
SYMBOLS, BATCH = (130_000, 1, 240_000), 64
RATE, BETAS = 0.01, (0.9, 0.95)
ENOUGH, MOST = 1e-3, 150
"""The mean loss of an epoch to stop at, and the most epochs."""


class Row(NamedTuple):
    """What the table says of a model."""

    depth: int
    parameters: int
    train: float
    test: float
    epochs: int
    weight: float
    seconds: float

    def __str__(self) -> str:
        """One line, under HEADING."""
        return (
            f"{self.depth:>2}{self.parameters:>12}{self.train:>12.2%}{self.test:>12.2%}"
            f"{self.epochs:>8}{self.weight:>8.2f}{self.seconds:>9.0f}"
        )


HEADING = " m  parameters  WCPA train   WCPA test  epochs       w  seconds"


class Questions(NamedTuple):
    """Strings, and what there is to predict in them."""

    brackets: Tensor
    """Shape (strings, time); what is padded is never asked about."""
    row: Tensor
    """The string of each question, shape (questions,)."""
    after: Tensor
    """The index of the last bracket that may be read."""
    closing: Tensor
    """The kind that is right."""
    distance: Tensor
    """From the bracket that is closed to the one that closes it."""

    def targets(self) -> Tensor:
        """The kind that is right after each bracket, -100 where none is closed; shape (strings, time)."""
        return torch.full_like(self.brackets, -100).index_put((self.row, self.after), self.closing)


def closings(brackets: Sequence[int], kinds: int) -> list[tuple[int, int, int]]:
    """Find what there is to predict in a string.

    Args:
        brackets: the string.
        kinds: k.

    Returns:
        For each closing bracket how many brackets stand before it, its kind, and how far back its opening one is.
    """
    opened: list[int] = []
    found = []
    for place, bracket in enumerate(brackets):
        if bracket < kinds:
            opened.append(place)
        else:
            found.append((place, bracket - kinds, place - opened.pop()))
    return found


def questions(strings: Sequence[Sequence[int]], kinds: int) -> Questions:
    """Ask for every closing bracket of the strings."""
    found = [
        (row, place - 1, kind, far) for row, each in enumerate(strings) for place, kind, far in closings(each, kinds)
    ]
    return Questions(pad_sequence([torch.tensor(each) for each in strings], batch_first=True), *torch.tensor(found).T)


def wcpa(model: NextBracketModel, asked: Questions) -> float:
    """Judge a model by its worst distance."""
    with torch.no_grad():
        logits = model(asked.brackets)[asked.row, asked.after]
    return min(accuracy_by_distance(logits, asked.closing, asked.distance).values())


def fit(model: NextBracketModel, asked: Questions) -> int:
    """Train a model until its loss is small; the result is the number of epochs."""
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=RATE, betas=BETAS)
    targets = asked.targets()
    for epoch in range(1, MOST + 1):
        losses = []
        for batch in torch.randperm(len(targets)).split(BATCH):
            optimiser.zero_grad()
            logits = model(asked.brackets[batch])
            loss = cross_entropy(logits.flatten(0, 1), targets[batch].flatten())
            loss.backward()
            optimiser.step()
            losses.append(loss.detach())
        if torch.stack(losses).mean() < ENOUGH:
            return epoch
    return MOST


def row(depth: int, seed: int = 0) -> Row:
    """Draw strings, train a model of that depth and judge it."""
    start = time.perf_counter()
    strings = DyckStrings(KINDS, depth, short=SHORT, long=LONG, symbols=SYMBOLS, seed=seed).read()
    seen, unseen = questions(strings.train, KINDS), questions(strings.test, KINDS)
    torch.manual_seed(seed)
    model = dyck_rnn(fixed_brackets(KINDS), depth)
    epochs = fit(model, seen)
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    (weight,) = model.encoder.parameters()
    return Row(
        depth, parameters, wcpa(model, seen), wcpa(model, unseen), epochs, weight.item(), time.perf_counter() - start
    )


def main() -> int:
    """Print the table; 1 when a closing bracket of some distance is not always right."""
    print(HEADING)
    rows = []
    for depth in DEPTHS:
        rows.append(row(depth))
        print(rows[-1], flush=True)
    return int(any(min(each.train, each.test) < 1 for each in rows))


if __name__ == "__main__":
    sys.exit(main())
