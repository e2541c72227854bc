"""What loads torch and what does not, and odd places: encodings, escape bytes, values that are no numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from unrolled.cli.commands import COMMANDS
from unrolled.lab.tasks import TASKS

LONG = [pytest.mark.slow, pytest.mark.fuzz]
PROGRAM = """
import contextlib, io, json, os, sys
from unrolled.cli.main import run
HEAVY = {"torch", "numpy", "scipy", "sklearn", "matplotlib", "safetensors", "unrolled.lab.data.collection.manifest"}
with contextlib.redirect_stdout(io.StringIO()):
    run(["--help"])
for words in json.loads(sys.argv[1]):
    sys.stdout.flush()
    if os.fork():
        os.wait()
        continue
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        status = run(words)
    tasks = [name for name in sys.modules if name.startswith("unrolled.lab.tasks.")]
    print(json.dumps([status, sorted(HEAVY & set(sys.modules)), sorted(tasks), said.getvalue()]))
    sys.stdout.flush()
    os._exit(0)
"""


def loaded_by(*lines):
    """Status, loaded modules and stderr of each command line, in processes forked from one that printed the help."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(lines)], capture_output=True, text=True, check=True
    )
    return dict(zip(lines, map(json.loads, done.stdout.splitlines()), strict=True))


TASK_MODULES = {task.__module__ for task in TASKS.members.values()}
DATA_COMMANDS = ("list", "describe", "check", "fetch")


@pytest.mark.slow
def test_no_help_loads_torch_or_a_task():
    lines = [(*words, "--help") for words in (*zip(COMMANDS), *(("data", name) for name in DATA_COMMANDS))]
    assert loaded_by(*lines) == {line: [0, [], [], ""] for line in lines}


@pytest.mark.slow
def test_the_help_of_a_task_loads_no_other_task():
    """But those that it derives from."""
    modules = {name: {each.__module__ for each in task.mro()} for name, task in TASKS.members.items()}
    expected = {
        ("train", name, "--help"): [0, [], sorted(TASK_MODULES & derived_from), ""]
        for name, derived_from in modules.items()
    }
    assert loaded_by(*expected) == expected


@pytest.mark.slow
def test_the_control_a_computation_loads_torch():
    ((status, heavy, _, said),) = loaded_by(("parameters", "lstm", "--input", "3", "--match", "1000")).values()
    assert (status, said) == (0, "")
    assert "torch" in heavy


@pytest.mark.slow
def test_a_missing_file_is_found_before_torch_is_loaded():
    lines = (
        ("train", "classify", "--data", "gone.csv"),
        ("train", "tag", "--data", "gone.conll"),
        ("evaluate", "gone"),
        ("resume", "gone"),
        ("predict", "gone"),
        ("explain", "gone", "a film"),
        ("explain", "--weights", "gone.safetensors", "--vocab", "gone.txt", "a film"),
        ("convert", "gone.pt", "b"),
    )
    for line, (status, heavy, _, said) in loaded_by(*lines).items():
        assert (status, heavy) == (74, []), line
        assert "gone" in said
        assert said.count("\n") == 1


@pytest.mark.parametrize("encoding", ["ascii", *(pytest.param(each, marks=LONG) for each in ("latin-1", "utf-8"))])
def test_a_stdout_of_another_encoding_is_no_error(encoding):
    done = subprocess.run(
        [sys.executable, "-m", "unrolled", "parameters", "lstm", "--match", "é…", "--input", "3"],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert done.returncode == 2
    assert b"internal" not in done.stderr
    shown = subprocess.run(
        [sys.executable, "-m", "unrolled", "train", "--help"],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert (shown.returncode, shown.stderr) == (0, b"")


def test_escape_bytes_in_a_path_do_not_reach_the_terminal(unrolled):
    for words in (
        ("evaluate", "\x1b[31mred\x07"),
        ("train", "classify", "--data", "\x1b[2Jx.csv"),
        ("convert", "\x1b]0;x", "b"),
    ):
        shown = unrolled(*words)
        assert shown.status == 74
        assert "\x1b" not in shown.err
        assert "␛" in shown.err


def test_a_path_that_is_not_utf8_is_no_internal_error():
    done = subprocess.run(
        [sys.executable, "-m", "unrolled", "evaluate", os.fsdecode(b"caf\xe9")], capture_output=True, check=False
    )
    assert done.returncode == 74
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hidden: true\n", "run.yaml:1: hidden is true; expected a number"),
        ("lr: false\n", "run.yaml:1: lr is false; expected a number"),
        ("optimiser: off\n", "run.yaml:1: optimiser is false; expected one of: adam, adamw, adagrad, sgd"),
        ("device: off\n", "run.yaml:1: device is false; expected text, in quotes if it reads as true or false"),
        ("vectors: off\n", "run.yaml:1: vectors is false; expected the path of a file"),
        ("layers: 1000000\n", "run.yaml:1: layers is 1000000; expected less than or equal to 1000"),
        ("text_column: [1]\n", "run.yaml:1: text_column is [1]"),
        ("max_tokens: 0\n", "run.yaml:1: max_tokens is 0; expected greater than or equal to 1"),
        ("longer: never\n", "run.yaml:1: unknown longer 'never'"),
    ],
)
def test_a_value_that_is_no_number_is_named_with_its_line(unrolled, tmp_path, text, expected):
    (tmp_path / "run.yaml").write_text(text)
    words = ("train", "classify", "--data", "negation", "--config", tmp_path / "run.yaml", "--out", tmp_path / "x")
    unrolled(*words).assert_refused(78, expected)


@pytest.mark.parametrize("label", ["1e308", "-1e308", "1e30"])
def test_labels_whose_square_is_no_float32_are_refused_by_line(unrolled, tmp_path, label):
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"a text {n}\t{n}\n" for n in range(20)) + f"the last\t{label}\n")
    words = ("train", "regress", "--data", path, "--out", tmp_path / "x")
    unrolled(*words).assert_refused(65, "a.tsv:21: expected a number of at most 1e+18 in size")


def test_json_nested_without_end_is_one_line(unrolled, tmp_path):
    (tmp_path / "v.json").write_text("[" * 200_000)
    (tmp_path / "w.safetensors").write_bytes(b"no")
    words = ("--weights", tmp_path / "w.safetensors", "--vocab", tmp_path / "v.json", "a film")
    shown = unrolled("explain", *words)
    assert shown.status in (65, 74)
    assert "internal" not in shown.err
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text('{"format": ' + "[" * 200_000)
    unrolled("evaluate", tmp_path / "run").assert_refused(65, "config.json")
    (tmp_path / "run" / "config.json").write_text(json.dumps({"format": "unrolled-run", "version": 2}))
    assert "internal" not in unrolled("evaluate", tmp_path / "run").err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_arguments_once_and_breaks_no_sentence(unrolled, monkeypatch, command):
    """Brackets of a name would stand inside those that the parser adds; a docstring's line ends are no paragraphs."""
    monkeypatch.setenv("COLUMNS", "300")
    lines = [line.strip() for line in unrolled(command, "--help").out.splitlines()]
    (usage,) = [line for line in lines if line.startswith("Usage:")]
    assert not {"[[", "...]", "......"} & {usage[k : k + size] for k in range(len(usage)) for size in (2, 4, 6)}
    said = [line for line in lines[lines.index(usage) + 1 :] if line and line[0] not in "╭│╰"]
    assert [line for line in said if not line.endswith((".", ":", "?")) and not line.startswith("unrolled ")] == []
    assert [line for line in said if line.startswith("unrolled ") and line.count("unrolled ") > 1] == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--top", -1), "expected greater than or equal to 0"),
        (("--top", "many"), "expected a valid integer"),
        (("--top", "1e3"), "expected a valid integer, found '1e3'"),
        (("--max-order", "-0"), "expected greater than or equal to 1, found '-0'"),
        (("--max-order", "x" * 90), f"found '{'x' * 40}'"),
    ],
)
def test_a_number_out_of_its_range_is_refused_in_our_words(unrolled, words, expected):
    unrolled("explain", "runs/x", "a film", *words).assert_refused(2, f"'{words[0]}'", expected)
