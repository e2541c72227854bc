"""Several at once: writers of one run, threads on one model, trials in one folder."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import torch
from killing import Texts, go_on, recorded, same
from torch import nn

from cases import Part, code_of, fork
from toy_tasks import DATA
from unrolled import explain
from unrolled.errors import UnrolledError
from unrolled.lab.training import engine
from unrolled.lab.training.run_folder import load_run


def prepare(place: Path):
    """A training that nobody disturbs."""
    place.mkdir(parents=True, exist_ok=True)
    return place / "run", recorded(Texts, place / "run")[1]


def write(number: int, draw: random.Random, place: Path, shared) -> list[str]:
    """Start several trainings, resumptions and readers of one folder at random moments of one training."""
    reference, seconds = shared
    folder = place / "run"
    force = number % 3 == 0

    def one(kind: str, delay: float) -> None:
        time.sleep(delay)
        if kind == "read":
            for _ in range(5):
                try:
                    load_run(folder)
                except UnrolledError as error:
                    assert "\n" not in str(error), error
                    assert "damaged" not in str(error), error
        elif kind == "force":
            engine.train(Texts.task, Texts.corpus, Texts.settings, folder, data=DATA, force=True)
        else:
            go_on(Texts, folder)

    kinds = ["go on", "go on", "go on", "read", "read", *(["force", "force"] if force else [])]
    children = [(kind, fork(lambda k=kind: one(k, draw.uniform(0, seconds)))) for kind in kinds]
    ends = [(kind, code_of(child)) for kind, child in children]
    wrong = [f"{kind} ended with {code}" for kind, code in ends if code not in (0, 3)]
    wrong += [f"{kind} was refused" for kind, code in ends if kind == "read" and code]
    if code_of(fork(lambda: go_on(Texts, folder))) != 0:
        wrong.append("the run cannot be gone on with")
    else:
        wrong += [f"{name} differs" for name, equal in same(folder, reference).items() if not equal]
    left = [path.name for path in place.iterdir() if path.name != "run"]
    return wrong + [f"left: {left}"] * bool(left)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(9, 6)
        self.rnn = nn.LSTM(6, 8, batch_first=True)
        self.drop = nn.Dropout(0.4)
        self.head = nn.Linear(8, 2)

    def forward(self, tokens):
        return self.head(self.drop(self.rnn(self.embedding(tokens))[0][:, -1]))


def threads(number: int, draw: random.Random, _place: Path, _shared) -> list[str]:
    """Ten threads explain one model, 30 calls each; every result is the one of a single thread."""
    torch.manual_seed(number)
    model = Model().train(number % 2 == 0)
    inputs = [torch.randint(0, 9, (1, draw.randrange(2, 7))) for _ in range(5)]
    expected = [explain(model, each, target=1).ledger for each in inputs]
    wrong: list[str] = []

    def work(seed: int) -> None:
        mine = random.Random(seed)
        for _ in range(30):
            which = mine.randrange(len(inputs))
            try:
                found = explain(model, inputs[which], target=1).ledger
            except Exception as error:  # whatever it is
                wrong.append(repr(error)[:200])
                return
            if abs(float(found.ngrams) - float(expected[which].ngrams)) > 1e-6:
                wrong.append(f"{float(found.ngrams)} instead of {float(expected[which].ngrams)}")

    workers = [threading.Thread(target=work, args=(draw.random(),)) for _ in range(10)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    if model.training != (number % 2 == 0):
        wrong.append("the mode was changed")
    return wrong


PARTS = (
    Part(
        "several writers and readers of one run",
        "one writes, the others are refused; readers see whole states",
        40,
        write,
        prepare,
    ),
    Part("ten threads on one model", "every result is that of one thread; the mode stays", 10, threads),
)
