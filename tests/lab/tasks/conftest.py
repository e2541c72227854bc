"""What the tests of all tasks do with one: train it by a plain loop, and judge it."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture
def learn():
    """Train a model for some steps on one batch, and give it back in eval mode."""

    def learn(task, examples, steps=30, lr=0.05):
        torch.manual_seed(0)
        model, split = task.build(), task.encode(examples)
        optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
        for _ in range(steps):
            loss = task.loss(model, split.select(torch.arange(len(split))), ())
            optimiser.zero_grad()
            (loss.total / loss.count).backward()
            optimiser.step()
        return model.eval()

    return learn


@pytest.fixture
def judge():
    """Measure a model on some examples, so many at a time."""

    def judge(task, model, examples, size=256):
        split = task.encode(examples)
        with torch.no_grad():
            return task.compute_metrics(model, (split.select(which) for which in split.plan(size)))

    return judge


@pytest.fixture
def cost():
    """The loss of a model in eval mode, for one batch after the other."""

    def cost(task, model, examples, size):
        split = task.encode(examples)
        with torch.no_grad():
            losses = [task.loss(model.eval(), split.select(which), ()) for which in split.plan(size)]
        return sum(float(loss.total) for loss in losses), sum(loss.count for loss in losses)

    return cost
