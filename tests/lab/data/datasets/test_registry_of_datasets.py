from __future__ import annotations

from pathlib import Path

import pytest

from unrolled.errors import UnknownNameError, UsageError
from unrolled.lab.data import datasets
from unrolled.lab.data.corpus import Classification, Corpus, Example
from unrolled.lab.data.datasets import DATASETS


def test_the_datasets_are_found_by_listing_the_folder():
    assert {"negation", "sst2", "sst-regression", "uci-yelp"} <= set(DATASETS.names())
    written_in = {source.__module__.rpartition(".")[2] for source in DATASETS.members.values()}
    assert written_in == {path.stem for path in Path(datasets.__file__).parent.glob("*.py")} - {"__init__"}


@pytest.mark.parametrize("name", DATASETS.names())
def test_each_says_what_it_is_on_what_terms_and_whose(name):
    source = DATASETS.get(name)
    for text in (source.description, source.licence, source.citation):
        assert text
        assert "\n" not in text
    assert issubclass(source.kind, Corpus)


def test_a_wrong_name_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="unknown dataset 'negations'; did you mean 'negation'"):
        DATASETS.get("negations")


def test_a_sample_is_of_the_training_texts_only_and_the_same_for_the_same_seed():
    examples = tuple(Example((str(i),), 0) for i in range(20))
    dataset = Classification(name="d", labels=("a", "b"), train=examples, dev=examples[:5], test=examples[5:9])
    some = dataset.sample(6, seed=1)
    assert len(some.train) == 6
    assert set(some.train) < set(examples)
    assert (some.dev, some.test) == (dataset.dev, dataset.test)
    assert some == dataset.sample(6, seed=1) != dataset.sample(6, seed=2)
    assert len(dataset.sample(100).train) == 20
    with pytest.raises(UsageError, match="0 training examples were asked for; expected 1 or more"):
        dataset.sample(0)
