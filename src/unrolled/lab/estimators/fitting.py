"""The training of an estimator: Adam over batches of similar lengths."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight
from torch import Tensor, nn

from unrolled.errors import DivergedError, UsageError
from unrolled.lab.data.batches.base import length_buckets
from unrolled.lab.estimators.inputs import padded
from unrolled.lab.estimators.verbose_lines import verbose_lines
from unrolled.lab.models.quick_optimisers import without_compiler

__all__ = ["FittedAnswers", "Fitting", "checked_weights", "on_cpu", "outputs_of", "train", "weighted"]

_EVALUATION_BATCH = 256


@contextmanager
def on_cpu() -> Iterator[None]:
    """Make every tensor on the CPU, with gradients, whatever default device and modes the caller has set."""
    with torch.inference_mode(mode=False), torch.enable_grad(), torch.device("cpu"):
        yield


@dataclass(frozen=True)
class Fitting:
    """How an estimator is trained."""

    epochs: int
    lr: float
    batch: int
    weight_decay: float
    clip: float
    verbose: object
    """Whether a line is written for each epoch."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < 1:
                raise UsageError(f"{name} is {value!r}; expected a whole number of at least 1")
        for name in ("lr", "weight_decay", "clip"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 <= float(value) < float("inf") or (name == "lr" and not value):
                expected = "a positive number" if name == "lr" else "0 or a positive number"
                raise UsageError(f"{name} is {value!r}; expected {expected}")
        if not isinstance(self.verbose, Integral | np.bool_) or int(self.verbose) < 0:
            raise UsageError(f"verbose is {self.verbose!r}; expected False or True, or 0 or a positive whole number")


@dataclass(frozen=True)
class FittedAnswers:
    """What an estimator learns of its examples."""

    targets: Tensor
    outputs: int
    """Number of outputs of the model."""
    losses: Callable[[Tensor, Tensor], Tensor]
    """From outputs and targets to the loss of each example."""
    weights: Tensor
    """How many times the loss of each example counts; their mean is 1."""


def train(
    model: nn.Module, sequences: Sequence[NDArray[Any]], answers: FittedAnswers, fitting: Fitting, seed: int
) -> list[float]:
    """Train a model, and return the mean loss of every epoch; torch's global generator draws the dropout."""
    generator = torch.Generator().manual_seed(seed)
    dtype = torch.int64 if sequences[0].ndim == 1 else torch.get_default_dtype()
    lengths = torch.tensor([len(one) for one in sequences])
    optimiser = without_compiler(torch.optim.Adam)(model.parameters(), lr=fitting.lr, weight_decay=fitting.weight_decay)
    model.train()
    lines, course = verbose_lines(fitting.verbose), []
    for epoch in range(fitting.epochs):
        total, begun, place = 0.0, time.monotonic(), f"epoch {epoch + 1:{len(str(fitting.epochs))}}/{fitting.epochs}"
        batches = length_buckets(lengths, fitting.batch, generator)
        for number, which in enumerate(batches, 1):
            batch = padded([sequences[k] for k in which.tolist()], dtype)
            losses = answers.losses(model(batch.values, batch.lengths), answers.targets[which])
            value = (losses * answers.weights[which]).mean()
            if not bool(torch.isfinite(value)):
                raise DivergedError(f"the loss of epoch {epoch + 1} is {float(value.detach())}; choose a smaller lr")
            optimiser.zero_grad()
            value.backward()
            if fitting.clip:
                nn.utils.clip_grad_norm_(model.parameters(), fitting.clip)
            optimiser.step()
            total += float(value.detach()) * len(which)
            lines.say_if_due(f"{place}  loss {float(value.detach()):.4f}  batch {number:,}/{len(batches):,}")
        course.append(total / len(sequences))
        lines.say(f"{place}  train loss {course[-1]:.4f}  {time.monotonic() - begun:.1f} s")
    return course


def checked_weights(given: Any, examples: Sequence[Any]) -> NDArray[np.float64]:
    """Check ``sample_weight``, and return the weight of each example: 0 or more, and not 0 for all."""
    found: NDArray[np.float64] = _check_sample_weight(given, examples, dtype=np.float64)
    if found.min() < 0 or not found.any():
        raise ValueError(
            f"Negative values in sample_weight: the least is {found.min():g}; expected 0 or more"
            if found.any()
            else "sample_weight is 0 for every example; expected a positive weight for at least one"
        )
    return found


def weighted(
    given: Any, sequences: Sequence[NDArray[Any]], answers: NDArray[Any]
) -> tuple[list[NDArray[Any]], NDArray[Any], Tensor]:
    """Check ``sample_weight``, and return the examples whose weight is above 0, their answers and weights of mean 1.

    An example that does not count must not set the scale of the others.
    """
    found = checked_weights(given, sequences)
    counted = found > 0
    found = found[counted]
    with np.errstate(over="ignore"):
        mean = found.mean()
    if not np.isfinite(mean):  # every weight would be 0
        raise ValueError(
            f"sample_weight has numbers up to {found.max():g}, whose sum exceeds floating-point numbers: divide them"
        )
    kept = [one for one, counts in zip(sequences, counted.tolist(), strict=True) if counts]
    return kept, answers[counted], torch.as_tensor(found / mean, dtype=torch.get_default_dtype())


@on_cpu()
@torch.no_grad()
def outputs_of(model: nn.Module, sequences: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """Run a model in evaluation mode; shape (sequences, outputs)."""
    model.eval()
    dtype = torch.int64 if sequences[0].ndim == 1 else torch.float64
    lengths = torch.tensor([len(one) for one in sequences])
    found: NDArray[np.float64] | None = None
    for which in length_buckets(lengths, _EVALUATION_BATCH):
        batch = padded([sequences[k] for k in which.tolist()], dtype)
        values = model(batch.values, batch.lengths).numpy()
        if found is None:
            found = np.empty((len(sequences), values.shape[1]))
        found[which.numpy()] = values
    assert found is not None
    return found
