from __future__ import annotations

import json

import pytest

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.vocabulary import PADDING, UNKNOWN, Vocabulary

TEXTS = [("b", "a", "B"), ("c", "a", "<unk>"), ("d", "b")]


def test_frequent_words_come_first_and_equals_in_alphabetical_order():
    assert Vocabulary.from_texts(TEXTS).words == ("<pad>", "<unk>", "a", "b", "B", "c", "d")


def test_the_order_of_the_texts_does_not_matter():
    assert Vocabulary.from_texts(TEXTS) == Vocabulary.from_texts(TEXTS[::-1])


def test_case_is_ignored_only_when_asked():
    folded = Vocabulary.from_texts(TEXTS, lowercase=True)
    assert folded.words == ("<pad>", "<unk>", "b", "a", "c", "d")
    assert folded.encode(["B", "b"]) == [2, 2]
    assert Vocabulary.from_texts(TEXTS).encode(["B", "b"]) == [4, 3]


def test_rare_words_can_be_left_out():
    assert Vocabulary.from_texts(TEXTS, min_count=2).words == ("<pad>", "<unk>", "a", "b")
    with pytest.raises(UsageError, match="min_count is 0; expected 1 or more"):
        Vocabulary.from_texts(TEXTS, min_count=0)


def test_decoding_undoes_encoding_of_known_words():
    vocabulary = Vocabulary.from_texts(TEXTS)
    assert vocabulary.decode(vocabulary.encode(["d", "a", "B"])) == ["d", "a", "B"]


@pytest.mark.parametrize("index", [-1, 7])
def test_an_index_without_a_word_is_refused(index):
    with pytest.raises(UsageError, match=rf"no word has index {index}; expected 0 to 6"):
        Vocabulary.from_texts(TEXTS).decode([index])


def test_unknown_words_are_named_once_in_order():
    vocabulary = Vocabulary.from_texts(TEXTS)
    assert vocabulary.unknown(["z", "a", "y", "z"]) == ("z", "y")
    assert vocabulary.encode(["z", "a"])[0] == UNKNOWN
    assert "a" in vocabulary
    assert "z" not in vocabulary


@pytest.mark.parametrize("word", ["<pad>", "<unk>"])
def test_a_text_cannot_say_padding_or_unknown(word):
    vocabulary = Vocabulary.from_texts(TEXTS)
    assert PADDING not in vocabulary.encode([word])
    assert vocabulary.unknown([word]) == (word,)


def test_a_recorded_vocabulary_comes_back():
    vocabulary = Vocabulary.from_texts([("naïve", 'a"b', "<script>", "2\u00a01/2")], lowercase=True)
    assert Vocabulary.from_record(json.loads(json.dumps(vocabulary.to_record()))) == vocabulary


def test_what_is_not_a_vocabulary_is_refused_in_one_line():
    record = Vocabulary.from_texts(TEXTS).to_record()
    broken = {
        "not a vocabulary;": ["a", "b"],
        "version 2; expected 1": {**record, "version": 2},
        'expected "words" to be a list of strings': {**record, "words": [1]},
        '"lowercase" is 1; expected true or false': {**record, "lowercase": 1},
        "expected \\['<pad>', '<unk>'\\]": {**record, "words": ["a"]},
        "the word 'a' twice": {**record, "words": ["<pad>", "<unk>", "a", "a"]},
    }
    for message, found in broken.items():
        with pytest.raises(DataError, match=message) as caught:
            Vocabulary.from_record(found)
        assert "\n" not in str(caught.value)
