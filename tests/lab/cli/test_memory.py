"""Memory is bounded by what was asked for: a process of its own says how much it took."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time

import pytest

from peak_memory import MEGABYTES
from unrolled.errors import DataError
from unrolled.lab.training.run_folder import load_run

MEASURED = f"""
import sys
from unrolled.cli.main import run
{MEGABYTES}
status = run(sys.argv[1:])
print(status, megabytes())
"""
GIGABYTE = 1024


def megabytes(*words):
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, words)], capture_output=True, text=True, check=False
    )
    status, peak = done.stdout.splitlines()[-1].split()
    assert status == "0", done.stderr
    return float(peak)


def reviews(path, count, long=0):
    drawn = random.Random(0)
    words = [f"word{number}" for number in range(200)]
    lengths = [long] * bool(long) + [20] * count
    path.write_text("".join(f"{' '.join(drawn.choices(words, k=n))}\t{i % 2}\n" for i, n in enumerate(lengths)))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("length", "most"),
    [
        ((), 1.25),  # 0.8 here; of a text of 50,000 words it was 11 with the short ones padded
        pytest.param(("--max-length", 400), 0.75, marks=pytest.mark.fuzz),
    ],
)
def test_one_text_of_20_000_words_among_240_short_ones_takes_no_gigabytes(tmp_path, length, most):
    path = reviews(tmp_path / "a.tsv", 240, 20_000)
    words = ("train", "classify", "--data", path, "--epochs", 1, "--out", tmp_path / "x")
    assert megabytes(*words, *length) < most * GIGABYTE


def test_a_million_layers_are_refused_before_anything_is_built(unrolled, tmp_path):
    path = reviews(tmp_path / "a.tsv", 40)
    unrolled("train", "classify", "--data", path, "--layers", 10**6, "--out", tmp_path / "x").assert_refused(
        2, "layers is 1000000; expected less than or equal to 1000"
    )
    assert (
        unrolled("train", "classify", "--data", path, "--epochs", 1, "--hidden", 4, "--out", tmp_path / "x").status == 0
    )
    config = json.loads((tmp_path / "x" / "config.json").read_text())
    config["architecture"]["layers"] = 10**6
    config["checksum"] = None
    (tmp_path / "x" / "config.json").write_text(json.dumps(config))
    began = time.process_time()
    with pytest.raises(DataError, match=r"config\.json: layers is 1000000; expected less than or equal to 1000"):
        load_run(tmp_path / "x")
    assert time.process_time() - began < 60  # a GRU of a million layers takes minutes and gigabytes
    unrolled("evaluate", tmp_path / "x").assert_refused(65, "layers is 1000000")
