"""``unrolled generate``: from a run folder to text."""

from __future__ import annotations

import torch

from unrolled.lab.data.corpus import Classification, Example
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.engine import train
from unrolled.lab.training.settings import TrainingSettings


def test_it_writes_what_it_learned(echoes, unrolled):
    written = unrolled("generate", echoes, "--length", "40", "--temperature", "0.5")
    assert written.status == 0
    lines = written.out.splitlines()
    assert len(lines) == 10
    assert set(lines) == {"red is red", "blue is blue"}


def test_the_prompt_is_written_first_and_gone_on_from(echoes, unrolled):
    written = unrolled("generate", echoes, "--prompt", "blue is", "--length", "2", "--temperature", "0")
    assert written.out.splitlines()[0] == "blue is blue"
    unknown = unrolled("generate", echoes, "--prompt", "green is", "--length", "1")
    assert unknown.status == 0
    assert "green" in unknown.err


def test_the_same_seed_writes_the_same_text(echoes, unrolled):
    texts = [unrolled("generate", echoes, "--temperature", "2", "--seed", seed).out for seed in ("1", "1", "2")]
    assert texts[0] == texts[1] != texts[2]


def test_numbers_and_runs_that_cannot_be(echoes, unrolled, tmp_path):
    unrolled("generate", echoes, "--top", "0").assert_refused(2, "--top")
    unrolled("generate", echoes, "--temperature", "-1").assert_refused(2, "--temperature")
    unrolled("generate", echoes, "--seed", 10**22).assert_refused(2, "--seed")
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


def test_the_callers_generator_is_left_alone(echoes, unrolled):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    unrolled("generate", echoes, "--length", "3")
    assert torch.equal(torch.get_rng_state(), before)
