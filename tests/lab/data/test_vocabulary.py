from __future__ import annotations

import json

import pytest

from unrolled.errors import DataError, FileError, UsageError
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


def test_a_saved_vocabulary_comes_back(tmp_path):
    vocabulary = Vocabulary.from_texts([("naïve", 'a"b', "<script>", "2\u00a01/2")], lowercase=True)
    vocabulary.save(tmp_path / "v.json")
    assert Vocabulary.load(tmp_path / "v.json") == vocabulary


def test_what_is_not_a_vocabulary_is_refused_in_one_line(tmp_path):
    path = tmp_path / "v.json"
    Vocabulary.from_texts(TEXTS).save(path)
    record = json.loads(path.read_text())
    broken = {
        "expected a whole JSON file": path.read_text()[:-20],
        "not a vocabulary;": json.dumps(["a", "b"]),
        "version 2; expected 1": json.dumps({**record, "version": 2}),
        'expected "words" to be a list of strings': json.dumps({**record, "words": [1]}),
        '"lowercase" is 1; expected true or false': json.dumps({**record, "lowercase": 1}),
        "expected \\['<pad>', '<unk>'\\]": json.dumps({**record, "words": ["a"]}),
        "the word 'a' twice": json.dumps({**record, "words": ["<pad>", "<unk>", "a", "a"]}),
    }
    for message, text in broken.items():
        path.write_text(text)
        with pytest.raises(DataError, match=message) as caught:
            Vocabulary.load(path)
        assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read_or_written_are_named(tmp_path):
    with pytest.raises(FileError, match=r"gone\.json: cannot be read"):
        Vocabulary.load(tmp_path / "gone.json")
    with pytest.raises(FileError, match=r"cannot write .*v\.json.*: the folder .* does not exist"):
        Vocabulary.from_texts(TEXTS).save(tmp_path / "gone" / "v.json")
