from __future__ import annotations

import pytest

from stopped_runs import SETTINGS
from toy_tasks import DATA, carry, classify, stream, told
from unrolled.lab.training.engine import train
from unrolled.lab.training.settings import TrainingSettings


@pytest.fixture(scope="session")
def corpus():
    return told()


@pytest.fixture(scope="session")
def task(corpus):
    return classify(corpus)


@pytest.fixture(scope="session")
def settings():
    return TrainingSettings(epochs=4, batch=16, lr=0.03, device="cpu", log_every=4)


@pytest.fixture(scope="session")
def trained(task, corpus, settings, tmp_path_factory):
    """A run that nobody changes."""
    return train(task, corpus, settings, tmp_path_factory.mktemp("deep") / "er" / "run", data=DATA)


@pytest.fixture(scope="session")
def text():
    return stream()


@pytest.fixture(scope="session")
def whole(text, tmp_path_factory):
    """A training of ``carry`` that was never stopped."""
    return train(carry(), text, SETTINGS, tmp_path_factory.mktemp("whole") / "run", data=DATA)
