"""``unrolled translate``: sentences as arguments or lines, unknown words, what is refused."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unrolled.lab.data.corpus import Classification, Example, SentencePair, Translation
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.tasks.translate import Translate, TranslateSettings
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.engine import train
from unrolled.lab.training.settings import TrainingSettings

Command = Callable[..., Any]
WORDS = ("eins", "zwei", "drei")
SAID = {"eins": "one", "zwei": "Two", "drei": "three"}


def pairs(count: int, seed: int) -> tuple[SentencePair, ...]:
    draw = random.Random(seed)
    sentences = [tuple(draw.choices(WORDS, k=draw.randint(1, 4))) for _ in range(count)]
    return tuple(SentencePair(each, tuple(SAID[word] for word in each)) for each in sentences)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator that knows three words."""
    corpus = Translation(name="told", train=pairs(300, 0), dev=pairs(20, 1), test=pairs(20, 2))
    task = Translate.from_corpus(
        corpus, TranslateSettings(hidden=24, embedding=12, dropout=0.0, min_count=1, attention=True)
    )
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(
        task, corpus, TrainingSettings(epochs=10, batch=16, lr=0.02), folder, data=DataSettings(data=("a.de", "a.en"))
    )
    return folder


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """What stands on standard input."""
    return lambda text: monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_sentence_is_translated_and_needs_no_quotes(unrolled: Command, run: Path) -> None:
    done = unrolled("translate", run, "eins", "zwei", "drei")
    assert (done.status, done.out, done.err) == (0, "one Two three\n", "")
    assert unrolled("translate", run, "eins zwei drei").out == done.out
    assert unrolled("translate", run, "Eins ZWEI drei", "--beam", 1).out == done.out


def test_sentences_in_quotes_are_translated_one_by_one(unrolled: Command, run: Path) -> None:
    assert unrolled("translate", run, "eins zwei", "drei", "zwei drei").out == "one Two\nthree\nTwo three\n"
    assert unrolled("translate", run, "eins", "zwei drei").out == "one Two three\n"


def test_two_files_are_evaluated_as_they_are_trained_on(unrolled: Command, run: Path, tmp_path: Path) -> None:
    (tmp_path / "a.de").write_text("eins zwei drei eins\ndrei zwei\n")
    (tmp_path / "a.en").write_text("one Two three one\nthree Two\n")
    files = [str(tmp_path / name) for name in ("a.de", "a.en")]
    found = unrolled("evaluate", run, "--data", *files)
    assert found.status == 0
    assert f"{files[0]}, {files[1]} (2): bleu 100" in " ".join(found.out.split())
    assert found.out == unrolled("evaluate", run, "--data", files[0], "--data", files[1]).out
    unrolled("evaluate", run, "--data", files[0]).assert_refused(2, "1 file of parallel text")
    before = unrolled("evaluate", "--data", files[0], run)  # the run stands last, as an argument
    before.assert_refused(2, "1 file of parallel text")


def test_languages_that_are_swapped_are_noted(unrolled: Command, run: Path, tmp_path: Path) -> None:
    told = pairs(20, 3)
    for name, side in (("a.de", "source"), ("a.en", "target")):
        (tmp_path / name).write_text("".join(" ".join(getattr(pair, side)) + "\n" for pair in told))
    (tmp_path / "strange.de").write_text("vier fünf\n" * 20)
    swapped = unrolled("evaluate", run, "--data", tmp_path / "a.en", tmp_path / "a.de")
    assert swapped.status == 0
    assert "are known to the model as words of the target alone; if the languages are swapped" in swapped.err
    for source in ("a.de", "strange.de"):
        done = unrolled("evaluate", run, "--data", tmp_path / source, tmp_path / "a.en")
        assert (done.status, "swapped" in done.err) == (0, False)


@pytest.mark.parametrize("dash", [(), ("-",)])
def test_line_i_goes_with_line_i_and_an_empty_one_stays_empty(
    unrolled: Command, run: Path, lines: Callable[[str], None], dash: tuple[str, ...]
) -> None:
    many = [" ".join(pair.source) for pair in pairs(70, 3)]
    lines("drei zwei\r\n\n  \neins\n" + "\n".join(many))
    done = unrolled("translate", run, *dash)
    assert (done.status, done.err) == (0, "")
    said = done.out.split("\n")
    assert said[:4] == ["three Two", "", "", "one"]
    assert len(said[4:-1]) == 70
    for place in (0, 33, 63, 64, 69):  # on both sides of where a batch ends
        assert said[4 + place] == unrolled("translate", run, many[place]).out.rstrip("\n")


def test_a_byte_order_mark_is_no_word(unrolled: Command, run: Path, lines: Callable[[str], None]) -> None:
    lines("\ufeffdrei\nzwei\n")
    done = unrolled("translate", run)
    assert (done.status, done.out, done.err) == (0, "three\nTwo\n", "")


def test_unknown_words_are_told_apart_from_the_translations(
    unrolled: Command, run: Path, lines: Callable[[str], None]
) -> None:
    lines("eins\nzwei vier fünf vier\n")
    done = unrolled("translate", run)
    assert done.err == "line 2: not in the vocabulary, read as <unk>: vier fünf\n"
    assert done.out.split("\n")[0] == "one"
    assert unrolled("translate", run, "sechs").err == "not in the vocabulary, read as <unk>: sechs\n"


def test_nothing_to_translate_is_nothing_said(unrolled: Command, run: Path, lines: Callable[[str], None]) -> None:
    lines("")
    done = unrolled("translate", run)
    assert (done.status, done.out, done.err) == (0, "", "")


def test_what_cannot_be_is_refused(unrolled: Command, run: Path, tmp_path: Path) -> None:
    unrolled("translate", run, "  ").assert_refused(2, "the sentence is empty; give at least one word")
    unrolled("translate", run, "eins", "--beam", 0).assert_refused(2, "--beam")
    unrolled("translate", tmp_path / "none", "eins").assert_refused(74, "no run folder")


def test_a_run_of_another_task_is_refused(unrolled: Command, tmp_path: Path) -> None:
    examples = tuple(Example((word,), place % 2) for place, word in enumerate(WORDS * 4))
    corpus = Classification(name="told", labels=("a", "b"), train=examples, dev=examples, test=examples)
    task = Classify.from_corpus(corpus, Classify.Architecture(hidden=4, embedding=4))
    train(task, corpus, TrainingSettings(epochs=1), tmp_path / "run", data=DataSettings(data=("a.tsv",)))
    unrolled("translate", tmp_path / "run", "eins").assert_refused(
        2, "was trained for classify; give a run of the task translate"
    )
