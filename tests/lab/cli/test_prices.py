"""Ratings in a unit of their own: prices are learned, and every number about them is in that unit."""

from __future__ import annotations

import csv
import random
import re
from pathlib import Path

import numpy as np
import pytest

WORTH = {"tiny": 1, "small": 2, "medium": 3, "large": 4, "huge": 5}


@pytest.fixture(scope="module")
def prices():
    draw = random.Random(5)  # not 0, whose numbers choose the examples of dev and test
    words = draw.choices(list(WORTH), k=200)
    return [(f"a {word} house", 123_456.78 * WORTH[word] + draw.gauss(0, 9000)) for word in words]


def test_the_errors_of_prices_are_those_of_the_predictions_and_small(prices, unrolled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Path("houses.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "rating"), *((text, repr(price)) for text, price in prices)])
    small = ["--hidden", "8", "--embedding", "8", "--dropout", "0", "--word-dropout", "0"]
    longer = ["--epochs", "25", "--batch", "16", "--lr", "0.02"]
    done = unrolled("train", "regress", "--data", "houses.csv", "--out", "r", *small, *longer)
    assert done.status == 0, done.err
    said = unrolled("evaluate", "r", "--predictions", "p.csv").out.splitlines()[0]
    with Path("p.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    true, found = (np.array([float(row[key]) for row in rows]) for key in ("label", "predicted"))
    assert true.tolist() == [prices[int(row["line"]) - 2][1] for row in rows]  # the labels keep their digits
    errors = found - true
    mse, mae = np.square(errors).mean(), np.abs(errors).mean()
    correlation = np.corrcoef(true, found)[0, 1]
    assert said == f"houses, test ({len(rows)}): mse {mse:.4g}, mae {mae:.4g}, pearson {correlation:.4g}"
    assert mse < 0.2 * np.var(true)
    assert correlation > 0.9
    unrolled("explain", "r", "a tiny house", "--target", 1).assert_refused(2, "the model has one output")
    unrolled("evaluate", "r", "--errors", 2).assert_refused(2, "--errors shows errors of classes")


def test_the_loss_of_a_training_names_its_unit_where_the_metric_has_another(prices, unrolled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, scale in {"prices": 1.0, "stars": 1e-5}.items():
        with Path(f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("text", "rating"), *((text, scale * price) for text, price in prices)])
    tags = "\n\n".join("Ann S-PER\nleft O\nthe O\ntown O" for _ in range(20))
    Path("names.conll").write_text(f"{tags}\n")
    small = ["--hidden", "4", "--embedding", "4", "--dropout", "0", "--word-dropout", "0", "--epochs", "1"]

    def losses(task, data, *more):
        done = unrolled("train", task, "--data", data, "--out", f"{data}{len(more)}", *small, *more)
        (line,) = (line for line in done.err.splitlines() if line.startswith("epoch"))
        numbers = re.search(r"(train loss.*?) ([\d.]+)  dev", line)
        return numbers[1], float(numbers[2]), float(re.search(r"dev (?:mse|loss) ([\d.e+]+)", line)[1])

    name, loss, mse = losses("regress", "prices.csv")
    assert name == "train loss (mse / 1e+10)"
    assert loss == pytest.approx(mse / 1e10, rel=0.5)
    name, loss, mse = losses("regress", "stars.csv")
    assert name == "train loss"
    assert loss == pytest.approx(mse, rel=0.5)
    still = ("--lr", "1e-9")
    name, loss, of_token = losses("tag", "names.conll", *still)
    assert name == "train loss of a sentence"
    assert loss == pytest.approx(4 * of_token, rel=0.02)
    name, loss, of_token = losses("tag", "names.conll", "--no-crf", *still)
    assert name == "train loss"
    assert loss == pytest.approx(of_token, rel=0.02)
