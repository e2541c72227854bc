from __future__ import annotations

from collections import Counter

import pytest

from unrolled.errors import DataError
from unrolled.lab.data.datasets.uci import UciAmazon, UciImdb, UciYelp


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "uci_sentiment").mkdir()
    lines = "".join(f"It \"isn't\u0085{i}.  \t{i % 2}\n" for i in range(30))
    (tmp_path / "uci_sentiment" / "yelp_labelled.txt").write_text(lines, encoding="utf-8")
    return tmp_path


def test_sentences_are_cut_at_the_last_tab_and_split_8_1_1(folder):
    dataset = UciYelp().read(folder)
    assert [len(split) for split in (dataset.train, dataset.dev, dataset.test)] == [24, 3, 3]
    assert dataset.labels == ("negative", "positive")
    examples = (*dataset.train, *dataset.dev, *dataset.test)
    assert sorted(int(example.tokens[4]) for example in examples) == list(range(30))
    for example in examples:
        assert example.tokens == ("It", "``", "is", "n't", example.tokens[4], ".")
        assert example.label == int(example.tokens[4]) % 2
    assert UciYelp().read(folder) == dataset


@pytest.mark.parametrize("line", ["no tab 1", "two\t2", "\t1", "", "one\t1 "])
def test_what_is_no_sentence_is_named(folder, line):
    path = folder / "uci_sentiment" / "yelp_labelled.txt"
    path.write_text(f"fine\t1\n{line}\n")
    with pytest.raises(DataError, match=r"yelp_labelled\.txt:2: expected sentence<TAB>0 or 1, found '.*'; check that"):
        UciYelp().read(folder)


@pytest.mark.data
@pytest.mark.parametrize("source", [UciAmazon, UciImdb, UciYelp])
def test_the_real_files_have_the_published_counts(data_folder, source):
    dataset = source().read(data_folder)
    assert [len(split) for split in (dataset.train, dataset.dev, dataset.test)] == [800, 100, 100]
    examples = (*dataset.train, *dataset.dev, *dataset.test)
    assert Counter(example.label for example in examples) == {0: 500, 1: 500}
