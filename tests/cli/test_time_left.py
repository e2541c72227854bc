"""A long explanation says how far it has come; a short one says nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_explain import SENTENCE, make_run

from unrolled.report import time_left

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
