"""Texts that are longer than what is read: the predictions and the page speak of what the model read."""

from __future__ import annotations

import csv
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest

import unrolled as library


@pytest.fixture
def run(unrolled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    words = {"no": ("dull", "awful"), "yes": ("great", "lovely")}
    with Path("long.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "label"))
        for number in range(60):
            label = draw.choice(("no", "yes"))
            tail = " ".join(draw.choice(words[draw.choice(("no", "yes"))]) for _ in range(12))
            writer.writerow((f"film {number} is {draw.choice(words[label])} , {tail}", label))
    small = ["--hidden", "4", "--embedding", "4", "--epochs", "1", "--max-length", "5"]
    done = unrolled("train", "classify", "--data", "long.csv", "--out", "r", *small)
    assert done.status == 0, done.err
    return library.load("r")


def probabilities(row):
    return [float(row["p(no)"]), float(row["p(yes)"])]


def test_the_text_of_a_prediction_is_what_the_model_read(run, unrolled):
    unrolled("evaluate", "r", "--predictions", "p.csv")
    with Path("p.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {len(row["text"].split()) for row in rows} == {5}
    for row in rows:
        assert run.predict_proba([row["text"]])[0] == pytest.approx(probabilities(row), abs=1e-5)
    lines = Path("long.csv").read_text().splitlines()
    whole = lines[int(rows[0]["line"]) - 1].rpartition(",")[0].strip('"')
    assert whole.startswith(rows[0]["text"])
    assert run.predict_proba([whole])[0] != pytest.approx(probabilities(rows[0]), abs=1e-5)


@pytest.mark.usefixtures("run")
def test_files_that_are_not_cut_keep_their_texts(unrolled):
    Path("new.csv").write_text("text,label\nfilm is  dull,no\nfilm is great but dull and long,yes\na b c d e,no\n")
    done = unrolled("evaluate", "r", "--data", "new.csv", "--predictions", "p.csv")
    assert "1 of the 3 examples have more tokens than the 5 of --max-length; they are read whole" in done.err
    with Path("p.csv").open(newline="") as file:
        assert [row["text"] for row in csv.DictReader(file)] == [
            "film is  dull",
            "film is great but dull and long",
            "a b c d e",
        ]


def shares_on_page(path):
    found = re.findall(r'"probabilities":(\[[^\]]*\])', Path(path).read_text())
    return [json.loads(each) for each in found]


@pytest.mark.usefixtures("run")
def test_the_page_shows_the_probabilities_that_were_predicted(unrolled):
    said = unrolled("evaluate", "r", "--predictions", "p.csv", "--html", "e.html").out
    assert "page: e.html" in said
    with Path("p.csv").open(newline="") as file:
        wrong = [row for row in csv.DictReader(file) if row["label"] != row["predicted"]]
    shown = shares_on_page("e.html")
    assert len(shown) == len(wrong) > 0
    assert np.sort(shown, axis=0) == pytest.approx(np.sort([probabilities(row) for row in wrong], axis=0), abs=1e-4)


def test_the_page_says_where_it_explains_less_than_the_whole_text(run, unrolled):
    text = " ".join(["film", "dull", "great"] * 200)
    label = "no" if run.predict([text])[0] == "yes" else "yes"
    Path("new.csv").write_text(f"text,label\n{text},{label}\nfilm is dull,{label}\n")
    unrolled("evaluate", "r", "--data", "new.csv", "--html", "e.html", "--force")
    share = run.predict_proba([text])[0].max()
    page = Path("e.html").read_text()
    assert "the first 400 of 600 words are explained" in page
    assert "the first 400 of 3 words" not in page
    assert f"of the whole text the model says {run.predict([text])[0]} ({share:.0%})" in page
