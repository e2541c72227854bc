"""Texts of two computers, of which one composes accents and one does not: one model, the same numbers."""

from __future__ import annotations

import csv
import json
import unicodedata
from pathlib import Path

import pytest

APART, ONE = "cafe\u0301", "caf\u00e9"
GOOD = "ge\u0301nial"


@pytest.fixture
def trained(unrolled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Path("reviews.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["te\u0301xte", "label"])
        for number in range(60):
            place = (APART, ONE)[number % 3 == 0]
            writer.writerow(
                [f"the {place} of day {number} is {('bad', 'good')[number % 2]}", ("bad", GOOD)[number % 2]]
            )
    words = ["--text-column", "t\u00e9xte", "--epochs", "1", "--hidden", "4", "--out", "run"]
    done = unrolled("train", "classify", "--data", "reviews.csv", *words)
    assert done.status == 0, done.err
    return done


def test_both_forms_have_the_same_numbers_and_are_shown_as_they_were_typed(unrolled, trained):
    assert "1 word of the training text is not written in Unicode's form NFC, such as 'cafe\\u0301'" in trained.err
    records = []
    for form in (APART, ONE):
        assert unrolled("explain", "run", f"the {form} is good", "--json", "x.json", "--force").status == 0
        records.append(json.loads(Path("x.json").read_text(encoding="utf-8"))["accounts"][0])
    assert records[0]["ledger"] == records[1]["ledger"]
    assert [record["tokens"][1] for record in records] == [APART, ONE]
    assert [record["notes"] for record in records] == [[], []]


@pytest.mark.slow
@pytest.mark.usefixtures("trained")
def test_phrases_of_both_forms_are_one_row(unrolled):
    words = ["--target", "bad", "--phrases", "phrases.csv"]
    assert unrolled("explain", "run", "--file", "reviews.csv", "--text-column", "t\u00e9xte", *words).status == 0
    with Path("phrases.csv").open(newline="", encoding="utf-8") as file:
        found = [row for row in csv.DictReader(file) if row["text"].startswith("caf")]
    assert [row["text"] for row in found if " " not in row["text"]] == [ONE]
    assert {row["texts"] for row in found if " " not in row["text"]} == {"60"}


@pytest.mark.usefixtures("trained")
def test_a_label_is_found_however_it_is_typed(unrolled):
    composed = unicodedata.normalize("NFC", GOOD)
    first, second = (unrolled("explain", "run", "a good day", "--target", label) for label in (GOOD, composed))
    assert (first.status, first.out) == (second.status, second.out) == (0, first.out)
    unrolled("explain", "run", "a good day", "--target", "genial").assert_refused(2, "unknown class 'genial'")
