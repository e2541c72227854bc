from __future__ import annotations

import pytest

from unrolled.corpora import load_dataset
from unrolled.datasets import DATASETS
from unrolled.errors import FileError, UnknownNameError, UsageError
from unrolled.text.corpus import Classification, Regression, Relations


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("".join(f"<e1>text</e1> of <e2>day</e2> {i}\t{i % 2}\n" for i in range(20)))
    return path


@pytest.mark.parametrize("kind", [Classification, Regression, Relations])
def test_a_dataset_is_a_name_or_files_of_the_users(mine, kind):
    corpus = load_dataset([mine], kind)
    assert type(corpus) is kind
    assert corpus == load_dataset(str(mine), kind)
    assert [len(split) for split in (corpus.train, corpus.dev, corpus.test)] == [16, 2, 2]
    assert len(load_dataset([mine], kind, test=[mine]).test) == 20
    assert len(load_dataset([mine], kind, dev=[mine], test=[mine]).train) == 20
    mine.rename(mine.with_name("mine"))
    assert load_dataset(str(mine.with_name("mine")), kind, format="tsv").train == corpus.train


def test_a_name_is_looked_up_among_the_datasets():
    assert load_dataset("negation", Classification).name == "negation"
    assert load_dataset(["negation"], Classification) == load_dataset("negation", Classification)
    with pytest.raises(UnknownNameError, match="unknown dataset 'sst3'; did you mean 'sst"):
        load_dataset("sst3", Classification)
    with pytest.raises(FileError, match=r"nowhere\.tsv: cannot be read"):
        load_dataset("nowhere.tsv", Classification)


def test_a_dataset_of_another_kind_is_refused_before_it_is_read(tmp_path):
    said = "sst2 is a corpus for classification; expected one for regression: .*sst-regression"
    with pytest.raises(UsageError, match=said):
        load_dataset("sst2", Regression, tmp_path)
    with pytest.raises(
        UsageError, match=r"negation is a corpus for classification; expected one for relations: .*semeval"
    ):
        load_dataset("negation", Relations)
    with pytest.raises(FileError, match=r"no semeval2010_task8/TRAIN_FILE\.TXT"):
        load_dataset("semeval2010", Classification, tmp_path)
    assert issubclass(DATASETS.get("semeval2010").kind, Classification)


def test_a_dataset_with_splits_of_its_own_takes_no_files(mine):
    said = "negation is a dataset with splits of its own; expected no file beside it, found .*mine"
    with pytest.raises(UsageError, match=said):
        load_dataset("negation", Classification, test=[mine])
    with pytest.raises(UsageError, match=said):
        load_dataset(["negation", mine], Classification)
