from __future__ import annotations

import pytest

from unrolled.datasets.tsv import read_tsv
from unrolled.errors import DataError


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


def test_texts_are_cut_at_the_last_tab_tokenised_and_split_8_1_1(tmp_path):
    lines = [f'It isn\'t "{i}"\tyes\t{"good" if i % 2 else "bad"}' for i in range(50)]
    dataset = read_tsv(write(tmp_path / "mine.tsv", lines))
    assert dataset.name == "mine"
    assert dataset.labels == ("bad", "good")
    assert [len(split) for split in (dataset.train, dataset.dev, dataset.test)] == [40, 5, 5]
    examples = (*dataset.train, *dataset.dev, *dataset.test)
    assert len({example.tokens for example in examples}) == 50
    for example in examples:
        assert example.tokens[:4] == ("It", "is", "n't", "``")
        assert example.tokens[5:] == ("''", "yes")
        assert example.label == int(example.tokens[4]) % 2


def test_the_split_is_the_same_every_time(tmp_path):
    path = write(tmp_path / "mine.tsv", [f"text {i}\t{i % 3}" for i in range(30)])
    assert read_tsv(path) == read_tsv(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no tab at all", r"mine\.tsv:3: expected text<TAB>label, found 'no tab at all'"),
        ("no label\t", r"mine\.tsv:3: expected text<TAB>label"),
        ("\tlabel", r"mine\.tsv:3: expected text before the tab, found none"),
        ("", r"mine\.tsv:3: expected text<TAB>label, found ''"),
    ],
)
def test_a_line_that_is_no_labelled_text_is_named(tmp_path, line, message):
    with pytest.raises(DataError, match=message):
        read_tsv(write(tmp_path / "mine.tsv", ["a\tx", "b\ty", line]))


def test_too_few_texts_or_classes_are_refused(tmp_path):
    with pytest.raises(DataError, match="9 texts of 3 classes; expected at least 10 texts of 2 classes"):
        read_tsv(write(tmp_path / "a.tsv", [f"t\t{i % 3}" for i in range(9)]))
    with pytest.raises(DataError, match="20 texts of 1 classes"):
        read_tsv(write(tmp_path / "a.tsv", ["t\tx"] * 20))
