from __future__ import annotations

import re
from collections import Counter

import pytest

from unrolled.errors import DataError
from unrolled.lab.data.datasets.semeval import RELATIONS, SemEval2010
from unrolled.lab.data.tokenise import ENTITY_MARKERS


def block(number, relation):
    comment = "Comment: not <e1>this</e1>" if number % 3 else "Comment:"
    return f'{number}\t"Day {number}: the <e1>fire</e1> of a <e2>spark</e2>."\n{relation}\n{comment}\n\n'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "semeval2010_task8").mkdir()
    labels = ["Other", "Cause-Effect(e2,e1)", "Product-Producer(e1,e2)"]
    train = [block(i, labels[i % 2]) for i in range(29)] + [block(29, labels[2])]
    (tmp_path / "semeval2010_task8" / "TRAIN_FILE.TXT").write_text("".join(train))
    (tmp_path / "semeval2010_task8" / "TEST_FILE_FULL.TXT").write_text("".join(block(i, "Other") for i in range(4)))
    return tmp_path


def test_sentences_are_read_with_their_markers_and_a_tenth_is_kept_for_dev(folder):
    dataset = SemEval2010().read(folder)
    assert [len(split) for split in (dataset.train, dataset.dev, dataset.test)] == [27, 3, 4]
    assert " ".join(dataset.test[3].tokens) == "Day 3 : the <e1> fire </e1> of a <e2> spark </e2> ."
    counts = Counter(dataset.labels[example.label] for example in (*dataset.train, *dataset.dev))
    assert counts == {"Other": 15, "Cause-Effect(e2,e1)": 14, "Product-Producer(e1,e2)": 1}
    assert "Product-Producer(e1,e2)" in {dataset.labels[example.label] for example in dataset.train}


def test_there_are_nine_relations_in_two_directions_and_other(folder):
    labels = SemEval2010().read(folder).labels
    assert len(set(labels)) == 19
    assert {re.sub(r"\(e[12],e[12]\)$", "", label) for label in labels} == {*RELATIONS, "Other"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('1\t"Day', "1 Day", r":5: expected number<TAB>\"sentence\", found '1 Day 1: the"),
        ("</e1>", "", r":1: expected <e1>…</e1> and <e2>…</e2>, once each and apart, found <e1> <e2> </e2>"),
        ("Other\n", "other\n", r":2: expected one of the 19 relations, found 'other'; an example is four lines"),
        ("Other\n", "", r":2: expected one of the 19 relations, found 'Comment:'; an example is"),
        ("Comment:\n\n", "Comment:\n", r":3: expected Comment: and an empty line, found 'Comment:'; an example is"),
    ],
)
def test_what_is_no_example_is_named(folder, old, new, message):
    path = folder / "semeval2010_task8" / "TEST_FILE_FULL.TXT"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=r"TEST_FILE_FULL\.TXT" + message):
        SemEval2010().read(folder)


def test_a_file_that_stops_short_is_named(folder):
    path = folder / "semeval2010_task8" / "TEST_FILE_FULL.TXT"
    path.write_text(block(1, "Other") + '2\t"A <e1>b</e1> <e2>c</e2>"\n')
    with pytest.raises(DataError, match=r"TEST_FILE_FULL\.TXT:6: expected one of the 19 relations, found ''"):
        SemEval2010().read(folder)


@pytest.mark.data
def test_the_real_sentences_have_the_published_counts(data_folder):
    dataset = SemEval2010().read(data_folder)
    assert [len(split) for split in (dataset.train, dataset.dev, dataset.test)] == [7_200, 800, 2_717]
    train, test = (
        Counter(dataset.labels[example.label] for example in split)
        for split in (dataset.train + dataset.dev, dataset.test)
    )
    assert (len(train), len(test)) == (19, 19)
    assert (train["Other"], test["Other"]) == (1_410, 454)
    assert (train["Entity-Destination(e2,e1)"], test["Entity-Destination(e2,e1)"]) == (1, 1)
    for example in (*dataset.train, *dataset.dev, *dataset.test):
        assert tuple(token for token in example.tokens if token in ENTITY_MARKERS) == ENTITY_MARKERS
