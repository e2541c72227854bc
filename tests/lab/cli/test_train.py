from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unrolled.lab.data.corpus import Classification
from unrolled.lab.data.datasets import DATASETS
from unrolled.lab.data.formats import FORMATS
from unrolled.lab.models.settings import PooledSettings
from unrolled.lab.tasks import TASKS
from unrolled.lab.training.run_folder import load_run
from unrolled.lab.training.settings import TrainingSettings
from unrolled.registry import texts_in_source

Command = Callable[..., Any]
SMALL = ("--hidden", 8, "--embedding", 8, "--epochs", 2, "--limit", 300)
QUICK = ("--data", "negation", *SMALL)


def test_a_training_of_one_class_ends_with_its_result(unrolled: Command, tmp_path: Path) -> None:
    done = unrolled("train", "classify", "--data", "negation", *SMALL[:-1], 1, "--out", tmp_path / "x")
    assert done.status == 0, done.err
    assert "texts: 1 for train" in done.err
    assert "logistic regression" not in done.err
    assert done.out.startswith("test: accuracy ")


def test_classes_without_an_example_on_dev_or_test_are_counted(
    unrolled: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, labels in {"train": "abcabc", "dev": "abc", "test": "aa", "whole": "cba"}.items():
        lines = (f"the {name} text {number}\t{label}\n" for number, label in enumerate(labels))
        Path(f"{name}.tsv").write_text("".join(lines))
    small = ("--hidden", 4, "--embedding", 4, "--epochs", 1, "--data", "train.tsv", "--dev", "dev.tsv")
    few = unrolled("train", "classify", *small, "--test", "test.tsv", "--out", "few").err.splitlines()[0]
    all_of_them = unrolled("train", "classify", *small, "--test", "whole.tsv", "--out", "all").err.splitlines()[0]
    assert few.endswith("few texts to measure accuracy on dev and test; 2 of 3 classes without an example on test")
    assert "without an example" not in all_of_them


def test_examples_of_dev_and_test_that_are_also_in_train_are_counted(
    unrolled: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, texts in {"train": "abcdef", "dev": "wxyz", "test": "abyz"}.items():
        lines = (f"the text {letter}\t{'no' if letter in 'aceyz' else 'yes'}\n" for letter in texts)
        Path(f"{name}.tsv").write_text("".join(lines))
    Path("other.tsv").write_text("the text a\tyes\nthe text b\tyes\n")  # one text has another label
    small = ("--hidden", 4, "--embedding", 4, "--epochs", 1)
    for test, count in (("test.tsv", 2), ("other.tsv", 1)):
        done = unrolled(
            "train", "classify", "--data", "train.tsv", "--dev", "dev.tsv", "--test", test, *small, "--out", test[:4]
        )
        assert done.status == 0
        size = len(Path(test).read_text().splitlines())
        assert done.err.splitlines()[0].endswith(f"; examples that are also in train: {count} of {size} on test")


def test_it_trains_saves_a_run_and_says_what_to_do_next(unrolled: Command, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "x"
    options = ("--encoder", "lstm", "--bidirectional", "--optimiser", "adagrad", "--lr", 0.05)
    done = unrolled("train", "classify", *options, *QUICK, "--out", folder)
    assert done.status == 0
    sizes, *epochs = done.err.splitlines()[:3]
    assert sizes == "texts: 300 for train, 200 for dev, 200 for test"
    assert [line[:10] for line in epochs] == ["epoch 1/2 ", "epoch 2/2 "]
    result, where, hint = done.out.splitlines()
    assert result.startswith("test: accuracy ")
    assert f"saved to {folder}" in where
    assert f"unrolled explain {folder} '" in hint
    with contextlib.chdir(tmp_path):  # as a person types it there
        again = unrolled("resume", "runs/x").out
    assert "saved to runs/x\n" in again
    assert "unrolled explain runs/x '" in again
    run = load_run(folder)
    made = run.task.architecture
    assert (made.encoder, made.bidirectional, run.settings.optimiser) == ("lstm", True, "adagrad")
    assert (run.data.title, run.data.limit, run.task.labels) == ("negation", 300, ("negative", "positive"))
    assert f"{run.metrics['test_accuracy']:.2%}" in result


@pytest.mark.parametrize("encoder", ["vm", "cnn", "transformer"])
def test_of_a_run_with_nothing_to_open_the_next_command_is_one_that_works(
    unrolled: Command, tmp_path: Path, encoder: str
) -> None:
    done = unrolled("train", "classify", "--encoder", encoder, *QUICK, "--out", tmp_path / "x")
    next_line = done.out.splitlines()[-1]
    assert next_line == f"next:  unrolled evaluate {tmp_path / 'x'}"
    assert unrolled(*next_line.split()[2:]).status == 0
    unrolled("explain", tmp_path / "x", "a good film").assert_refused(
        2, f"x was trained with {encoder}, which is not a recurrent network; give a run of rnn, gru, lstm or a"
    )


def test_an_earlier_run_is_replaced_only_by_force(unrolled: Command, tmp_path: Path) -> None:
    folder = tmp_path / "x"
    words = ("train", "classify", *QUICK, "--out", folder)
    assert unrolled(*words).status == 0
    unrolled(*words, "--seed", 1).assert_refused(2, f"{folder} already exists", "--force")
    assert load_run(folder).settings.seed == 0
    assert unrolled(*words, "--seed", 1, "--force").status == 0
    assert load_run(folder).settings.seed == 1
    other = tmp_path / "letters"
    other.mkdir()
    unrolled("train", "classify", *QUICK, "--out", other, "--force").assert_refused(74, "is not a run folder")


def test_it_learns_a_file_of_the_users(unrolled: Command, tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text("".join(f"text number {i} is {'odd' if i % 2 else 'even'}\t{i % 2}\n" for i in range(60)))
    assert unrolled("train", "classify", "--data", path, *SMALL, "--out", tmp_path / "x").status == 0
    assert load_run(tmp_path / "x").data.title == "mine"
    path.write_text("no label here\n")
    unrolled("train", "classify", "--data", path, "--out", tmp_path / "y").assert_refused(65, "mine.tsv:1: expected")
    assert not (tmp_path / "y").exists()


MADE = ("--data", "negation")


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        ((), 2, "--data is missing; give one of ag_news, "),
        (("--data", "negatoin"), 2, "unknown dataset 'negatoin'; did you mean 'negation'"),
        (("--data", "ptb"), 2, "ptb is a corpus for words; expected one for classification: ag_news"),
        ((*MADE, "--encoder", "gruu"), 2, "unknown encoder 'gruu'; did you mean 'gru'"),
        ((*MADE, "--encoder", "mmlstm", "--option", "choice=2"), 2, "did you mean 'choices'"),
        ((*MADE, "--option", "choices"), 2, "expected NAME=VALUE"),
        ((*MADE, "--learning-rate", "0.1"), 2, "No such option: --learning-rate; did you mean '--lr'?"),
        ((*MADE, "--pooling", "mena"), 2, "did you mean 'mean'"),
        ((*MADE, "--optimiser", "adagrda"), 2, "did you mean 'adagrad'"),
        ((*MADE, "--hidden", 0), 2, "hidden is 0; expected"),
        ((*MADE, "--dropout", 1), 2, "dropout is 1.0; expected less than 1"),
        ((*MADE, "--hidden", "big"), 2, "valid integer"),
        ((*MADE, "--limit", 0), 2, "limit is 0; expected greater than or equal to 1"),
        (("--data", "sst2"), 2, "UNROLLED_DATA"),
        (("--data", "sst2", "--data-dir", "."), 74, "expected sst/train.txt, sst/train.txt.xz or"),
        (("--data", "gone.tsv"), 74, "gone.tsv: cannot be read"),
        (("--data", ""), 2, "the name of a file is empty"),
        (("reviews.csv",), 2, "a dataset or a file is named by --data: --data reviews.csv"),
        ((*MADE, "--config", "gone.yaml"), 74, "gone.yaml: cannot be read"),
    ],
)
def test_what_cannot_be_is_one_line(
    unrolled: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[object, ...],
    status: int,
    expected: str,
) -> None:
    monkeypatch.delenv("UNROLLED_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    unrolled("train", "classify", *words).assert_refused(status, expected)
    assert list(tmp_path.iterdir()) == []


def test_a_broken_tree_is_named_by_file_and_line(unrolled: Command, tmp_path: Path) -> None:
    (tmp_path / "sst").mkdir()
    for split in ("train", "dev", "test"):
        (tmp_path / "sst" / f"{split}.txt").write_text("(3 (2 It) (4 good))\n(3 (2 It) (9 good))\n")
    words = ("train", "classify", "--data", "sst2", "--data-dir", tmp_path, "--out", tmp_path / "x")
    unrolled(*words).assert_refused(65, "train.txt:2: expected a label from 0 to 4 after '(', found '9'")


def test_a_settings_file_stands_behind_the_flags(unrolled: Command, tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    lines = (
        "data: negation",
        "encoder: lstm",
        "hidden: 6",
        "embedding: 5",
        "epochs: 1",
        "limit: 100",
        f"out: {tmp_path / 'x'}",
    )
    config.write_text("\n".join(lines))
    assert unrolled("train", "classify", "--config", config, "--hidden", 7).status == 0
    run = load_run(tmp_path / "x")
    made = run.task.architecture
    assert (made.encoder, made.hidden, made.embedding, run.settings.epochs) == ("lstm", 7, 5, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("encoder: gru\nhiden: 3\n", "run.yaml:2: unknown setting 'hiden'; did you mean 'hidden'"),
        ("hidden: many\n", "run.yaml:1: hidden is 'many'; expected a valid integer"),
        ("lr: 0.1\nencoder: gruu\n", "run.yaml:2: unknown encoder 'gruu'; did you mean 'gru'"),
        ("a: &x [1]\nb: *x\n", "run.yaml:2: expected plain values, found the alias"),
        ("lr: 0.1\nout: 3\n", "run.yaml:2: out is 3; give the path of the run folder to write"),
        ("out: [a]\n", "run.yaml:1: out is ['a']; give the path of the run folder to write"),
        ("seed: 2024-99-99\n", "run.yaml:1: expected a plain value, found '2024-99-99'"),
    ],
)
def test_a_wrong_settings_file_is_named_with_its_line(
    unrolled: Command, tmp_path: Path, text: str, expected: str
) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(text)
    words = ("train", "classify", *MADE, "--config", config, "--out", tmp_path / "x")
    unrolled(*words).assert_refused(78, expected)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", TASKS.names())
def test_the_help_of_a_task_has_all_its_settings_and_measures(unrolled: Command, name: str) -> None:
    done, task = unrolled("train", name, "--help"), TASKS.get(name)
    text = " ".join(done.out.replace("│", " ").split())
    for field in (*task.Architecture.model_fields, *TrainingSettings.model_fields):
        assert f"--{field.replace('_', '-')} ".replace("--options ", "--option ") in text
    for measure in task.metrics:
        assert f"{measure.name}: " in text


@pytest.mark.parametrize("name", TASKS.names())
def test_a_task_says_what_it_is(name: str) -> None:
    written = texts_in_source("unrolled.lab.tasks")[name]
    assert "description" in written, f'write description = "…" in the class {TASKS.get(name).__name__}'
    assert written["description"] == TASKS.get(name).description
    assert "\n" not in written["description"]


def test_a_task_without_a_description_leaves_the_list_of_the_others_as_it_was(
    unrolled: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = unrolled("train", "--help").out
    written = {**texts_in_source("unrolled.lab.tasks"), "marks": {"name": "marks"}}
    monkeypatch.setattr("unrolled.lab.cli.train.names_in_source", lambda _: sorted(written))
    monkeypatch.setattr("unrolled.lab.cli.train.texts_in_source", lambda _: written)
    done = unrolled("train", "--help")
    assert done.status == 0, done.err
    (added,) = (line for line in done.out.splitlines() if "marks" in line)
    assert "Train a model for the task marks." in added
    assert done.out.replace(f"{added}\n", "") == before


def test_the_help_names_every_dataset_of_its_kind_and_no_other(unrolled: Command) -> None:
    text = " ".join(unrolled("train", "classify", "--help").out.split())
    named = text[text.index("Datasets for this task:") : text.index("or your own files")]
    for name, source in DATASETS.members.items():
        assert (f" {name}," in named.replace(";", ",")) == issubclass(source.kind, Classification), name


@pytest.mark.parametrize("name", TASKS.names())
def test_the_help_names_every_format_of_its_kind_and_no_other(unrolled: Command, name: str) -> None:
    text = " ".join(unrolled("train", name, "--help").out.split())
    listed = text[text.index("or your own files") :]
    for each in FORMATS.members.values():
        shown = f" {each.name} ({', '.join(each.suffixes) or 'any file'}): "
        assert (shown in listed) == (TASKS.get(name).kind in each.kinds), each.name


@pytest.mark.parametrize(
    ("task", "name", "line"),
    [("rank", "mine.tsv", "who is {i} ?\tit is ann .\t1\nwho is {i} ?\tno .\t0\n"), ("brackets", "mine", "([]){{}}\n")],
)
def test_questions_and_brackets_are_learned_from_files(
    unrolled: Command, tmp_path: Path, task: str, name: str, line: str
) -> None:
    (tmp_path / name).write_text("".join(line.format(i=i) for i in range(20)))
    small = ("--hidden", 4, "--embedding", 4, "--epochs", 1, "--batch", 8)
    assert unrolled("train", task, "--data", tmp_path / name, *small, "--out", tmp_path / "x").status == 0
    assert unrolled("evaluate", tmp_path / "x", "--data", tmp_path / name).out.startswith(f"{tmp_path / name} (20): ")


def test_a_task_that_is_none_is_answered_with_the_nearest(unrolled: Command) -> None:
    unrolled("train", "clasify").assert_refused(2, "unknown task 'clasify'; did you mean 'classify'")


def test_the_defaults_of_a_pooled_model_are_those_the_help_names(unrolled: Command) -> None:
    text = " ".join(unrolled("train", "classify", "--help").out.replace("│", " ").split())
    assert f"[default: ({PooledSettings().hidden})]" in text
    assert f"[default: ({TrainingSettings().lr})]" in text


@pytest.mark.slow
@pytest.mark.parametrize("written", ["dyck(2, 3, seed=1)", "dyck(2,3,seed=1)", " dyck(2, 3,seed=1) "])
def test_settings_of_a_dataset_may_be_written_with_spaces_in_a_file(
    unrolled: Command, tmp_path: Path, written: str
) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(f"data: {written}\nsteps: 1\nepochs: 1\nout: {tmp_path / 'run'}\n")
    assert unrolled("train", "brackets", "--config", config).status == 0
    fields = load_run(tmp_path / "run").task.to_record()
    assert (fields["kinds"], fields["depth"]) == (2, 3)
