"""Which line of a table is its header: what is known settles it, a guess is said, and what is above is no example."""

from __future__ import annotations

import csv

import pytest

from unrolled.errors import DataError, UnknownNameError
from unrolled.lab.data.corpus import Classification
from unrolled.lab.data.formats import read_files
from unrolled.lab.data.reading import Reading
from unrolled.lab.data.unlabelled import read_texts
from written_tables import review, save, table, texts

TRAINED = Reading(trained_text="Kommentar")
SKIP = Reading(skip_invalid=True)


def read(path, reading=None):
    """Return the lines of the texts, the texts, and what is said."""
    said: list[str] = []
    found = list(read_texts(path, reading or Reading(), say=said.append))
    return [line for line, _ in found], [text for _, text in found], said


def sentiment(number):
    return ("bad", "good")[number % 2]


def test_the_only_column_may_have_the_name_of_the_trainings(tmp_path):
    path = save(tmp_path, "a.csv", "Kommentar\na dull film\na fine film\n")
    assert read(path, TRAINED)[:2] == ([2, 3], ["a dull film", "a fine film"])
    assert read(path, Reading(text_column="kommentar"))[1] == ["a dull film", "a fine film"]
    with pytest.raises(UnknownNameError, match="Komentar"):
        read(path, Reading(text_column="Komentar"))
    # the controls: nobody knows the name, the column has a number, and the user says that there is none
    for reading in (Reading(), Reading(text_column="1"), Reading(header=False, trained_text="Kommentar")):
        assert read(path, reading)[1] == ["Kommentar", "a dull film", "a fine film"]


def test_a_number_of_a_column_is_no_name_of_one(tmp_path):
    path = save(tmp_path, "a.csv", "2,a dull film of our days\n3,a fine film\n")
    assert read(path, Reading(text_column="2"))[0] == [1, 2]


def test_a_short_first_text_that_is_taken_for_a_header_is_told_and_read_with_the_option(tmp_path):
    rows = "".join(f"A{n},{review(n).replace(',', '')}\n" for n in range(18, 30))
    path = save(tmp_path, "a.csv", "A17,Good film\n" + rows)
    lines, _, said = read(path)
    assert lines[0] == 2
    assert f"{path}:1: read as the names of the columns" in "\n".join(said)
    assert "if it is an example: --no-header" in "\n".join(said)
    lines, found, said = read(path, Reading(header=False, text_column="2"))
    assert (lines[0], found[0], said) == (1, "Good film", [])
    for first in ("id,Good film", "nr,Kommentar"):  # the controls: a usual name, and the training's
        path = save(tmp_path, "b.csv", f"{first}\n" + rows)
        assert "names of the columns" not in "\n".join(read(path, TRAINED)[2])


@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_above_a_header_are_nothing(tmp_path, count, end):
    rows = table(("text", "label"), lambda n: (review(n), sentiment(n)), count=count).replace("\n", end)
    path = save(tmp_path, "a.csv", end * 4 + rows)
    assert read(path)[:2] == (list(range(6, 6 + count)), [review(n) for n in range(count)])
    if count > 3:
        assert texts(read_files(Classification, [path])) == {review(n) for n in range(count)}


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_blank_lines_above_rows_keep_their_places(tmp_path, name):
    """The control: where no header is below them, they are rows without a text."""
    delimiter = "\t" if name == "a.tsv" else ","
    rows = table((), lambda n: (review(n), sentiment(n)), delimiter=delimiter)
    path = save(tmp_path, name, "\n\n" + rows)
    with pytest.raises(DataError, match=r"2 rows without a text \(lines 1-2\)"):
        read_files(Classification, [path])


@pytest.mark.parametrize(
    ("title", "header"),
    [
        ("My reviews, all of 2024\n", ("text", "label")),
        ("My reviews, all of 2024\n\n", ("text", "label")),
        ("Export,,\n", ("Kommentar", "Urteil", "x")),
        ("Export,,\n,,\n", ("Kommentar", "Urteil", "x")),
        ("Export,,\n", ("", "Kommentar", "Urteil")),
    ],
)
def test_a_title_with_separators_is_above_the_header(tmp_path, title, header):
    def row(n):
        return (n, review(n), sentiment(n)) if header[0] == "" else (review(n), sentiment(n), 1)[: len(header)]

    rows = table(header, row)
    path = save(tmp_path, "a.csv", title + rows)
    with pytest.raises(DataError, match=r"a\.csv:1: expected the names of the columns, found '(My|Ex).*skip-invalid"):
        read_files(Classification, [path])
    corpus = read_files(Classification, [path], reading=SKIP)
    assert (corpus.labels, texts(corpus)) == (("bad", "good"), {review(n) for n in range(40)})
    _, found, said = read(path)
    assert found == [review(n) for n in range(40)]
    assert any(line.startswith(f"{path}:1: above the names of the columns, so not read:") for line in said)


def test_a_long_title_in_another_encoding_is_shown_in_part(tmp_path):
    title = "Filmkritiken für alle ".encode("latin-1") * 10
    path = save(tmp_path, "a.csv", title + b"\ntext,label\na fine film,good\na dull film,bad\n")
    lines, _, (said,) = read(path)
    assert lines == [3, 4]
    assert said.startswith(f"{path}:1: above the names of the columns, so not read: Filmkritiken f\ufffdr alle")
    assert len(said) < len(str(path)) + 110


def test_rows_of_one_field_are_no_titles(tmp_path):
    """The control: where labels are rare, most rows have a text alone."""
    rows = "".join(f"{review(n).replace(',', '')},{'x' if n == 4 else ''}\n" for n in range(40))
    assert len(read(save(tmp_path, "a.csv", rows))[0]) == 40


@pytest.mark.parametrize("header", [("text", "label"), ("review", "sentiment")])
def test_a_header_that_comes_again_is_no_example(tmp_path, header):
    part = table(header, lambda n: (review(n), sentiment(n)), count=20)
    rest = table(header, lambda n: (review(n + 20), sentiment(n)), count=20)
    path = save(tmp_path, "a.csv", part + rest)
    with pytest.raises(DataError, match=r"a\.csv:22: expected an example, found .*; delete the names"):
        read_files(Classification, [path])
    corpus = read_files(Classification, [path], reading=SKIP)
    assert (corpus.labels, texts(corpus)) == (("bad", "good"), {review(n) for n in range(40)})
    lines, _, said = read(path)
    assert 22 not in lines
    assert f"{path}:22: the names of the columns again, so not read" in said


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_a_byte_order_mark_where_files_were_joined_is_no_letter(tmp_path, quoting):
    def part(begin):
        rows = table(("text", "label"), lambda n: (review(n + begin), sentiment(n)), count=20, quoting=quoting)
        return f"\ufeff{rows}"

    path = save(tmp_path, "a.csv", part(0) + part(20))
    with pytest.raises(DataError, match=r"a\.csv:22: expected an example, found .*; delete the names"):
        read_files(Classification, [path])
    corpus = read_files(Classification, [path], reading=SKIP)
    assert (corpus.labels, texts(corpus)) == (("bad", "good"), {review(n) for n in range(40)})
    path = save(tmp_path, "b.csv", table((), lambda n: (f"{review(n)} \ufeff", sentiment(n)), quoting=quoting))
    assert texts(read_files(Classification, [path])) == {f"{review(n)} \ufeff" for n in range(40)}  # the control


def test_a_text_that_is_the_name_of_the_only_column_is_a_text(tmp_path):
    """The control of headers that come again."""
    path = save(tmp_path, "a.csv", "comment\nno comment\ncomment\n")
    assert read(path)[1] == ["no comment", "comment"]


def long(n):
    """A text without a comma."""
    return f"this is a rather long text about the film number {n}"


def test_rows_that_name_a_column_of_the_training_stay_rows(tmp_path):
    """A message of the class spam is no header, though the training's labels stood in a column of that name."""
    rows = "sms,kind\n" + "".join(f"{long(n)},{'spam' if n == 3 else 'ham'}\n" for n in range(30))
    path = save(tmp_path, "a.csv", rows)
    reading = Reading(trained_text="message", trained_label="spam")
    assert len(list(read_texts(path, reading, say=lambda _: None))) == 30


def test_columns_may_have_numbers_for_names(tmp_path):
    path = save(tmp_path, "a.csv", "0,1\n" + "".join(f"{long(n)},{sentiment(n)}\n" for n in range(30)))
    given = read_files(Classification, [path], reading=Reading(text_column="0", label_column="1"))
    assert texts(given) == {long(n) for n in range(30)}
    assert given.labels == ("bad", "good")
    trained = list(read_texts(path, Reading(trained_text="0", trained_label="1"), say=lambda _: None))
    assert len(trained) == 30


@pytest.mark.parametrize("labels", [("bad", "good"), ("0", "1")])
@pytest.mark.parametrize("counted", [False, True])
def test_the_numbers_that_pandas_writes_for_names_are_no_example(tmp_path, labels, counted):
    def rows(first):
        row = (f"{n}," * counted + f"{long(n)},{labels[n % 2]}\n" for n in range(30))
        return "," * counted + first + "\n" + "".join(row)

    path = save(tmp_path, "a.csv", rows("0,1"))
    corpus = read_files(Classification, [path])
    assert (corpus.labels, texts(corpus)) == (labels, {long(n) for n in range(30)})
    assert "texts from '0', labels from '1'" in corpus.notes[0]
    assert f"{path}:1: read as the names of the columns" in "\n".join(read(path)[2])
    if not counted:  # the control: other numbers are an example
        other = read_files(Classification, [save(tmp_path, "b.csv", rows("7,1"))])
        assert texts(other) == {"7", *(long(n) for n in range(30))}


@pytest.mark.parametrize("names", ["{n}", "id{n}", "a b{n}", "{n},{n}", "a{m},{n}", "a{m},b c{n}"])
@pytest.mark.parametrize("labels", [("bad", "good"), ("0", "1")])
def test_the_numbers_that_pandas_writes_for_names_stand_above_rows_with_one_name_or_two(tmp_path, names, labels):
    head = "," * (1 + names.count(","))
    rows = "".join(f"{names.format(n=n, m=n // 3)},{long(n)},{labels[n % 2]}\n" for n in range(30))
    corpus = read_files(Classification, [save(tmp_path, "a.csv", f"{head}0,1\n{rows}")])
    assert texts(corpus) == {long(n) for n in range(30)}
    assert corpus.labels == labels
    other = read_files(Classification, [save(tmp_path, "b.csv", f"{head}7,1\n{rows}")])  # the control
    assert texts(other) == {"7", *(long(n) for n in range(30))}


@pytest.mark.parametrize("rest", ["", ",1"])
def test_a_first_row_without_a_text_is_no_header_of_numbers(tmp_path, rest):
    body = "".join(f"{long(n)},{n % 2}{rest and f',{n % 3}'}\n" for n in range(30))
    path = save(tmp_path, "a.csv", f",0{rest}\n{body}")
    reading = Reading(text_column="1", label_column="2")
    with pytest.raises(DataError, match=r"a\.csv:1: expected a text, found the label '0' alone"):
        read_files(Classification, [path], reading=reading)
    if not rest:  # and without a word of the user
        with pytest.raises(DataError, match=r"a\.csv:1: expected a text, found the label '0' alone"):
            read_files(Classification, [path])


def test_a_first_row_without_two_texts_is_no_header_of_numbers(tmp_path):
    body = "".join(f"film {n},{long(n)},{n % 2},{n % 3}\n" for n in range(30))
    reading = Reading(text_column="2", label_column="3")
    with pytest.raises(DataError, match=r"a\.csv:1: expected a text, found the label '0' alone"):
        read_files(Classification, [save(tmp_path, "a.csv", f",,0,1\n{body}")], reading=reading)
    words = body.replace(",0,", ",no,").replace(",1,", ",yes,")  # the control
    assert len(texts(read_files(Classification, [save(tmp_path, "b.csv", f",,0,1\n{words}")], reading=reading))) == 30


def test_texts_without_labels_are_no_titles_in_a_table_of_two_columns(tmp_path):
    rows = "Nice,\nBad,\nfoo,pos2\n" + "".join(f"{long(n)},{sentiment(n)}\n" for n in range(9))
    assert len(list(read_texts(save(tmp_path, "a.csv", rows), Reading(header=False), say=lambda _: None))) == 12
    assert len(list(read_texts(save(tmp_path, "a.csv", rows), Reading(), say=lambda _: None))) == 12
