"""``unrolled tag``: sentences as arguments or lines, tokens, unknown words, what is refused."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unrolled.lab.data.corpus import Classification, Example, TaggedSentence, Tagging
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.tasks.tag import Tag, TagSettings
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.engine import train
from unrolled.lab.training.settings import TrainingSettings

Command = Callable[..., Any]
PEOPLE = ("Ada", "Alan", "Grace")


def sentences(count: int, seed: int) -> tuple[TaggedSentence, ...]:
    """A name of one or two words, and what it did."""
    draw = random.Random(seed)
    names = [tuple(draw.choices(PEOPLE, k=draw.randint(1, 2))) for _ in range(count)]
    tags = {1: ("S-PER",), 2: ("B-PER", "E-PER")}
    return tuple(
        TaggedSentence((*name, "does", "n't", "sleep", "."), (*tags[len(name)], "O", "O", "O", "O")) for name in names
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger that knows three names."""
    corpus = Tagging(name="told", train=sentences(200, 0), dev=sentences(20, 1), test=sentences(20, 2), spans=True)
    task = Tag.from_corpus(corpus, TagSettings(hidden=8, embedding=8, dropout=0.0, word_dropout=0.0))
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(task, corpus, TrainingSettings(epochs=5, batch=16, lr=0.02), folder, data=DataSettings(data=("a.conll",)))
    return folder


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """What stands on standard input."""
    return lambda text: monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_each_token_is_written_with_its_tag(unrolled: Command, run: Path) -> None:
    done = unrolled("tag", run, "Ada", "Grace", "doesn't", "sleep.")
    said = "Ada\tB-PER\nGrace\tE-PER\ndoes\tO\nn't\tO\nsleep\tO\n.\tO\n\n"
    assert (done.status, done.out, done.err) == (0, said, "")
    assert unrolled("tag", run, "Ada Grace doesn't sleep.").out == said


def test_sentences_in_quotes_are_tagged_one_by_one(unrolled: Command, run: Path) -> None:
    done = unrolled("tag", run, "Ada does n't sleep .", "Alan Ada does n't sleep .")
    assert [block.split("\n")[0] for block in done.out.split("\n\n")[:2]] == ["Ada\tS-PER", "Alan\tB-PER"]


@pytest.mark.parametrize("dash", [(), ("-",)])
def test_lines_become_a_file_that_is_read_as_conll(
    unrolled: Command, run: Path, lines: Callable[[str], None], tmp_path: Path, dash: tuple[str, ...]
) -> None:
    many = sentences(70, 3)
    lines("\n".join(" ".join(each.tokens) for each in many) + "\n")
    done = unrolled("tag", run, "--tokens", *dash)
    assert (done.status, done.err) == (0, "")
    (tmp_path / "tagged.conll").write_text(done.out)
    assert unrolled("evaluate", run, "--data", tmp_path / "tagged.conll").status == 0
    blocks = [block.split("\n") for block in done.out.removesuffix("\n\n").split("\n\n")]
    assert [[tuple(row.split("\t")) for row in block] for block in blocks] == [
        list(zip(each.tokens, each.tags, strict=True)) for each in many
    ]


def test_an_empty_line_has_no_token(unrolled: Command, run: Path, lines: Callable[[str], None]) -> None:
    lines("\ufeffAda\n\n  \nGrace\r\n")
    assert unrolled("tag", run).out == "Ada\tS-PER\n\n\n\nGrace\tS-PER\n\n"
    lines("")
    done = unrolled("tag", run)
    assert (done.status, done.out, done.err) == (0, "", "")


def test_tokens_are_split_at_spaces_only(unrolled: Command, run: Path) -> None:
    assert unrolled("tag", run, "Ada doesn't.").out.split()[::2] == ["Ada", "does", "n't", "."]
    assert unrolled("tag", run, "Ada doesn't.", "--tokens").out.split()[::2] == ["Ada", "doesn't."]


def test_unknown_words_are_named_or_counted(unrolled: Command, run: Path, lines: Callable[[str], None]) -> None:
    assert unrolled("tag", run, "Ada met Bob").err == "not in the vocabulary, read as <unk>: met Bob\n"
    lines("Ada met Bob\nBob sleep\n")
    assert unrolled("tag", run).err == "not in the vocabulary, read as <unk>: 3 of 5 tokens\n"


def test_what_cannot_be_is_refused(unrolled: Command, run: Path, tmp_path: Path) -> None:
    unrolled("tag", run, "  ").assert_refused(2, "the sentence is empty; give at least one word")
    unrolled("tag", tmp_path / "none", "Ada").assert_refused(74, "no run folder")
    examples = tuple(Example((word,), place % 2) for place, word in enumerate(PEOPLE * 4))
    corpus = Classification(name="told", labels=("a", "b"), train=examples, dev=examples, test=examples)
    task = Classify.from_corpus(corpus, Classify.Architecture(hidden=4, embedding=4))
    train(task, corpus, TrainingSettings(epochs=1), tmp_path / "run", data=DataSettings(data=("a.tsv",)))
    unrolled("tag", tmp_path / "run", "Ada").assert_refused(2, "was trained for classify; give a run of the task tag")


def test_a_sentence_with_a_new_type_of_tag_is_named_by_its_line_and_left_out(
    unrolled: Command, run: Path, tmp_path: Path
) -> None:
    told = "Ada B-PER\nsleeps O\n\n"
    old, new = tmp_path / "old.conll", tmp_path / "new.conll"
    old.write_text(told + "Grace B-PER\nAlan I-PER\nsleeps O\n")  # E-PER in the training, as in IOBES
    new.write_text(told + "Rome B-LOC\nsleeps O\n")
    done = unrolled("evaluate", run, "--data", new)
    assert done.status == 65
    assert f"{new}:4: expected a label that training examples have, found 'LOC'" in done.err
    done = unrolled("evaluate", run, "--data", new, "--skip-invalid")
    assert (done.status, "new.conll (1): f1" in done.out) == (0, True)
    assert "1 row with a label that no training example has (line 4)" in done.err
    done = unrolled("evaluate", run, "--data", old, "--skip-invalid")
    assert (done.status, "old.conll (2): f1" in done.out, "left out" in done.err) == (0, True, False)
