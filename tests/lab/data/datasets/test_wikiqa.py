from __future__ import annotations

import pytest

from unrolled.errors import DataError
from unrolled.lab.data.datasets.wikiqa import WikiQa

HEADER = "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel\r\n"
ROWS = [
    'Q1\twho isn\'t here?\tD1\tA "title\tD1-0\tNobody is "here .\t0\r\n',
    "Q1\twho isn't here?\tD1\tA title\tD1-1\tEverybody is .\t1\r\n",
    "Q2\twhere?\tD2\tB\tD2-0\tNowhere .\t0\r\n",
]


def read(folder, text):
    (folder / "wikiqa").mkdir()
    for split in ("train", "dev", "test"):
        (folder / "wikiqa" / f"WikiQA-{split}.tsv").write_bytes(text.encode())
    return WikiQa().read(folder)


def test_candidates_stand_under_their_question_and_quotes_are_no_quotes(tmp_path):
    first, second = read(tmp_path, HEADER + "".join(ROWS)).train
    assert first.tokens == ("who", "is", "n't", "here", "?")
    assert [each.right for each in first.candidates] == [False, True]
    assert first.candidates[1].tokens == ("Everybody", "is", ".")
    assert len(second.candidates) == 1


def test_a_question_knows_whether_it_has_a_right_answer(tmp_path):
    assert [question.answered for question in read(tmp_path, HEADER + "".join(ROWS)).train] == [True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("".join(ROWS), r"WikiQA-train\.tsv:1: expected the header QuestionID Question .*; name a file of WikiQA"),
        (HEADER + ROWS[0] + "Q1\twho?\tD1\n", r"WikiQA-train\.tsv:3: expected 7 columns, found 3 in "),
        (HEADER + ROWS[0][:-3] + "yes\r\n", r"WikiQA-train\.tsv:2: expected the label 0 or 1, found 'yes'; 1 marks"),
        (HEADER + ROWS[0] + ROWS[2] + ROWS[1], r"WikiQA-train\.tsv:4: expected a new question, found 'Q1' once more"),
        (HEADER + "Q1\twho?\tD\tT\tS\t \t0\r\n", r"WikiQA-train\.tsv:2: expected a sentence, found an empty column"),
        (HEADER + "Q1\t\tD\tT\tS\tx\t0\r\n", r"WikiQA-train\.tsv:2: expected a question, found an empty column"),
    ],
)
def test_what_is_malformed_is_named_with_its_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


@pytest.mark.data
def test_the_real_questions_have_the_published_counts(data_folder):
    corpus = WikiQa().read(data_folder)
    splits = (corpus.train, corpus.dev, corpus.test)
    assert [len(split) for split in splits] == [2_118, 296, 633]
    assert [sum(len(question.candidates) for question in split) for split in splits] == [20_360, 2_733, 6_165]
    assert [sum(question.answered for question in split) for split in splits] == [873, 126, 243]
