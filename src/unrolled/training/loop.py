"""The training loop: batches, steps, a look at the dev set after each epoch, and the best weights kept."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from pydantic import Field
from torch import nn

from unrolled.catalogue import Config, make_optimiser
from unrolled.errors import NonFiniteError
from unrolled.text.batching import EncodedTexts
from unrolled.text.vocabulary import UNKNOWN

__all__ = ["Epoch", "Fit", "Score", "TrainingSettings", "Watcher", "evaluate", "fit", "seeded"]

_EVALUATION_BATCH = 256


class TrainingSettings(Config):
    """How a classifier is trained. The defaults were chosen on SST-2's dev set."""

    epochs: int = Field(10, ge=1)
    batch: int = Field(64, ge=1)
    lr: float = Field(0.001, gt=0.0)
    optimiser: Literal["adam", "adagrad", "sgd"] = "adam"
    clip: float = Field(1.0, gt=0.0)
    """The gradient's norm is cut to this."""
    patience: int = Field(3, ge=1)
    """Training stops after so many epochs that were not the best so far."""
    word_dropout: float = Field(0.1, ge=0.0, lt=1.0)
    """The share of words read as ``<unk>`` in training, which is what teaches the network that word."""
    seed: int = Field(0, ge=0)


@dataclass(frozen=True)
class Score:
    """How well a classifier does on a corpus."""

    accuracy: float
    """The share of texts classified rightly."""
    loss: float
    """Mean cross-entropy, in nats."""


@dataclass(frozen=True)
class Epoch:
    """What one pass over the training texts came to."""

    number: int
    """Counted from 1."""
    loss: float
    """Mean cross-entropy of the training texts, in nats, while they were being learned."""
    dev_accuracy: float
    dev_loss: float
    """Mean cross-entropy of the dev texts, in nats."""
    seconds: float

    @property
    def merit(self) -> tuple[float, float]:
        """What the best epoch has most of: dev accuracy, and among equals the smaller loss."""
        return self.dev_accuracy, -self.dev_loss


@dataclass(frozen=True)
class Fit:
    """How a training went."""

    history: tuple[Epoch, ...]
    best: Epoch
    """The epoch whose weights the model carries now."""


class Watcher(Protocol):
    """Whoever wants to see a training while it runs."""

    def step(self, epoch: int, done: int, total: int) -> None:
        """Learn that ``done`` of ``total`` texts of this epoch have been seen."""

    def epoch(self, epoch: Epoch, best: Epoch) -> None:
        """Learn how an epoch ended, and which is the best so far."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw from a fresh global generator, and leave the caller's as it was.

    Args:
        seed: where to begin.

    Yields:
        Nothing.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def fit(
    model: nn.Module,
    train: EncodedTexts,
    dev: EncodedTexts,
    settings: TrainingSettings,
    watcher: Watcher | None = None,
) -> Fit:
    """Train a classifier in place; it ends with the weights of its best epoch, in eval mode.

    The same model, texts and settings give the same weights on the same machine.

    Args:
        model: called with tokens (batch, time) and lengths (batch,), gives logits (batch, classes).
        train: the texts to learn.
        dev: the texts that choose the best epoch, by accuracy, then by loss.
        settings: how.
        watcher: told of every step and epoch.

    Returns:
        The history.

    Raises:
        NonFiniteError: when the loss becomes NaN or infinite.
    """
    optimiser = make_optimiser(settings.optimiser, model.parameters(), settings.lr)
    order = torch.Generator().manual_seed(settings.seed)
    history: list[Epoch] = []
    best: Epoch | None = None
    best_weights: dict[str, torch.Tensor] = {}
    with seeded(settings.seed):
        for number in range(1, settings.epochs + 1):
            began = time.perf_counter()
            loss = _pass(model, train, optimiser, settings, order, number, watcher)
            score = evaluate(model, dev)
            epoch = Epoch(number, loss, score.accuracy, score.loss, time.perf_counter() - began)
            history.append(epoch)
            if best is None or epoch.merit > best.merit:
                best = epoch
                best_weights = {name: value.clone() for name, value in model.state_dict().items()}
            if watcher is not None:
                watcher.epoch(epoch, best)
            if number - best.number >= settings.patience:
                break
    assert best is not None  # settings.epochs >= 1
    model.load_state_dict(best_weights)
    model.eval()
    return Fit(tuple(history), best)


def _pass(
    model: nn.Module,
    texts: EncodedTexts,
    optimiser: torch.optim.Optimizer,
    settings: TrainingSettings,
    order: torch.Generator,
    number: int,
    watcher: Watcher | None,
) -> float:
    """Learn every text once; the mean loss."""
    model.train()
    total, done = 0.0, 0
    for batch in texts.batches(settings.batch, order):
        tokens = batch.tokens
        if settings.word_dropout:
            tokens = tokens.masked_fill(torch.rand(tokens.shape) < settings.word_dropout, UNKNOWN)
        loss = nn.functional.cross_entropy(model(tokens, batch.lengths), batch.labels)
        value = loss.item()
        if not math.isfinite(value):
            raise NonFiniteError(
                f"the loss became {value} in epoch {number} after {done} texts; "
                f"expected a finite number: try a learning rate below {settings.lr:g}"
            )
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimiser.step()
        done += len(batch.labels)
        total += value * len(batch.labels)
        if watcher is not None:
            watcher.step(number, done, len(texts))
    return total / done


@torch.no_grad()
def evaluate(model: nn.Module, texts: EncodedTexts) -> Score:
    """Measure a classifier; leaves it in eval mode.

    Args:
        model: called with tokens (batch, time) and lengths (batch,), gives logits (batch, classes).
        texts: what to classify.

    Returns:
        Its accuracy and loss.
    """
    model.eval()
    right, loss = 0, 0.0
    for batch in texts.batches(_EVALUATION_BATCH):
        logits = model(batch.tokens, batch.lengths)
        right += int((logits.argmax(dim=-1) == batch.labels).sum())
        loss += nn.functional.cross_entropy(logits, batch.labels, reduction="sum").item()
    return Score(right / len(texts), loss / len(texts))
