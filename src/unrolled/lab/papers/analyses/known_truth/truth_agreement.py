"""Small networks that learn the tasks of known truth, and the share of cases in which a method finds the reason."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.errors import ConvergenceError, UsageError
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.factory import make_embedding
from unrolled.lab.models.pooling import LastState
from unrolled.lab.papers.analyses.attribution_methods.explained_texts import Explained
from unrolled.lab.papers.analyses.attribution_methods.token_attributions import attribute
from unrolled.lab.papers.analyses.known_truth.truth_tasks import BLANK, VOCABULARY, Case, TruthTask
from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.framework.training_loop import train_steps

__all__ = ["LEARNED", "accuracy", "explained_cases", "find_reasons", "learn_task", "reason_shares", "task_differences"]

LEARNED = 0.99
"""A network with fewer right answers has not learned its task."""
_KINDS = {"lstm": nn.LSTM, "gru": nn.GRU}
_STEPS_AT_ONCE, _POOL, _CHECKED = 200, 8000, 1000
"""Steps between two looks at the accuracy, texts of the training, and texts that measure the accuracy."""
_VECTOR, _RATE, _BATCH, _CLIP = 16, 0.005, 64, 1.0
"""Size of word vectors, learning rate of Adam, batch size, and the norm to which gradients are clipped: our choices."""
_ENOUGH = 0.999
"""The accuracy that ends a training."""


def _tensors(task: TruthTask, cases: Sequence[Case]) -> tuple[Tensor, Tensor]:
    words = torch.tensor([case.words for case in cases])
    return words, torch.tensor([task.answer(case.words) for case in cases])


def learn_task(task: TruthTask, cell: str, hidden: int, steps: int, seed: int) -> Classifier:
    """Train a small LSTM or GRU on random texts, until 99.9% of new ones are answered right or the steps are over."""
    torch.manual_seed(seed)
    rng = random.Random(seed)  # noqa: S311  # no secret
    model = Classifier(
        make_embedding(VOCABULARY, _VECTOR),
        _KINDS[cell](_VECTOR, hidden, batch_first=True),
        LastState(),
        nn.Linear(hidden, task.classes),
    )
    words, answers = _tensors(task, [task.draw(rng) for _ in range(_POOL)])
    optimiser = torch.optim.Adam(model.parameters(), lr=_RATE)

    def batches() -> Iterator[Tensor]:
        for _ in range(_STEPS_AT_ONCE):
            yield torch.randint(len(words), (_BATCH,))

    def loss(model: nn.Module, which: Tensor) -> Tensor:
        return F.cross_entropy(model(words[which]), answers[which])

    for _ in range(0, steps, _STEPS_AT_ONCE):
        train_steps(model.train(), batches(), loss, optimiser, clip=_CLIP)
        if accuracy(model, task, seed) >= _ENOUGH:
            break
    return model.eval()


@torch.no_grad()
def accuracy(model: Classifier, task: TruthTask, seed: int, reasons_only: bool = False) -> float:
    """Compute the share of right answers on texts outside the training; with ``reasons_only``, on those with a reason.

    A seed always gives the same texts, so :func:`learn_task` stops by the texts that its accuracy is measured on later.
    The explained texts are others.
    """
    rng = random.Random(10_000 + seed)  # noqa: S311  # no secret
    cases = [task.draw(rng) for _ in range(_CHECKED)]
    words, answers = _tensors(task, [case for case in cases if case.reason is not None or not reasons_only])
    return float((model.eval()(words).argmax(dim=1) == answers).double().mean())


@torch.no_grad()
def explained_cases(model: Classifier, task: TruthTask, count: int, seed: int) -> tuple[Explained, Tensor]:
    """Draw texts with a reason that the model answers right: what is explained, and where the reasons are.

    The reasons have shape (cases, time), bool.
    """
    rng = random.Random(20_000 + seed)  # noqa: S311  # no secret
    drawn = (task.draw(rng) for _ in range(20 * count))  # at least two in five have a reason
    cases = [case for case in drawn if case.reason is not None][:count]
    words, answers = _tensors(task, cases)
    reasons = torch.zeros(words.shape, dtype=torch.bool)
    for row, case in zip(reasons, cases, strict=True):
        row[list(case.reason or ())] = True
    right = model(words).argmax(dim=1) == answers
    lengths = torch.full((int(right.sum()),), words.shape[1])
    return Explained(model, words[right], lengths, answers[right], BLANK), reasons[right]


def reason_shares(values: Tensor, reasons: Tensor) -> dict[str, float]:
    """Compare attributions with reasons, both of shape (cases, time).

    Returns:
        ``first``: the share of cases whose highest attribution is in the reason. ``set``: the share whose k highest are
        the reason, k being its size. ``first by size`` and ``set by size``: the same for absolute values.
    """
    found = {}
    shuffled = torch.rand(values.shape, generator=torch.Generator().manual_seed(0)).argsort(dim=1)
    values, reasons = values.gather(1, shuffled), reasons.gather(1, shuffled)  # equal ones stand in any order
    for ending, ranked in (("", values), (" by size", values.abs())):
        hits = reasons.gather(1, ranked.argsort(dim=1, descending=True, stable=True))
        inside = torch.arange(values.shape[1]) < reasons.sum(dim=1, keepdim=True)
        found["first" + ending] = float(hits[:, 0].double().mean())
        found["set" + ending] = float((hits | ~inside).all(dim=1).double().mean())
    return {name: round(value, 4) for name, value in found.items()}


def find_reasons(method: str, explained: Explained, reasons: Tensor) -> dict[str, Any] | str:
    """Measure a method; where it does not exist for the network or does not converge, say so."""
    try:
        attribution = attribute(method, explained)
    except (UsageError, ConvergenceError) as error:
        return str(error)
    return reason_shares(attribution.values, reasons)


def task_differences(tasks: Iterable[Sequence[Result]], one: str, other: str, measure: str) -> list[Tensor]:
    """Subtract a measure of two methods, network by network.

    A tensor, shape (networks,), for each task of which at least two networks have both methods: the spread over the
    trainings of a task is not known from one.
    """
    found = [
        [
            each["methods"][one][measure] - each["methods"][other][measure]
            for each in task
            if {one, other} <= {*each["methods"]}
        ]
        for task in tasks
    ]
    return [torch.tensor(each, dtype=torch.float64) for each in found if len(each) > 1]
