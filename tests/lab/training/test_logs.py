"""The log says once as lines and once as a table what happened."""

from __future__ import annotations

import csv
import json

import pytest

from unrolled.errors import DataError
from unrolled.lab.training.logs import read_history


def test_the_table_and_the_log_say_the_same(trained):
    lines = [json.loads(line) for line in (trained.folder / "log.jsonl").read_text().splitlines()]
    rows = list(csv.DictReader((trained.folder / "log.csv").read_text().splitlines()))
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert {name: json.loads(cell) for name, cell in row.items() if cell} == line
    epochs = [line for line in lines if "best" in line]
    assert len(epochs) == trained.metrics["epochs"]
    steps = [line["step"] for line in lines if "best" not in line]
    assert steps == list(range(4, trained.metrics["steps"] + 1, 4))
    times = [json.loads(line) for line in (trained.folder / "times.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in times] == list(range(1, trained.metrics["epochs"] + 1))
    assert all(line["training"] > 0 and line["evaluation"] > 0 for line in times)


@pytest.mark.parametrize("line", ["{", "[]", '{"best": true}', '{"step": "a", "best": 1}', "3"])
def test_a_line_that_is_none_of_a_log_is_named(tmp_path, line):
    good = '{"step": 1, "epoch": 1, "loss": 0.5, "norm": 1.0, "lr": 0.1}'
    with pytest.raises(DataError, match=r"log\.jsonl:2: not a line of a log"):
        read_history(tmp_path / "log.jsonl", f"{good}\n{line}\n")
