"""Small data: patience looks at the loss on dev as well, and a bag of n-grams says what a network should reach."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from unrolled.lab.data.corpus import Example
from unrolled.lab.models.bag_of_ngrams import MOST_TEXTS, ngram_accuracy
from unrolled.lab.training import progress
from unrolled.lab.training.callbacks import Epoch, Step
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.training_state import TrainingState


def state(*dev):
    """A training whose epochs have these accuracies and losses on dev."""
    history, best = [], -1.0
    for number, (accuracy, loss) in enumerate(dev, 1):
        history.append(Epoch(number, number, 1.0, 1.0, 0.1, {"accuracy": accuracy, "loss": loss}, accuracy > best))
        best = max(best, accuracy)
    return TrainingState(epoch=len(dev) + 1, history=history)


SETTINGS = TrainingSettings(epochs=100, patience=3)
STANDING = [(0.5, 1.0 - 0.01 * k) for k in range(10)]


def test_a_loss_that_falls_on_a_small_dev_split_goes_on_where_the_accuracy_stands():
    assert not state(*STANDING).over(SETTINGS, 80)
    assert state(*STANDING).over(SETTINGS, 5000)  # the control: a large one is the metric's alone
    assert state(*STANDING, *[(0.5, 2.0)] * 3).over(SETTINGS, 80)
    assert not state(*STANDING, *[(0.5, 2.0)] * 2).over(SETTINGS, 80)
    assert not state(*STANDING, (0.9, 3.0), (0.5, 3.0)).over(SETTINGS, 80)
    assert state(*[(0.5, float("nan"))] * 4).over(SETTINGS, 80)


def negations(count, seed=0):
    pairs = [(adjective, negated) for adjective in range(40) for negated in range(2)]
    return [
        Example(("it", "is", *(["not"] * negated), f"word{adjective}"), int((adjective < 20) != bool(negated)))
        for adjective, negated in (pairs[(7 * k + seed) % 80] for k in range(count))
    ]


def test_a_bag_of_ngrams_learns_not_and_an_adjective():
    assert ngram_accuracy(negations(640), negations(80, seed=3)) == 1.0
    shuffled = [Example(each.tokens, k // 3 % 2) for k, each in enumerate(negations(640))]
    assert ngram_accuracy(shuffled, negations(80)) < 0.8  # the control
    assert ngram_accuracy(negations(MOST_TEXTS + 1), negations(80)) is None


@pytest.mark.parametrize(("terminal", "lines"), [(False, 3), (True, 0)])
def test_without_a_terminal_there_is_a_line_a_minute(monkeypatch, terminal, lines):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    file = io.StringIO()
    shown = progress.TrainingProgress(Console(file=file, force_terminal=terminal, width=100))
    for number in range(1, 13):
        now[0] += 16.0
        shown.on_step(Step(number, 1, number, 12, 64, 0.5, 1.0, 0.001))
    said = [line for line in file.getvalue().splitlines() if "batch" in line]
    assert len(said) == lines
    if lines:
        assert said[0] == "epoch 1/10  loss 0.5000  batch 4/12"
