"""A run of every task is opened by a typed text, and the account of what it says closes."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unrolled.lab.cli.next_command import next_command
from unrolled.lab.data.corpus import Corpus
from unrolled.lab.papers.framework.corpora import SMALL
from unrolled.lab.papers.framework.synthetic_corpora import SYNTHETIC
from unrolled.lab.tasks import TASKS
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.engine import train
from unrolled.lab.training.run_folder import load_run
from unrolled.lab.training.settings import TrainingSettings
from unrolled.lab.training.task import Task

Command = Callable[..., Any]
TYPED = {
    "classify": ("this film was not good",),
    "regress": ("the plot was very good",),
    "relate": ("the <e1> storm </e1> caused the <e2> flood </e2>",),
    "tag": ("anna wells met boris", "--at", 1),
    "lm": ("the old",),
    "chars": ("the ol", "--at", 3),
    "rank": ("where does anna live ? ||| anna lives in lincoln .",),
    "translate": ("the old dog ||| der",),
}
"""What is typed to a run of a task; to one that is not listed, the words of a test example."""
CLOSED = [name for name, task in TASKS.members.items() if task.prepare is Task.prepare]
OPEN = [name for name in TASKS.names() if name not in CLOSED]


def typed(name: str) -> tuple[Any, ...]:
    first = next(iter(made_up(name).test))
    return TYPED.get(name) or (" ".join(getattr(first, "tokens", first)),)


def made_up(name: str) -> Corpus[Any]:
    kind = TASKS.get(name).kind
    assert kind in SYNTHETIC, f"the task {name} learns {kind.__name__}: write a function in SYNTHETIC that makes one up"
    return SYNTHETIC[kind](SMALL, 0)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A small run of each task, trained for one epoch on made-up data."""
    folder = tmp_path_factory.mktemp("runs")

    def of(name: str) -> Path:
        if not (folder / name).exists():
            task = TASKS.get(name)
            corpus = made_up(name)
            settings = TrainingSettings(**{**task.training_defaults, "epochs": 1, "batch": 8, "device": "cpu"})
            learned = task.from_corpus(corpus, task.Architecture(hidden=8, embedding=8))
            train(learned, corpus, settings, folder / name, data=DataSettings(data=(corpus.name,)))
        return folder / name

    return of


def test_every_task_of_texts_is_opened_and_that_of_brackets_is_not() -> None:
    assert set(TYPED) <= set(OPEN)
    assert "brackets" in CLOSED


@pytest.mark.parametrize("name", OPEN)
def test_the_account_of_what_a_run_says_closes(
    unrolled: Command, runs: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    text, *options = typed(name)
    done = unrolled("explain", runs(name), text, *options, "--json", tmp_path / "x.json")
    assert done.status == 0, done.err
    assert done.out.startswith(("logits: ", "output: "))
    (found,) = json.loads((tmp_path / "x.json").read_text())["accounts"]
    ledger = found["ledger"]
    parts = sum(ledger[part] for part in ("ngrams", "initial", "bias", "remainder"))
    assert parts == pytest.approx(ledger["logit"], abs=1e-9)
    assert abs(ledger["remainder"]) < 1e-4 * max(1.0, abs(ledger["logit"]))
    assert any(abs(ngram["contribution"]) > 0 for ngram in found["ngrams"])


@pytest.mark.parametrize("name", CLOSED)
def test_a_run_that_is_not_opened_says_so(unrolled: Command, runs: Callable[[str], Path], name: str) -> None:
    unrolled("explain", runs(name), "( )").assert_refused(2, f"a run of the task {name} cannot explain a text")


def test_a_position_must_be_in_the_text_and_a_whole_text_has_none(
    unrolled: Command, runs: Callable[[str], Path]
) -> None:
    unrolled("explain", runs("tag"), "anna met boris", "--at", 3).assert_refused(2, "3")
    unrolled("explain", runs("classify"), "a film", "--at", 0).assert_refused(2, "has one output for a whole text")


def test_the_help_names_what_rank_and_translate_are_asked_with(unrolled: Command) -> None:
    text = " ".join(unrolled("explain", "--help").out.replace("│", " ").split())
    for words in ('"question ||| sentence"', '"sentence ||| beginning"', "'where is lincoln ? |||", "||| a man'"):
        assert words in text, words
    assert "of a translation without a beginning, the first" in text


def test_the_position_left_out_is_the_one_that_the_help_names(unrolled: Command, runs: Callable[[str], Path]) -> None:
    def said(*words: object) -> str:
        done = unrolled("explain", runs("translate"), *words)
        assert done.status == 0, done.err
        return done.out

    assert said("the old dog") == said("the old dog", "--at", 0)
    assert said("the old dog ||| der alte") == said("the old dog ||| der alte", "--at", 2)
    assert said("the old dog ||| der alte") != said("the old dog ||| der alte", "--at", 0)


@pytest.mark.parametrize("name", TASKS.names())
def test_the_command_to_try_next_works_and_is_about_the_runs_own_data(
    unrolled: Command, runs: Callable[[str], Path], name: str
) -> None:
    run, corpus = load_run(runs(name)), made_up(name)
    program, command, *words = shlex.split(next_command(run, corpus))
    assert program == "unrolled"
    if command != "evaluate":  # whose data are a published dataset's
        assert unrolled(command, *words).status == 0
    if command in ("explain", "translate"):
        said = repr(corpus.test)
        assert all(repr(word) in said or word in said for word in words[-1].split() if word != "|||")


def test_a_text_that_the_task_cannot_read_is_named_by_its_line(
    unrolled: Command, runs: Callable[[str], Path], tmp_path: Path
) -> None:
    file = tmp_path / "new.txt"
    file.write_text(f"{TYPED['relate'][0]}\n\nthe storm caused the flood\n")
    unrolled("predict", runs("relate"), file, "--out", tmp_path / "p.csv").assert_refused(
        65, f"{file}:3: expected <e1>…</e1> and <e2>…</e2>"
    )
    assert not (tmp_path / "p.csv").exists()


def test_a_run_without_predictions_prints_no_header(
    unrolled: Command, runs: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "new.txt").write_text("anna met boris\n")
    done = unrolled("predict", runs("tag"), tmp_path / "new.txt")
    done.assert_refused(2, "a run of the task tag has no one output for a whole text")
    assert done.out == ""
