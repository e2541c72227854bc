"""TensorBoard is an option."""

from __future__ import annotations

import math
import sys
import types

import pytest

from toy_tasks import DATA, classify, told
from unrolled.errors import UsageError
from unrolled.lab.training.engine import train
from unrolled.lab.training.settings import TrainingSettings


def settings(**changes):
    return TrainingSettings(**{"epochs": 1, "steps": 1, "lr": 1e-30, "device": "cpu"} | changes)


def test_tensorboard_is_an_option_that_says_what_it_needs(tmp_path, monkeypatch):
    corpus = told()
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(UsageError, match="pip install tensorboard"):
        train(classify(corpus), corpus, settings(tensorboard=True), tmp_path / "run", data=DATA)
    assert not (tmp_path / "run").exists()
    written = []

    class SummaryWriter:
        def __init__(self, folder, purge_step):
            written.append((folder, purge_step))

        def add_scalar(self, name, value, step):
            assert math.isfinite(value)
            written.append((name, step))

        def close(self):
            written.append("closed")

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", types.SimpleNamespace(SummaryWriter=SummaryWriter))
    chosen = settings(tensorboard=True, steps=4, log_every=2)
    run = train(classify(corpus), corpus, chosen, tmp_path / "run", data=DATA)
    assert written[0] == (str(run.folder / "tensorboard"), None)
    assert ("train/loss", 2) in written
    assert ("train/loss", 3) not in written
    assert ("dev/accuracy", run.metrics["steps"]) in written
    assert written[-1] == "closed"
