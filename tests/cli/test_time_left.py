"""A long explanation says how far it has come; a short one says nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.cli.test_explain import SENTENCE, make_run
from torch import nn

import unrolled as library
from unrolled.cli import time_left
from unrolled.decomposition.sweep_progress import told_of_sweeps

Command = Callable[..., Any]


def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Say a line at every step."""
    monkeypatch.setattr(time_left, "_FIRST", 0.0)
    monkeypatch.setattr(time_left, "_EVERY", 0.0)


@pytest.mark.parametrize("expansion", ["secant", "mean(secant,path)"])
@pytest.mark.parametrize(("layers", "bidirectional"), [(1, False), (2, False), (1, True), (2, True)])
def test_lines_tell_how_much_is_done_and_left(
    layers: int,
    bidirectional: bool,
    expansion: str,
    unrolled: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = make_run(tmp_path / "run", layers=layers, bidirectional=bidirectional)
    silent = unrolled("explain", run, SENTENCE, "--expansion", expansion)
    hurried(monkeypatch)
    done = unrolled("explain", run, SENTENCE, "--expansion", expansion)
    assert (silent.err, silent.out) == ("", done.out)
    lines = re.findall(r"^7 tokens by (.+): (\d+)% done, about \d+ s left$", done.err, re.MULTILINE)
    assert {name.replace(" ", "") for name, _ in lines} == {expansion}
    shares = [int(each) for _, each in lines]
    assert len(shares) == len(done.err.splitlines()) >= 5  # the first step measures how long one takes
    assert shares == sorted(shares)
    assert 0 < shares[0] < 40
    assert 70 < shares[-1] < 100


def test_a_file_of_texts_and_every_expansion_of_a_page_tell_it(
    unrolled: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run")
    hurried(monkeypatch)
    (tmp_path / "texts.txt").write_text(f"{SENTENCE}\ngood film\n")
    done = unrolled("explain", run, "--file", tmp_path / "texts.txt")
    assert "7 tokens by secant" in done.err
    assert "2 tokens" not in done.err
    page = unrolled("explain", run, SENTENCE, "--html", tmp_path / "page.html")
    assert "by secant" in page.err
    assert "by operating" in page.err


def test_where_no_sweep_runs_a_line_says_that_the_command_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_left, "_SILENT", 0.05)
    with time_left.tell_time_left(1_000_000, "secant"):
        time.sleep(0.3)
    said = capsys.readouterr().err.splitlines()
    assert 2 <= len(said) <= 6
    assert set(said) == {"1,000,000 tokens by secant: running for 0 s"}
    with time_left.tell_time_left(7, "secant"):
        pass
    time.sleep(0.1)
    assert capsys.readouterr().err == ""  # it has ended


class Loop(nn.Module):
    """A cell in a loop beside a network that is called once: two lines."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.rnn = nn.Embedding(9, 4), nn.GRU(4, 5, batch_first=True, bidirectional=True)
        self.cell, self.head = nn.GRUCell(4, 5), nn.Linear(15, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        vectors, h = self.embed(ids), torch.zeros(len(ids), 5)
        for x in vectors.unbind(1):
            h = self.cell(x, h)
        logits: torch.Tensor = self.head(torch.cat((self.rnn(vectors)[0].mean(1), h), dim=-1))
        return logits


def test_all_calls_are_one_plan_and_what_is_asked_for_alone_is_counted() -> None:
    shares: list[float] = []
    ids = torch.tensor([[1, 2, 3, 4]])
    with told_of_sweeps(shares.append):
        library.explain(Loop(), ids, target=1)
    assert shares == [(step + 1) / 12 for step in range(12)]  # a cell's four steps, and four in each direction
    counted = len(shares)
    library.explain(Loop(), ids, target=1)  # nobody asks any more
    assert len(shares) == counted
