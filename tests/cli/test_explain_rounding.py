"""Where terms far larger than their sum cancel, float32 hides the sum: the command then computes in float64."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

Command = Callable[..., Any]
LONG = " ".join("a b b a c".split() * 16)
NOTE = "computed in float64"


@pytest.fixture
def words(tmp_path: Path) -> tuple[object, ...]:
    """A chaotic Elman network: the products of its Jacobians grow with every step, its states do not."""
    torch.manual_seed(0)
    parts = nn.ModuleDict({"embed": nn.Embedding(3, 4), "rnn": nn.RNN(4, 24), "head": nn.Linear(24, 2)})
    parts.rnn.weight_hh_l0.data = 2.5 * torch.randn(24, 24) / 24**0.5
    save_file(parts.state_dict(), tmp_path / "w.safetensors")
    (tmp_path / "words.txt").write_text("a\nb\nc\n")
    files = ("--weights", tmp_path / "w.safetensors", "--vocab", tmp_path / "words.txt", "--nonlinearity", "tanh")
    return ("explain", *files)


def account(unrolled: Command, words: tuple[object, ...], path: Path) -> dict[str, Any]:
    done = unrolled(*words, "--json", path)
    assert done.status == 0, done.err
    (found,) = json.loads(path.read_text())["accounts"]
    return found


def test_a_sum_that_rounding_hides_is_computed_in_float64(
    unrolled: Command, words: tuple[object, ...], tmp_path: Path
) -> None:
    found = account(unrolled, (*words, LONG, "--expansion", "operating"), tmp_path / "long.json")
    assert found["exact"]
    assert found["cancellation"] > 1e6  # in float32 nothing of the sum is left
    assert any(NOTE in note for note in found["notes"])
    assert abs(found["ledger"]["remainder"]) < 1e-3 * abs(found["movement"])


def test_a_sum_that_closes_stays_in_float32(unrolled: Command, words: tuple[object, ...], tmp_path: Path) -> None:
    for number, more in enumerate(
        [("a b c",), ("a b c", "--expansion", "zero"), ("a b c b b a", "--expansion", "activation")]
    ):
        found = account(unrolled, (*words, *more), tmp_path / f"{number}.json")
        assert not any(NOTE in note for note in found["notes"])  # an inexact expansion gains nothing by float64


@pytest.mark.slow
def test_the_page_leaves_out_the_expansions_that_overflow(
    unrolled: Command, words: tuple[object, ...], tmp_path: Path
) -> None:
    parts = load_file(tmp_path / "w.safetensors")
    save_file(parts | {"rnn.weight_hh_l0": 4 * parts["rnn.weight_hh_l0"]}, tmp_path / "w.safetensors")
    text = " ".join([LONG] * 4)
    done = unrolled(*words, text, "--expansion", "operating", "--html", tmp_path / "page.html")
    assert done.status == 0, done.err
    assert (tmp_path / "page.html").exists()
    assert "overflow" in done.out.splitlines()[-1]
