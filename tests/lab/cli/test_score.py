"""``unrolled score``: texts ranked by a language model."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
import torch

from unrolled.lab.data.batches.windows import RunningText
from unrolled.lab.data.corpus import Classification, Example
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.engine import train
from unrolled.lab.training.run_folder import load_run
from unrolled.lab.training.settings import TrainingSettings


def test_what_the_network_learned_is_likelier_and_stands_first(echoes, unrolled):
    found = unrolled("score", echoes, "red is blue", "red is red")
    assert found.status == 0
    _, first, second = (line.rstrip() for line in found.out.splitlines())
    assert first.endswith("red is red")
    assert second.endswith("red is blue")
    assert float(first.split()[0]) < 2 < 4 < float(second.split()[0])  # 1 bit: red or blue


def test_the_surprise_stands_at_the_token_that_surprises(echoes, unrolled):
    found = unrolled("score", echoes, "red is blue", "--tokens")
    bits = {line.split()[1]: float(line.split()[0]) for line in found.out.splitlines()[-3:]}
    assert bits["blue"] > 3 > bits["red"] > bits["is"]


def test_the_perplexity_of_a_short_file_is_that_of_the_text_read_word_by_word(echoes, unrolled, tmp_path):
    text = "blue is blue\nred is red\nred is red\nblue is blue\n" * 5
    file = tmp_path / "new.txt"
    file.write_text(text)
    loaded = load_run(echoes)
    words = loaded.task.vocabulary.encode(["<eos>", *text.replace("\n", " <eos> ").split()])
    with torch.no_grad():
        outputs, _ = loaded.model.encoder(loaded.model.embedding(torch.tensor([words[:-1]])))
        scores = loaded.model.head.scores(outputs, loaded.model.embedding.weight)[0].log_softmax(dim=-1)
        loss = -sum(scores[place, word].item() for place, word in enumerate(words[1:])) / (len(words) - 1)
        pieces = RunningText(torch.tensor(words[1:]), words[0], 8)
        in_columns = loaded.task.compute_metrics(loaded.model, map(pieces.select, pieces.plan(16)))
    said = unrolled("evaluate", echoes, "--data", file).out
    assert f"(80): perplexity {math.exp(loss):.4g}, loss {loss:.4g} nats, bits {loss / math.log(2):.4g}\n" in said
    total, mean = unrolled("score", echoes, text).out.splitlines()[1].split()[:2]
    assert float(mean) == pytest.approx(loss / math.log(2), abs=1e-3)
    assert float(total) == pytest.approx(80 * loss / math.log(2), abs=1e-2)
    assert in_columns["perplexity"] > 1.1 * math.exp(loss)  # words without the context before them


def test_a_quotation_of_several_words_is_scored_as_a_file_of_it_is_evaluated(unrolled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("talk.txt").write_text('she said "it is red" .\nhe said "blue" .\n' * 40)
    small = ["--hidden", "8", "--embedding", "8", "--epochs", "2", "--lr", "0.03"]
    assert unrolled("train", "lm", "--data", "talk.txt", "--out", "r", *small).status == 0
    text = 'he said "it is blue" .\n'
    Path("new.txt").write_text(text)
    bits = float(re.search(r", bits ([\d.]+)", unrolled("evaluate", "r", "--data", "new.txt").out)[1])
    said = unrolled("score", "r", text, "--tokens").out
    assert float(said.splitlines()[1].split()[1]) == pytest.approx(bits, abs=2e-3)
    assert [line.split()[1] for line in said.splitlines()[-9:]] == "he said `` it is blue '' . <eos>".split()


def test_a_long_text_is_evaluated_in_columns(echoes):
    task, words = load_run(echoes).task, torch.zeros(70_000, dtype=torch.int64)
    rows = {count: task.evaluation_rows(RunningText(words[:count], 0, 8)) for count in (1, 8191, 8192, 65_536, 70_000)}
    assert rows == {1: 1, 8191: 1, 8192: 2, 65_536: 16, 70_000: 16}


def test_words_it_never_saw_are_named(echoes, unrolled):
    found = unrolled("score", echoes, "green is red")
    assert found.status == 0
    assert "not in the vocabulary, read as <unk>: green" in found.err


def test_characters_it_never_saw_are_shown_by_symbols(tmp_path, monkeypatch, unrolled):
    monkeypatch.chdir(tmp_path)
    Path("talk.txt").write_text("he said no\n" * 40)
    small = ("--hidden", 4, "--embedding", 4, "--epochs", 1)
    assert unrolled("train", "chars", "--data", "talk.txt", "--out", "r", *small).status == 0
    assert "read as <unk>: ␉ x\n" in unrolled("score", "r", "he\tsaid x").err
    assert "<unk>" not in unrolled("score", "r", "he said").err  # the control


def test_a_text_of_markup_is_shown_as_it_is(echoes, unrolled):
    assert unrolled("score", echoes, "[bold]red[/bold] is red").out.rstrip().endswith("[bold]red[/bold] is red")


def test_refusals(echoes, unrolled, tmp_path):
    unrolled("score", echoes).assert_refused(2, "TEXT")
    unrolled("score", echoes, " ").assert_refused(2, "a text is empty; give at least one token")
    unrolled("score", tmp_path / "none", "a").assert_refused(74, "no run folder")
    examples = tuple(Example(("good" if label else "bad", "film"), label) for label in (0, 1) * 4)
    corpus = Classification(name="films", train=examples, dev=examples, test=examples, labels=("no", "yes"))
    settings = TrainingSettings(epochs=1, device="cpu")
    task = Classify.from_corpus(corpus, Classify.Architecture(hidden=4, embedding=4))
    train(task, corpus, settings, tmp_path / "run", data=DataSettings(data=("two.tsv",)))
    unrolled("score", tmp_path / "run", "a").assert_refused(2, "trained for classify")


def test_escape_bytes_of_a_text_do_not_reach_the_terminal(echoes, unrolled):
    found = unrolled("score", echoes, "red \x1b[31m is red", "--tokens")
    assert found.status == 0
    assert "\x1b" not in found.out + found.err
    assert "␛" in found.err


def test_one_empty_text_among_others_is_refused_before_anything_is_said(echoes, unrolled):
    unrolled("score", echoes, "green", "").assert_refused(2, "a text is empty")
