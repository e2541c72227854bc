"""Tiny corpora and tasks for the training engine: one of texts, one whose batches carry a state."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from unrolled.lab.data.batches.base import Batch
from unrolled.lab.data.corpus import Classification, Corpus, Example
from unrolled.lab.models.settings import EncoderSettings
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.training.callbacks import Callback
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.task import Loss, Metric, Task

__all__ = ["DATA", "Carry", "Watching", "carry", "classify", "settings", "stream", "told", "weights"]

DATA = DataSettings(data=("told",))
SYMBOLS = 5


def told(count=120):
    """Texts told by one word wherever it stands: easy to learn, but not at once."""
    fillers = ("the", "a", "film", "plot", "was", "is")
    examples = [Example((*fillers[: i % 5], ("bad", "good")[i % 2], *fillers[: i % 3]), i % 2) for i in range(count)]
    splits = {"train": tuple(examples), "dev": tuple(examples[:20]), "test": tuple(examples[20:60])}
    return Classification(name="told", labels=("negative", "positive"), **splits)


def classify(corpus, **architecture):
    chosen = {"encoder": "gru", "hidden": 8, "embedding": 6, "dropout": 0.1, "word_dropout": 0.05} | architecture
    return Classify.from_corpus(corpus, Classify.Architecture(**chosen))


@dataclass(frozen=True, kw_only=True)
class Stream(Corpus[tuple[int, ...]]):
    """Symbols, each to be predicted from those before it."""


def stream():
    def symbols(length, start):
        row = [start]
        while len(row) < length:
            row.append((2 * row[-1] + len(row) // 3 + 1) % SYMBOLS)
        return tuple(row)

    return Stream(name="stream", train=symbols(400, 0), dev=symbols(100, 1), test=symbols(90, 2))


@dataclass(frozen=True)
class Window(Batch):
    inputs: torch.Tensor
    targets: torch.Tensor


class Symbols:
    """A stream as columns side by side, read in windows whose widths are drawn."""

    def __init__(self, row):
        self.row = torch.tensor(row)

    def __len__(self):
        return len(self.row)

    def plan(self, size, generator=None):
        length = (len(self.row) - 1) // size
        plan, start = [], 0
        while start < length:
            width = 4 if generator is None else int(torch.randint(3, 7, (), generator=generator))
            plan.append(torch.tensor([size, length, start, min(start + width, length)]))
            start += width
        return plan

    def select(self, which):
        size, length, start, stop = which.tolist()
        places = torch.arange(size)[:, None] * length + torch.arange(start, stop)
        return Window(self.row[places], self.row[places + 1])


class Predictor(nn.Module):
    def __init__(self, architecture):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, architecture.embedding)
        self.encoder = nn.LSTM(architecture.embedding, architecture.hidden, batch_first=True)
        self.dropout = nn.Dropout(architecture.dropout)
        self.head = nn.Linear(architecture.hidden, SYMBOLS)
        self.rare = nn.Parameter(torch.zeros(SYMBOLS))

    def forward(self, inputs, state):
        states, state = self.encoder(self.dropout(self.embedding(inputs)), state or None)
        logits = self.head(self.dropout(states))
        rare = (inputs[:, :2] == 3).all(dim=1)
        if rare.any():  # a parameter that a batch need not use
            logits = logits + rare[:, None, None] * self.rare
        return logits, state


class Carry(Task):
    name = "carry"
    description = "the next symbol of a stream"
    kind = Stream
    Architecture = EncoderSettings
    metrics = (
        Metric("perplexity", "e to the mean cross-entropy of a symbol", higher_is_better=False, unit=""),
        Metric("right", "the share of symbols that were foretold"),
    )

    @classmethod
    def from_corpus(cls, _corpus, architecture):
        return cls(architecture)

    def to_record(self):
        return {}

    @classmethod
    def from_record(cls, _fields, architecture):
        return cls(architecture)

    def build(self):
        model = Predictor(self.architecture)
        return model.double() if self.architecture.options.get("double") else model

    def encode(self, examples):
        return Symbols(examples)

    def loss(self, model, batch, state):
        logits, state = model(batch.inputs, state)
        total = F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), reduction="sum")
        return Loss(total, batch.targets.numel(), tuple(each.detach() for each in state))

    def compute_metrics(self, model, batches):
        total, right, seen, state = 0.0, 0, 0, ()
        for batch in batches:
            logits, state = model(batch.inputs, state)
            total += F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), reduction="sum").item()
            right += int((logits.argmax(dim=-1) == batch.targets).sum())
            seen += batch.targets.numel()
        return {"perplexity": float(torch.tensor(total / seen).exp()), "right": right / seen}


Carry.evaluation_batch = 2


def carry(**architecture):
    chosen = {"encoder": "lstm", "hidden": 6, "embedding": 4, "dropout": 0.2} | architecture
    return Carry(EncoderSettings(**chosen))


class Watching(Callback):
    def __init__(self):
        self.steps, self.epochs, self.notices, self.ends = [], [], [], 0

    def on_step(self, step):
        self.steps.append(step)

    def on_epoch(self, epoch, best, _seconds):
        self.epochs.append((epoch.number, best.number))

    def on_message(self, text):
        self.notices.append(text)

    def on_end(self):
        self.ends += 1


def settings(**changes):
    return TrainingSettings(**{"epochs": 4, "batch": 16, "lr": 0.03, "device": "cpu", "log_every": 4} | changes)


def weights(run):
    return nn.utils.parameters_to_vector(run.model.parameters())
