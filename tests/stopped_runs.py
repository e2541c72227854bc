"""Trainings that are stopped at a step, and what two trainings have in common that ended alike."""

from __future__ import annotations

import os
import signal

import pytest

from toy_tasks import DATA, carry
from unrolled.errors import StoppedError
from unrolled.lab.training.callbacks import Callback
from unrolled.lab.training.engine import train
from unrolled.lab.training.settings import TrainingSettings

SETTINGS = TrainingSettings(epochs=3, batch=4, lr=0.02, device="cpu", log_every=3, checkpoint_every=5)


class Recording(Callback):
    """Does something after a step."""

    def __init__(self, at=None, action=lambda: None):
        self.at, self.action, self.steps, self.notices = at, action, [], []

    def on_step(self, step):
        self.steps.append(step.number)
        if step.number == self.at:
            self.action()

    def on_message(self, text):
        self.notices.append(text)


def outcome(folder):
    return {name: (folder / name).read_bytes() for name in ("weights.safetensors", "log.jsonl", "log.csv")}


def send(number):
    return lambda: os.kill(os.getpid(), number)


def stopped(corpus, folder, at=13):
    with pytest.raises(StoppedError):
        train(carry(), corpus, SETTINGS, folder, data=DATA, callback=Recording(at, send(signal.SIGTERM)))
    return sorted((folder / "checkpoints").glob("step-*"))
