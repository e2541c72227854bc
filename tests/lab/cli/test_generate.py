"""``unrolled generate``: from a run folder to text."""

from __future__ import annotations

import random

import pytest
import torch

from unrolled.lab.data.corpus import Classification, Example, Stream, Words
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.tasks.lm import LanguageModelling, WordModelSettings
from unrolled.lab.training.engine import train
from unrolled.lab.training.settings import DataSettings, TrainingSettings

LINES = [[colour, "is", colour, "<eos>"] for colour in random.Random(0).choices(("red", "blue"), k=400)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "echoes"
    text = Stream(lambda: iter(LINES))
    corpus = Words(name="echoes", train=text, dev=text, test=text)
    architecture = WordModelSettings(hidden=16, embedding=8, dropout=0.0, bptt=8, tied=False)
    settings = TrainingSettings(epochs=8, batch=4, lr=0.03, device="cpu", patience=8)
    train(
        LanguageModelling.from_corpus(corpus, architecture),
        corpus,
        settings,
        folder,
        data=DataSettings(data=("echoes.txt",)),
    )
    return folder


def test_it_writes_what_it_learned(run, unrolled):
    written = unrolled("generate", run, "--length", "40", "--temperature", "0.5")
    assert written.status == 0
    lines = written.out.splitlines()
    assert len(lines) == 10
    assert set(lines) == {"red is red", "blue is blue"}


def test_the_prompt_is_written_first_and_gone_on_from(run, unrolled):
    written = unrolled("generate", run, "--prompt", "blue is", "--length", "2", "--temperature", "0")
    assert written.out.splitlines()[0] == "blue is blue"
    unknown = unrolled("generate", run, "--prompt", "green is", "--length", "1")
    assert unknown.status == 0
    assert "green" in unknown.err


def test_the_same_seed_writes_the_same_text(run, unrolled):
    texts = [unrolled("generate", run, "--temperature", "2", "--seed", seed).out for seed in ("1", "1", "2")]
    assert texts[0] == texts[1] != texts[2]


def test_numbers_and_runs_that_cannot_be(run, unrolled, tmp_path):
    unrolled("generate", run, "--top", "0").assert_refused(2, "--top")
    unrolled("generate", run, "--temperature", "-1").assert_refused(2, "--temperature")
    unrolled("generate", run, "--seed", 10**22).assert_refused(2, "--seed")
    unrolled("generate", tmp_path / "none").assert_refused(74, "no run folder")


def test_a_run_that_writes_no_text_is_refused(unrolled, tmp_path):
    examples = tuple(Example(("good" if label else "bad", "film"), label) for label in (0, 1) * 4)
    corpus = Classification(name="films", train=examples, dev=examples, test=examples, labels=("no", "yes"))
    task = Classify.from_corpus(corpus, Classify.Architecture(hidden=4, embedding=4))
    train(
        task, corpus, TrainingSettings(epochs=1, device="cpu"), tmp_path / "run", data=DataSettings(data=("films.tsv",))
    )
    refused = unrolled("generate", tmp_path / "run")
    refused.assert_refused(2, "was trained for classify; give a run of lm or chars")


def test_the_callers_generator_is_left_alone(run, unrolled):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    unrolled("generate", run, "--length", "3")
    assert torch.equal(torch.get_rng_state(), before)
