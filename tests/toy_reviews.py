"""Made-up film reviews with negations, as a user's file, and a small network that the command line trains on them."""

from __future__ import annotations

import csv
import random
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO

import pytest

from unrolled.cli.main import run

__all__ = ["beside_reviews", "review_rows", "reviews"]

GOOD, BAD = ("great", "lovely", "witty"), ("dull", "awful", "weak")


def review_rows(count=300, seed=0):
    drawn = random.Random(seed)
    for number in range(count):
        good, negated = drawn.random() < 0.5, drawn.random() < 0.3
        adjective = drawn.choice(GOOD if good else BAD)
        text = f"the film of day {number} was {'not ' if negated else ''}{adjective}, said we"
        yield {"id": number, "review": text, "sentiment": "good" if good != negated else "bad", "date": "2024-01-01"}


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """The folder with reviews.csv and the trained runs/reviews."""
    folder = tmp_path_factory.mktemp("reviews")
    with (folder / "reviews.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "review", "sentiment", "date"])
        writer.writeheader()
        writer.writerows(review_rows())
    words = ["train", "classify", "--data", "reviews.csv", "--epochs", "2", "--hidden", "8", "--out", "runs/reviews"]
    with chdir(folder), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        assert run(words) == 0
    return folder


@pytest.fixture
def beside_reviews(reviews, monkeypatch, tmp_path):
    """A working folder of the test's own that has the file and the run."""
    monkeypatch.chdir(tmp_path)
    for name in ("reviews.csv", "runs"):
        (tmp_path / name).symlink_to(reviews / name)
