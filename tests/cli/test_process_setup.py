"""A command that is started with closed streams, in a narrow terminal or without a home ends as it does elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from unrolled.cli.process_setup import prepare_process

NOWHERE = {
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONIOENCODING": "ascii",
    "TERM": "dumb",
    "COLUMNS": "1",
    "HOME": "/proc/nobody",
    "TMPDIR": "/proc/nowhere",
}


def said(words, folder):
    return subprocess.run(
        f"umask 077; '{sys.executable}' -m unrolled {words}",
        shell=True,
        capture_output=True,
        check=False,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # no terminal
        env={**os.environ, **NOWHERE},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status"), [("parameters gru --match 1000 --input 3", 0), ("predict gone é.txt", 74), ("nonsense", 2)]
)
def test_no_home_no_terminal_no_temporary_folder_and_an_ascii_terminal_of_one_column(words, status, tmp_path):
    done = said(words, tmp_path)
    assert (done.returncode, done.stderr.count(b"\n")) == (status, int(status > 0)), done.stderr
    assert b"internal" not in done.stderr
    assert done.stdout or status


@pytest.mark.slow
def test_what_torch_says_of_its_own_choice_of_code_is_not_shown(tmp_path):
    torch.manual_seed(0)
    parts = {"emb": nn.Embedding(2, 4), "core": nn.LSTM(4, 5, proj_size=3), "fc": nn.Linear(3, 2)}
    save_file(nn.ModuleDict(parts).state_dict(), tmp_path / "net.safetensors")
    (tmp_path / "words.txt").write_text("not\nbad\n")
    done = said("explain --weights net.safetensors --vocab words.txt not bad", tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")


def test_closed_streams_are_empty_ones(tmp_path):
    assert said("--version >&-", tmp_path).returncode == 0
    done = said("predict gone - <&- >&-", tmp_path)
    assert (done.returncode, done.stderr.count(b"\n")) == (74, 1)
    assert said("nonsense >&- 2>&-", tmp_path).returncode == 2


def test_a_closed_standard_input_has_no_lines(monkeypatch):
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    prepare_process()
    with sys.stdin as read, sys.stdout as written, sys.stderr as errors:
        assert list(read) == []
        for stream in (written, errors):
            assert stream.write("nothing")


@pytest.mark.parametrize(("given", "taken"), [("1", "40"), ("39", "40"), ("80", "80"), ("wide", "wide"), ("", "")])
def test_a_terminal_is_at_least_wide_enough_for_a_table(monkeypatch, given, taken):
    monkeypatch.setenv("COLUMNS", given)
    prepare_process()
    assert os.environ["COLUMNS"] == taken
