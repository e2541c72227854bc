"""A run that several commands read."""

from __future__ import annotations

import random

import pytest

from unrolled.lab.data.corpus import Stream, Words
from unrolled.lab.tasks.lm import LanguageModelling, WordModelSettings
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.engine import train
from unrolled.lab.training.settings import TrainingSettings

LINES = [[colour, "is", colour, "<eos>"] for colour in random.Random(0).choices(("red", "blue"), k=400)]


@pytest.fixture(scope="session")
def echoes(tmp_path_factory):
    """The folder of a language model whose lines end with the word that they begin with."""
    folder = tmp_path_factory.mktemp("runs") / "echoes"
    text = Stream(lambda: iter(LINES))
    corpus = Words(name="echoes", train=text, dev=text, test=text)
    architecture = WordModelSettings(hidden=16, embedding=8, dropout=0.0, bptt=8, tied=False)
    settings = TrainingSettings(epochs=8, batch=4, lr=0.03, device="cpu", patience=8)
    task = LanguageModelling.from_corpus(corpus, architecture)
    train(task, corpus, settings, folder, data=DataSettings(data=("echoes.txt",)))
    return folder
