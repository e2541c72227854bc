"""Questions with their candidates, and strings of brackets: the user's own files."""

from __future__ import annotations

import gzip
import re

import pytest

from one_line import check_answer
from unrolled.errors import DataError
from unrolled.lab.data.corpus import Brackets, Candidate, Classification, Question, Selection
from unrolled.lab.data.datasets.dyck import DyckStrings
from unrolled.lab.data.formats import FORMATS, read_files, read_split
from unrolled.lab.data.formats.brackets import bracket_pairs
from unrolled.lab.data.reading import Reading
from unrolled.lab.tasks import TASKS

ASKED = b"".join(b"Who is %d?\tAnn is %d.\t1\nWho is %d?\tBo isn't.\t0\n" % (i, i, i) for i in range(12))
LINES = 24  # of these
STRINGS = b"([])()\n[]\n(())\n" * 4


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", TASKS.names())
def test_every_task_learns_files_of_the_users(name):
    assert any(TASKS.get(name).kind in member.kinds for member in FORMATS.members.values())


@pytest.mark.parametrize("head", [b"", b"question\tsentence\tlabel\r\n", b"\xef\xbb\xbfQuestion\tSentence\tLabel\n"])
def test_lines_of_one_question_are_its_candidates(tmp_path, head):
    corpus = read_files(Selection, [write(tmp_path, "mine.tsv", head + ASKED)])
    assert [len(split) for split in (corpus.train, corpus.dev, corpus.test)] == [10, 1, 1]
    assert (type(corpus), corpus.name) == (Selection, "mine")
    assert corpus.train[0] == Question(
        ("Who", "is", "0", "?"),
        (Candidate(("Ann", "is", "0", "."), right=True), Candidate(("Bo", "is", "n't", "."), right=False)),
    )


def test_a_question_without_an_answer_stays_and_a_packed_file_is_the_same(tmp_path):
    none = ASKED + b"Why?\tBecause.\t0\n"
    plain = read_split(Selection, [write(tmp_path, "a.tsv", none)], ()).examples
    assert [question.answered for question in plain] == [True] * 12 + [False]
    assert read_split(Selection, [write(tmp_path, "b.tab.gz", gzip.compress(none))], ()).examples == plain


def test_lines_that_are_no_candidates_are_left_out_on_request(tmp_path):
    odd = b"Who is 12?\t \t0\nWho is 12?\tAnn is 12.\tyes\nWho is 12?\tAnn.\n"
    path = write(tmp_path, "a.tsv", ASKED + odd + b"Who is 12?\tBo is 12.\t1\n")
    skipping = Reading(skip_invalid=True)
    found = read_split(Selection, [path], (), reading=skipping)
    assert found.examples[:12] == read_split(Selection, [write(tmp_path, "b.tsv", ASKED)], ()).examples
    assert [candidate.tokens for candidate in found.examples[12].candidates] == [("Bo", "is", "12", ".")]
    said = "2 rows without a question, a sentence or a label of 0 or 1 (lines 25-26), "
    said += "1 row without three columns (line 27)"
    assert found.notes == (f"left out: {path}: {said}",)
    with pytest.raises(DataError, match=re.escape(f"{path}: {said}; correct them, or leave them out with --skip-inv")):
        read_split(Selection, [path], ())
    again = write(tmp_path, "c.tsv", ASKED + odd + ASKED)  # the control: a question that comes back is still refused
    with pytest.raises(DataError, match=r":28: expected a new question, found 'Who is 0\?' once more"):
        read_split(Selection, [again], (), reading=skipping)


@pytest.mark.parametrize("lost", [b"Why?\tSo.\tyes\n", b"Why?\t\t1\n", b"Why?\tSo.\n"])
def test_a_question_whose_right_candidate_may_be_left_out_is_left_out(tmp_path, lost):
    path = write(tmp_path, "a.tsv", ASKED + b"Why?\tBecause.\t0\n" + lost)
    found = read_split(Selection, [path], (), reading=Reading(skip_invalid=True))
    assert [question.answered for question in found.examples] == [True] * 12
    assert "1 row at the start of a question that has no right candidate left (line 25)" in found.notes[0]


@pytest.mark.parametrize(
    ("rest", "answered"),
    [
        (b"Why?\t\t0\n", False),  # what is left out is wrong
        (b"Why?\tSo.\tyes\nWhy?\tThus.\t1\n", True),
        (b"How?\tSo.\tyes\n", False),  # of another question
    ],
)
def test_a_question_that_lost_no_answer_stays(tmp_path, rest, answered):
    path = write(tmp_path, "a.tsv", ASKED + b"Why?\tBecause.\t0\n" + rest)
    found = read_split(Selection, [path], (), reading=Reading(skip_invalid=True))
    assert [question.answered for question in found.examples] == [True] * 12 + [answered]
    assert "at the start of a question" not in found.notes[0]


def test_the_suffix_alone_does_not_decide_but_what_is_learned_does(tmp_path):
    path = write(tmp_path, "a.tsv", ASKED)
    assert len(read_files(Classification, [path]).train) == 20  # lines, of the classes 0 and 1
    assert len(read_files(Selection, [path]).train) == 10


@pytest.mark.parametrize("name", ["a.txt", "a", "a.dyck"])
def test_a_line_of_brackets_is_a_string(tmp_path, name):
    corpus = read_files(Brackets, [write(tmp_path, name, STRINGS)])
    assert [len(split) for split in (corpus.train, corpus.dev, corpus.test)] == [10, 1, 1]
    assert (corpus.kinds, corpus.depth) == (2, 2)
    assert corpus.train[:3] == ((0, 1, 3, 2, 0, 2), (1, 3), (0, 0, 2, 2))


def test_brackets_of_one_kind_are_noted_as_nothing_to_predict(tmp_path):
    for strings, notes in ((b"(())\n()\n" * 6, 1), (b"{{}}\n{}\n" * 6, 1), (STRINGS, 0)):
        corpus = read_files(Brackets, [write(tmp_path, "a.txt", strings)])
        assert sum("the only closing bracket is always the right one" in note for note in corpus.notes) == notes


@pytest.mark.parametrize(("text", "kinds", "depth"), [(b"()\n", 1, 1), (b"[]\n", 2, 1), (b"()<((()))>\n", 4, 4)])
def test_kinds_are_counted_up_to_the_last_that_occurs(tmp_path, text, kinds, depth):
    corpus = read_files(Brackets, [write(tmp_path, "a.txt", text * 12)])
    assert (corpus.kinds, corpus.depth) == (kinds, depth)


def test_what_is_drawn_and_written_is_read_again(tmp_path):
    drawn = DyckStrings(4, 3, symbols=(2_000, 200, 200)).read()
    known = bracket_pairs(4)
    written = ("".join(known[each % 4][each // 4] for each in string) for string in drawn.train)
    path = write(tmp_path, "a.txt", "\n".join(written).encode())
    assert read_split(Brackets, [path], known).examples == drawn.train
    assert (
        read_split(Brackets, [path], bracket_pairs(5)).examples != drawn.train
    )  # with five kinds others are what closes


def test_of_more_kinds_than_files_can_write_all_are_counted():
    assert bracket_pairs(3) == ("()", "[]", "{}")
    assert len(bracket_pairs(9)) == len(set(bracket_pairs(9))) == 9


def test_the_deepest_string_counts_wherever_it_stands(tmp_path):
    train, test = write(tmp_path, "a.txt", b"()\n" * 12), write(tmp_path, "b.txt", b"((()))\n")
    assert read_files(Brackets, [train]).depth == 1
    assert read_files(Brackets, [train], test=[test]).depth == 3


def test_a_kind_never_trained_on_is_refused_where_it_stands(tmp_path):
    train, test = write(tmp_path, "a.txt", b"()\n" * 12), write(tmp_path, "b.txt", b"()\n([])\n")
    said = rf"{re.escape(str(test))}:2: expected a label that training examples have, found '\[\]'"
    with pytest.raises(DataError, match=said):
        read_files(Brackets, [train], test=[test])
    with pytest.raises(DataError, match=said):
        read_split(Brackets, [test], bracket_pairs(1))
    assert len(read_split(Brackets, [test], bracket_pairs(2)).examples) == 2


MALFORMED = [
    # (kind, file, content, line, what is said)
    (Selection, "a.tsv", ASKED + b"Why?\tBecause.\n", LINES + 1, "question<TAB>sentence<TAB>label, found 'Why?"),
    (Selection, "a.tsv", ASKED + b"Why?\tIt\tis\t1\n", LINES + 1, "question<TAB>sentence<TAB>label, found 'Why?"),
    (Selection, "a.tsv", ASKED + b"\n" + ASKED, LINES + 1, "question<TAB>sentence<TAB>label, found ''; three columns"),
    (Selection, "a.tsv", ASKED + b"Why?\tBecause.\tyes\n", LINES + 1, "the label 0 or 1, found 'yes'; 1 marks a"),
    (Selection, "a.tsv", ASKED + b"Why?\t \t1\n", LINES + 1, "a sentence, found an empty column; every line has"),
    (Selection, "a.tsv", ASKED + b"\tBecause.\t1\n", LINES + 1, "a question, found an empty column; every line has"),
    (Selection, "a.tsv", ASKED + b"Who is 3?\tBo.\t0\n", LINES + 1, "a new question, found 'Who is 3?' once more; put"),
    (Selection, "a.tsv", ASKED + b"Why?\tcaf\xe9\t1\n", LINES + 1, "UTF-8 text, found the byte 0xe9 at column 9;"),
    (Selection, "a.tsv", b"query\tsentence\tlabel\n" + ASKED, 1, "the label 0 or 1, found 'label'; 1 marks a sentence"),
    (Selection, "a.tsv", ASKED[:88], None, "at least 10 questions, found 2; a tenth of them is kept for dev, and"),
    (Brackets, "a.txt", STRINGS + b"(]\n", 13, "')', or an opening bracket, found ']' at 2; the last open bracket"),
    (Brackets, "a.txt", STRINGS + b"())\n", 13, "an opening bracket, found ')' at 3; the last open bracket is"),
    (Brackets, "a.txt", STRINGS + b"([]\n", 13, "')', found the line's end; close every bracket"),
    (Brackets, "a.txt", STRINGS + b"(a)\n", 13, "brackets of () [] {} <> only, found 'a' at 2; a line is one"),
    (Brackets, "a.txt", STRINGS + b"() ()\n", 13, "brackets of () [] {} <> only, found ' ' at 3; a line is one"),
    (Brackets, "a.txt", STRINGS + b"\n" + STRINGS, 13, "a string of brackets, found an empty line; remove the line"),
    (Brackets, "a.txt", STRINGS + b"\xff\n", 13, "UTF-8 text, found the byte 0xff at column 1; save the file"),
    (Brackets, "a.txt", b"", None, "at least 10 strings, found 0; a tenth of them is kept"),
]


@pytest.mark.parametrize(("kind", "name", "content", "line", "expected"), MALFORMED, ids=[row[4] for row in MALFORMED])
def test_a_malformed_file_is_answered_in_one_line(tmp_path, kind, name, content, line, expected):
    path = write(tmp_path, name, content)
    check_answer(kind, path, line, expected)
