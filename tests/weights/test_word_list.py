"""A vocabulary file of the user's: four formats, and every way to get one wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unrolled.errors import DataError, FileError, UsageError
from unrolled.weights.word_list import WordList


def written(tmp_path: Path, name: str, content: str) -> Path:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("vocab.txt", "<unk>\nno\nyes\n"),
        ("vocab.txt", "<unk>\r\nno\r\nyes"),
        ("vocab.txt", "\ufeff<unk>\nno\nyes\n"),
        ("vocab.json", "\ufeff" + json.dumps(["<unk>", "no", "yes"])),
        ("vocab.json", json.dumps(["<unk>", "no", "yes"])),
        ("vocab.json", json.dumps({"yes": 2, "<unk>": 0, "no": 1})),
        ("VOCAB.JSON", json.dumps({"2": "yes", "0": "<unk>", "1": "no"})),
    ],
)
def test_all_formats_say_the_same(tmp_path: Path, name: str, content: str) -> None:
    words = WordList.load(written(tmp_path, name, content))
    assert len(words) == 3
    assert words.encode(["yes", "no", "perhaps", "yes"]) == [2, 1, 0, 2]
    assert words.unknown(["yes", "perhaps", "perhaps"]) == ("perhaps",)


def test_the_unknown_word_is_named_or_found_or_there_is_none(tmp_path: Path) -> None:
    path = written(tmp_path, "vocab.txt", "a\nrare\nb\n")
    assert WordList.load(path, "rare").encode(["c"]) == [1]
    with pytest.raises(DataError, match=r"'c' is not in the vocabulary.*--unk"):
        WordList.load(path).encode(["a", "c"])
    with pytest.raises(UsageError, match="'<unk>' is not in"):
        WordList.load(path, "<unk>")


def test_case_counts_where_the_list_has_it(tmp_path: Path) -> None:
    words = WordList.load(written(tmp_path, "vocab.txt", "us\nUS\nfilm\n"))
    assert words.encode(["US", "us", "Us", "FILM"]) == [1, 0, 0, 2]
    assert words.unknown(["US", "Film"]) == ()


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("vocab.txt", "", "has no words"),
        ("vocab.json", "[]", "has no words"),
        ("vocab.txt", "a\nb\na\n", "the word 'a' 2 times"),
        ("vocab.txt", "<unk>\nthe 99\nfilm 7\n", "expected one word a line, found 'the 99'; keep the column"),
        ("vocab.csv", "the,99\nfilm,7\n", "expected one word a line, found 'the,99'; keep the column"),
        ("vocab.jsonl", '"the"\n"film"\n', "expected one word a line, found '\"the\"'; keep .* without quotes"),
        ("vocab.txt", " the\n film\n", "expected one word a line, found ' the'; keep .* without quotes and spaces"),
        ("vocab.txt", "a\n\n\nb\n", r"the word '' 2 times \(indices 1, 2\)"),
        ("vocab.json", '{"a": 0, "b": 1, "a": 2}', r"the word 'a' 2 times \(indices 0, 2\)"),
        ("vocab.json", '{"a": 100000000000000000000}', "beyond 64 bits"),
        ("vocab.json", '{"word2idx": {"a": 0}}', r'found a map that begins with "word2idx": {…}'),
        ("vocab.json", '[["a", 0]]', r"found a list with \[…\] at index 0"),
        ("vocab.json", '["a", null, "b"]', "found a list with null at index 1"),
        ("vocab.txt", '["a", "b"]', "expected one word a line.*from a file whose name ends in .json"),
        (
            "vocab",
            '{\n "a": 0,\n "b": 1,\n "c": 2\n}',
            "expected one word a line.*from a file whose name ends in .json",
        ),
        ("vocab.json", '{"a": 0, "b": 0}', "used once"),
        ("vocab.json", '{"a": -1}', "not below 0"),
        ("vocab.json", '{"é": 0, "b": 1, "c": 0}', 'used once .*; found "é": 0 and "c": 0$'),
        ("vocab.json", '{"a": 0, "b": -1}', 'not below 0, .*; found "b": -1$'),
        ("vocab.json", f'{{"a": {"9" * 90}}}', f'beyond 64 bits; found "a": {"9" * 60}$'),
        ("vocab.json", '{"a": "0"}', "a map from words to indices"),
        ("vocab.json", '{"a": true}', "a map from words to indices"),
        ("vocab.json", "[1, 2]", "a JSON list of words"),
        ("vocab.json", '["a", ', "a whole JSON file"),
    ],
)
def test_what_is_no_vocabulary_is_refused(tmp_path: Path, name: str, content: str, expected: str) -> None:
    with pytest.raises(DataError, match=expected):
        WordList.load(written(tmp_path, name, content))


def test_blank_lines_at_the_end_are_no_words(tmp_path: Path) -> None:
    for end in ("", "\n", "\n\n\n", "\r\n\r\n"):
        words = WordList.load(written(tmp_path, "vocab.txt", f"<unk>\n\ngood{end}"))
        assert dict(words.indices) == {"<unk>": 0, "": 1, "good": 2}  # a row in the middle may be without a word
    with pytest.raises(DataError, match="has no words"):
        WordList.load(written(tmp_path, "vocab.txt", "\n\n"))


def test_marks_of_punctuation_are_words(tmp_path: Path) -> None:
    """The control of other columns, quotes and spaces: few words have them, or they are all of a word."""
    words = WordList.load(written(tmp_path, "vocab.txt", ",\n;\n|\n \n'\n\"\n1,000\nNew York\n"))
    assert words.encode([",", "|", "1,000"]) == [0, 2, 6]


def test_bytes_that_are_not_text_and_files_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    with pytest.raises(FileError, match="cannot be read"):
        WordList.load(path)
    path.write_bytes(b"good\n\xff\n")
    with pytest.raises(DataError, match=r"a word a line.*byte 5 is not UTF-8"):
        WordList.load(path)


@pytest.mark.parametrize("listed", ["caf\u00e9", "cafe\u0301"])
def test_a_word_is_found_however_its_accents_are_written(tmp_path: Path, listed: str) -> None:
    words = WordList.load(written(tmp_path, "vocab.txt", f"<unk>\n{listed}\ncafe\n"))
    assert words.encode(["caf\u00e9", "cafe\u0301", "Cafe\u0301", "cafe"]) == [1, 1, 1, 2]
    both = WordList.load(written(tmp_path, "both.txt", "<unk>\ncaf\u00e9\ncafe\u0301\n"))
    assert both.encode(["caf\u00e9", "cafe\u0301"]) == [1, 2]
