from __future__ import annotations

import pytest

from unrolled.catalogue import Architecture
from unrolled.text.corpus import Classification, Example
from unrolled.training.classify import train_classifier
from unrolled.training.loop import TrainingSettings


@pytest.fixture(scope="session")
def dataset():
    """Told by one word wherever it stands: easy to learn, but not at once."""
    fillers = ("the", "a", "film", "plot", "was", "is")
    examples = [Example((*fillers[: i % 5], ("bad", "good")[i % 2], *fillers[: i % 3]), i % 2) for i in range(120)]
    splits = {"train": tuple(examples), "dev": tuple(examples[:20]), "test": tuple(examples[20:60])}
    return Classification(name="told", labels=("negative", "positive"), **splits)


@pytest.fixture(scope="session")
def architecture():
    return Architecture(encoder="gru", hidden=8, embedding=6, dropout=0.1)


@pytest.fixture(scope="session")
def settings():
    return TrainingSettings(epochs=4, batch=16, lr=0.03, word_dropout=0.05)


@pytest.fixture(scope="session")
def run(dataset, architecture, settings):
    return train_classifier(dataset, architecture, settings)
