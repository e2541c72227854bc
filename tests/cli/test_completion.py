"""Completion in shells: a real bash calls the function of the script; zsh and fish are answered as they ask."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from unrolled.cells import CELLS
from unrolled.cli.commands import COMMANDS
from unrolled.cli.completed_values import cell_names, encoder_names, expansion_names, paper_items, run_folders
from unrolled.expansions import EXPANSIONS
from unrolled.lab.data.datasets import DATASETS
from unrolled.lab.data.load import dataset_names
from unrolled.lab.models.encoder_names import ENCODER_NAMES
from unrolled.lab.papers import EXPERIMENTS
from unrolled.lab.tasks import TASKS
from unrolled.registry import names_in_source

BASH = shutil.which("bash")
ASK = """
source completion.sh
declare -F "$(complete -p unrolled | sed 's/.*-F \\([^ ]*\\) .*/\\1/')" > /dev/null || exit 3
COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); COMPREPLY=()
_unrolled_completion unrolled
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs, a file, and the command on the path."""
    folder = tmp_path_factory.mktemp("here")
    for name in ("runs/sst2-gru", "runs/sst2-lstm", "old/deep/er/run", "data"):
        (folder / name).mkdir(parents=True)
    for name in ("runs/sst2-gru", "runs/sst2-lstm", "old/deep/er/run"):
        (folder / name / "config.json").touch()
    (folder / "reviews.csv").touch()
    (folder / "bin").mkdir()
    command = folder / "bin" / "unrolled"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m unrolled "$@"\n')
    command.chmod(0o755)
    script = subprocess.run([command, "completion", "bash"], capture_output=True, check=True).stdout
    (folder / "completion.sh").write_bytes(script)
    return folder


def environment(place: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", **more}


def complete(place: Path, *words: str) -> list[str]:
    """What bash offers for the last of some words."""
    assert BASH is not None
    done = subprocess.run(
        [BASH, "--norc", "-c", ASK, "bash", "unrolled", *words],
        cwd=place,
        env=environment(place),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.slow
@pytest.mark.skipif(BASH is None, reason="no bash on the path")
def test_bash_completes_what_can_be_named(place: Path) -> None:
    assert set(complete(place, "")) == set(COMMANDS)
    assert set(complete(place, "train", "")) == set(TASKS.names())
    assert complete(place, "train", "classify", "--encoder", "mi_") == ["mi_gru", "mi_lstm", "mi_rnn"]
    offered = complete(place, "train", "classify", "--data", "s")
    assert offered
    assert set(offered) < set(DATASETS.names())
    assert complete(place, "explain", "runs/sst2-g") == ["runs/sst2-gru"]
    assert complete(place, "explain", "runs/sst2-gru", "--expansion", "sec") == ["secant"]
    assert complete(place, "reproduce", "ours/p") == ["ours/phrases"]
    assert complete(place, "reproduce", "ours/phrases", "--scale", "c") == ["cpu"]


@pytest.mark.skipif(BASH is None, reason="no bash on the path")
def test_bash_completes_files_itself_where_a_file_is_wanted(place: Path) -> None:
    assert complete(place, "train", "classify", "--data", "rev") == []  # -o default: then bash lists files
    assert complete(place, "explain", "runs/sst2-gru", "--html", "rev") == []
    assert "-o default" in (place / "completion.sh").read_text()


@pytest.mark.skipif(BASH is None, reason="no bash on the path")
def test_a_line_that_is_wrong_offers_nothing_and_says_nothing(place: Path) -> None:
    assert complete(place, "nothing", "x") == complete(place, "train", "nothing", "--") == []


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_zsh_and_fish_are_answered(place: Path, shell: str) -> None:
    asked = {"_UNROLLED_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    for line, wanted in (
        ("unrolled tra", "train"),
        ("unrolled explain runs/sst2-g", "runs/sst2-gru"),
        ("unrolled reproduce implicit-ngrams/neg", "implicit-ngrams/negation"),
    ):
        done = subprocess.run(
            ["unrolled"],
            cwd=place,
            env=environment(place, **asked, _TYPER_COMPLETE_ARGS=line),
            executable=place / "bin" / "unrolled",
            capture_output=True,
            text=True,
            check=True,
        )
        assert wanted in done.stdout
        assert done.stderr == ""
    script = subprocess.run(
        [place / "bin" / "unrolled", "completion", shell], capture_output=True, text=True, check=True
    ).stdout
    assert f"_UNROLLED_COMPLETE=complete_{shell}" in script
    if found := shutil.which(shell):
        subprocess.run([found, "-n"], input=script, text=True, check=True, capture_output=True)


def test_names_are_read_from_the_source_without_importing_it() -> None:
    assert cell_names("") == list(CELLS.names())
    assert encoder_names("") == list(ENCODER_NAMES)
    assert expansion_names("") == list(EXPANSIONS.names())
    assert names_in_source("unrolled.lab.data.datasets") == list(DATASETS.names())
    assert names_in_source("unrolled.nothing") == []
    assert set(dataset_names(TASKS.get("classify").kind)) < set(DATASETS.names())


def test_papers_are_offered_and_then_their_items() -> None:
    items = EXPERIMENTS.names()
    papers = {name.partition("/")[0] for name in items}
    assert set(paper_items("")) == papers
    for paper in papers:
        assert (
            paper_items(f"{paper}/") == paper_items(paper) == [name for name in items if name.startswith(f"{paper}/")]
        )
    assert paper_items("none") == paper_items("ours/none") == []


def test_run_folders_are_found_from_what_was_typed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    assert run_folders("") == ["runs/sst2-gru", "runs/sst2-lstm"]  # not those that lie deeper
    assert run_folders("old/") == ["old/deep/er/run"]
    assert run_folders("runs/sst2-l") == ["runs/sst2-lstm"]
    assert run_folders(f"{place}/runs/sst2-g") == [f"{place}/runs/sst2-gru"]
    assert run_folders("none/") == run_folders("reviews.csv/") == run_folders("x") == []


def test_a_completion_loads_no_torch(place: Path) -> None:
    program = (
        "import sys\nfrom unrolled.cli.main import run\n"
        "try:\n    run([])\nexcept SystemExit:\n    pass\nprint('torch' in sys.modules)"
    )
    for line in ("unrolled train classify --encoder m", "unrolled explain r", "unrolled reproduce o"):
        asked = {"_UNROLLED_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": line}
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=place,
            env=environment(place, **asked),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines()[-1] == "False"


def test_another_shell_is_refused(unrolled) -> None:
    unrolled("completion", "tcsh").assert_refused(2, "tcsh", "bash, fish, zsh")
