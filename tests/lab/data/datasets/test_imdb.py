from __future__ import annotations

import json
import lzma
from collections import Counter

import pytest

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.datasets.imdb import Imdb
from unrolled.lab.data.json_lines import read_json_objects


def review(number):
    text = f"Not good.<br /><br />It isn't\u0085number {number}."
    return {"id": number, "label": number % 2, "rating": 3, "text": text}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "imdb").mkdir()
    for split, count in (("train", 40), ("test", 6)):
        lines = "".join(json.dumps(review(i), ensure_ascii=False) + "\n" for i in range(count))
        (tmp_path / "imdb" / f"{split}.jsonl.xz").write_bytes(lzma.compress(lines.encode()))
    return tmp_path


def test_reviews_lose_their_line_breaks_and_a_tenth_is_kept_for_dev(folder):
    dataset = Imdb().read(folder)
    assert [len(split) for split in (dataset.train, dataset.dev, dataset.test)] == [36, 4, 6]
    assert dataset.labels == ("negative", "positive")
    examples = (*dataset.train, *dataset.dev)
    assert sorted(int(example.tokens[7]) for example in examples) == list(range(40))
    for example in (*examples, *dataset.test):
        number = example.tokens[7]
        assert example.tokens == ("Not", "good", ".", "It", "is", "n't", "number", number, ".")
        assert example.label == int(number) % 2
    assert Imdb().read(folder) == dataset


def test_the_first_reviews_of_each_file_can_be_had_alone(folder):
    (folder / "imdb" / "test.jsonl").write_text("".join(json.dumps(review(i)) + "\n" for i in range(10)) + "broken\n")
    dataset = Imdb(reviews=10).read(folder)
    assert sorted(int(example.tokens[7]) for example in (*dataset.train, *dataset.dev)) == list(range(10))
    assert [int(example.tokens[7]) for example in dataset.test] == list(range(10))
    with pytest.raises(DataError):
        Imdb(reviews=11).read(folder)
    with pytest.raises(UsageError, match="0 reviews were asked for; expected 1 or more"):
        Imdb(reviews=0)


@pytest.mark.parametrize(
    "change", [{"label": 2}, {"label": "1"}, {"label": None}, {"text": 5}, {"text": None}], ids=str
)
def test_what_is_no_review_is_named(folder, change):
    (folder / "imdb" / "test.jsonl").write_text(json.dumps(review(1)) + "\n" + json.dumps(review(2) | change) + "\n")
    with pytest.raises(DataError, match=r'test\.jsonl:2: expected a "text" and a "label", 0 or 1, found \{"id": 2'):
        Imdb().read(folder)


@pytest.mark.data
def test_the_real_reviews_have_the_published_counts(data_folder):
    words, distinct = {}, {}
    for split in ("train", "test"):
        texts = [record["text"] for _, record in read_json_objects(data_folder / "imdb" / f"{split}.jsonl.xz")]
        words[split] = sum(len(text.split()) for text in texts)
        distinct[split] = len(set(texts))
    assert words == {"train": 5_844_373, "test": 5_712_457}
    assert distinct == {"train": 24_904, "test": 24_801}

    dataset = Imdb().read(data_folder)
    assert [len(split) for split in (dataset.train, dataset.dev, dataset.test)] == [22_500, 2_500, 25_000]
    assert Counter(example.label for example in (*dataset.train, *dataset.dev)) == {0: 12_500, 1: 12_500}
    assert Counter(example.label for example in dataset.test) == {0: 12_500, 1: 12_500}
    breaks = sum(window == ("<", "br") for e in dataset.dev for window in zip(e.tokens, e.tokens[1:], strict=False))
    assert breaks == 0
