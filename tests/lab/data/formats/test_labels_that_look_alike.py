"""Labels that a person cannot tell apart: one label where Unicode says so, else a note."""

from __future__ import annotations

import json

import pytest

from unrolled.lab.data.corpus import Classification
from unrolled.lab.data.formats import read_files, read_split
from written_tables import review, save


def test_labels_that_look_the_same_are_told(tmp_path):
    labels = ("pos", "pos\u200b", "so so", "so  so", "so\xa0so", "soso")
    path = save(tmp_path, "a.tsv", "".join(f"{review(n)}\t{labels[n % 6]}\n" for n in range(60)))
    (said,) = read_files(Classification, [path]).notes
    same = r"'pos' and 'pos\u200b', 'so  so' and 'so so' and 'so\xa0so'"
    assert said == f"{path}: labels that look the same are different labels: {same}"


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_a_label_whose_accents_are_written_in_two_ways_is_one_label(tmp_path, suffix):
    one, apart, other = "caf\u00e9", "cafe\u0301", "cafe"
    labels = [(one, apart, other)[n % 3] for n in range(60)]
    if suffix == "jsonl":
        lines = [json.dumps({"text": f"film number {n}", "label": label}) for n, label in enumerate(labels)]
    else:
        lines = [f"film number {n}{',' if suffix == 'csv' else chr(9)}{label}" for n, label in enumerate(labels)]
    path = save(tmp_path, f"a.{suffix}", "".join(f"{line}\n" for line in lines))
    corpus = read_files(Classification, [path])
    assert corpus.labels == (other, one)
    assert corpus.notes == ()
    examples = (*corpus.train, *corpus.dev, *corpus.test)
    assert {each.text: each.label for each in examples} == {f"film number {n}": int(n % 3 != 2) for n in range(60)}
    for known in ((other, one), (other, apart)):  # a run of an earlier version may have either
        assert [each.label for each in read_split(Classification, [path], known).examples] == [1, 1, 0] * 20
    both = read_split(Classification, [path], (other, one, apart)).examples
    assert [each.label for each in both] == [1, 1, 0] * 20
