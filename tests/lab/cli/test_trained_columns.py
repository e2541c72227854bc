"""New files with several columns of text: the column of the training is read, and what was read is said."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path

import pytest

import unrolled as library

LONG = "the film that many people saw on that day with all of their friends was".split()


def rows(count, seed):
    draw = random.Random(seed)
    for number in range(count):
        label = draw.choice(("no", "yes"))
        summary = f"{'dull' if label == 'no' else 'great'} film number {number}"
        yield {"body": " ".join(draw.choices(LONG, k=25)), "summary": summary, "verdict": label, "day": "2024-01-01"}


def write(path, given):
    with Path(path).open("w", newline="") as file:
        writer = csv.DictWriter(file, given[0])
        writer.writeheader()
        writer.writerows(given)


NEW = list(rows(8, 1))


@pytest.fixture(autouse=True)
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("new.csv", NEW)
    Path("new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in NEW))


@pytest.fixture(params=["named", "found"])
def run(request, unrolled):
    """A run whose texts are in the column summary: named so on its command line, or the only text of its file."""
    given, options = list(rows(60, 0)), ["--text-column", "summary", "--label-column", "verdict"]
    if request.param == "found":
        given, options = [{key: row[key] for key in ("summary", "verdict", "day")} for row in given], []
    write("train.csv", given)
    small = ["--hidden", "8", "--embedding", "8", "--epochs", "6", "--lr", "0.03", "--batch", "16"]
    done = unrolled("train", "classify", "--data", "train.csv", "--out", "r", *small, *options)
    assert done.status == 0, done.err
    return library.load("r")


@pytest.mark.parametrize("file", ["new.csv", "new.jsonl"])
def test_predict_evaluate_and_explain_read_the_column_of_the_training(run, unrolled, file):
    done = unrolled("predict", "r", file)
    table = list(csv.DictReader(io.StringIO(done.out)))
    summaries = [row["summary"] for row in NEW]
    assert [row["text"] for row in table] == summaries
    assert [row["predicted"] for row in table] == run.predict(summaries).tolist()
    assert f"{file}: texts from 'summary'" in done.err
    explained = unrolled("explain", "r", "--file", file)
    assert all(summary in explained.out for summary in summaries)
    assert f"{file}: texts from 'summary'" in explained.err
    evaluated = unrolled("evaluate", "r", "--data", file)
    share = run.score(summaries, [row["verdict"] for row in NEW])
    assert f"accuracy {share:.2%}" in evaluated.out
    assert f"{file}: texts from 'summary', labels from 'verdict'" in evaluated.err


def test_a_column_that_is_named_comes_first(run, unrolled):
    done = unrolled("predict", "r", "new.csv", "--text-column", "body")
    assert [row["text"] for row in csv.DictReader(io.StringIO(done.out))] == [row["body"] for row in NEW]
    assert "texts from" not in done.err
    assert run.predict_proba([NEW[0]["body"]]).sum() == pytest.approx(1)


@pytest.mark.usefixtures("run")
def test_a_file_without_that_column_is_read_by_what_it_holds_and_that_is_said(unrolled):
    write("other.csv", [{"comment": row["body"], "day": row["day"]} for row in NEW])
    done = unrolled("predict", "r", "other.csv")
    assert done.status == 0
    assert "other.csv: texts from 'comment'" in done.err
    write("plain.csv", [{"text": row["summary"], "day": row["day"]} for row in NEW])
    assert unrolled("predict", "r", "plain.csv").err == ""


@pytest.mark.usefixtures("run")
def test_rows_of_another_width_are_told_from_rows_without_a_text(unrolled):
    Path("ragged.csv").write_text("summary,more\ngreat film indeed,1\ngreat, but long,2\n,3\ndull plot,4\n")
    done = unrolled("predict", "r", "ragged.csv")
    assert [bool(row["predicted"]) for row in csv.DictReader(io.StringIO(done.out))] == [True, False, False, True]
    assert "ragged.csv: 1 row with more or fewer columns than 2, read as without a text (line 3)" in done.err
    assert "2 texts without a word have no prediction (ragged.csv: lines 3-4)" in done.err
