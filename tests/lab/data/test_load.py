from __future__ import annotations

import re

import pytest

from unrolled.errors import FileError, UnknownNameError, UsageError
from unrolled.lab.data.corpus import Brackets, Classification, Regression, Relations
from unrolled.lab.data.datasets import DATASETS
from unrolled.lab.data.datasets.dyck import DyckStrings
from unrolled.lab.data.load import is_dataset, load_dataset


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
    said = "negation is a dataset with its own splits; expected no other file, found .*mine"
    with pytest.raises(UsageError, match=said):
        load_dataset("negation", Classification, test=[mine])
    with pytest.raises(UsageError, match=said):
        load_dataset(["negation", mine], Classification)
    with pytest.raises(UsageError, match="--format is for your own files, and negation is a dataset"):
        load_dataset("negation", Classification, format="csv")
    with pytest.raises(UsageError, match=r"negation is a dataset, and .*mine\.tsv is a file"):
        load_dataset([mine, "negation"], Classification)


SIZES = "symbols=(300,100,100)"


def test_a_name_may_have_settings_behind_it():
    said = f"dyck(3,5,seed=2,{SIZES})"
    found = load_dataset(said, Brackets)
    assert (found.kinds, found.depth) == (3, 5)
    assert found == DyckStrings(3, 5, seed=2, symbols=(300, 100, 100)).read()
    assert found == load_dataset(f"dyck(depth=5, kinds=3, seed=2, {SIZES})", Brackets)
    assert found != load_dataset(f"dyck(3,5,seed=1,{SIZES})", Brackets)
    assert load_dataset("negation(seed=0)", Classification) == load_dataset("negation", Classification)
    assert load_dataset("negation(seed=1)", Classification) != load_dataset("negation", Classification)


def test_a_file_with_brackets_in_its_name_is_a_file(mine):
    downloaded = mine.rename(mine.with_name("imdb(1).tsv"))
    assert not is_dataset(downloaded.name)
    assert is_dataset("imdb(1)")
    assert len(load_dataset([downloaded], Classification).train) == 16


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("dyck(2,8,sed=3)", "unknown setting of dyck 'sed'; did you mean 'seed'"),
        ("dyck(2,8", "unknown dataset 'dyck(2,8'; did you mean 'dyck'"),
        ("dyk(2,8)", "unknown dataset 'dyk'; did you mean 'dyck'"),
        ("dyck(2,m)", "dyck(2,m): the settings cannot be read; expected values of kinds, depth, short, long, symbols"),
        ("dyck(2,8)(3)", "dyck(2,8)(3): the settings cannot be read; expected"),
        ("dyck(__import__('os'))", "the settings cannot be read"),
        ("dyck(1,2,3)", "too many positional arguments; expected values of kinds, depth"),
        ("dyck(2,kinds=2)", "multiple values for argument 'kinds'; expected values of"),
        ("dyck(2,8.0)", "dyck(2,8.0): depth is 8.0; expected a valid integer"),
        ("dyck(2,'8')", "dyck(2,'8'): depth is '8'; expected a valid integer"),
        ("dyck(0)", "kinds is 0; expected 1 or more"),
    ],
)
def test_settings_that_cannot_be_are_one_line(data, message):
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        load_dataset(data, Brackets)
    assert "\n" not in str(caught.value)


def test_a_dataset_without_settings_takes_none():
    with pytest.raises(UsageError, match=r"sst2\(3\): sst2 has no settings; pass its name alone"):
        load_dataset("sst2(3)", Classification)
