"""Running text line by line, and its stretches."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.errors import DataError
from unrolled.lab.data.corpus import END_OF_LINE, Characters, Words
from unrolled.lab.data.formats import read_files, read_split
from unrolled.lab.data.formats.text import character_lines, cut_by_position, word_lines
from unrolled.lab.data.tokenise import line_tokeniser, split_at_spaces, tokenise


def test_every_line_of_words_ends_with_its_token_an_empty_one_too():
    assert list(word_lines(["a b", "", " c "], str.split)) == [
        ["a", "b", END_OF_LINE],
        [END_OF_LINE],
        ["c", END_OF_LINE],
    ]


def test_a_line_of_characters_ends_with_a_lines_end():
    assert [list(line) for line in character_lines(["ab", ""])] == [["a", "b", "\n"], ["\n"]]


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("train.lc.norm.tok.de", split_at_spaces),
        ("wiki.train.tokens", split_at_spaces),
        ("a.bpe.en", split_at_spaces),
        ("a.de", tokenise),
        ("token.txt", tokenise),
        ("tok", split_at_spaces),
    ],
)
def test_a_files_name_says_whether_it_is_cut_already(name, cut):
    assert line_tokeniser(Path("/tok/folder") / name) is cut


def test_spaces_alone_separate_tokens_that_are_cut_already():
    assert split_at_spaces(" 2\u00a01/2  <unk>\u0085 ") == ["2\u00a01/2", "<unk>\u0085"]


lines = st.lists(st.text(st.characters(exclude_characters="\r\n\0\ufeff", codec="utf-8"), max_size=9), min_size=60)


@settings(deadline=None)  # a slow machine proves nothing
@given(lines, st.sampled_from([(8, 1, 1), (9, 1), (1, 1, 1)]))
def test_stretches_are_the_text_in_order_and_as_long_as_asked(tmp_path_factory, text, shares):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_bytes("".join(line + "\n" for line in text).encode())
    total = sum(len(line) + 1 for line in text)
    found = cut_by_position(path, shares, character_lines)
    assert ["".join(line) for stream in found for line in stream] == [line + "\n" for line in text]
    for stream, share in zip(found, shares, strict=True):
        length = sum(map(len, stream))
        assert abs(length - total * share / sum(shares)) <= 11  # a line more or less
        assert list(stream) == list(stream)  # read anew


@pytest.mark.parametrize("text", ["", "one line\n", "one\ntwo\n", "short\n" + "long " * 99 + "\nshort\n"])
def test_a_text_too_short_to_be_cut_is_refused(tmp_path, text):
    path = tmp_path / "text.txt"
    path.write_text(text)
    with pytest.raises(
        DataError, match=r"text\.txt: expected at least 3 lines, and none much longer than the others; .* --dev and"
    ):
        cut_by_position(path, (8, 1, 1), partial(word_lines, cut=str.split))


@pytest.mark.parametrize(
    ("name", "line", "kind", "noted"),
    [
        ("ptb.txt", "the <unk> man", Words, True),
        ("ptb.tok.txt", "the <unk> man", Words, False),
        ("ptb.txt", "the old man", Words, False),
        ("ptb.txt", "the <unk> man", Characters, False),
    ],
)
def test_a_text_that_seems_tokenised_but_is_split_as_plain_text_is_noted(tmp_path, name, line, kind, noted):
    path = tmp_path / name
    path.write_text(f"{line}\n" * 30)
    for notes in (read_files(kind, [path]).notes, read_split(kind, [path], ()).notes):
        assert [note.startswith(f"{path}: contains <unk>") for note in notes] == [True] * noted


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_table_that_is_read_as_running_text_is_told(tmp_path, name):
    path = tmp_path / name
    path.write_text("good,film\n" * 40)
    (note,) = (each for each in read_files(Words, [path]).notes if "every line is read whole" in each)
    assert note.endswith("pass --format text if that is meant")
    assert not any("read whole" in each for each in read_files(Words, [path], format="text").notes)
    plain = path.rename(path.with_suffix(".txt"))
    assert not any("read whole" in each for each in read_files(Words, [plain]).notes)
