"""Files as people have them: any header, any separator, rows that are no examples."""

from __future__ import annotations

import csv
import json
import time

import pytest

from unrolled.errors import DataError, UnknownNameError, UsageError
from unrolled.lab.data.corpus import Brackets, Classification, Regression, Tagging, Translation
from unrolled.lab.data.formats import read_files, read_split
from unrolled.lab.data.reading import Reading
from written_tables import WORDS, review, save, table, texts


def sentiment(number):
    return ("positive", "negative")[number % 2]


REVIEWS = {review(number) for number in range(40)}


@pytest.mark.parametrize(
    ("header", "row"),
    [
        (("review", "sentiment"), lambda n: (review(n), sentiment(n))),
        (("Review Text", "Recommended"), lambda n: (review(n), sentiment(n))),
        (("id", "text", "label", "date"), lambda n: (n, review(n), sentiment(n), f"2024-01-{n % 9 + 1:02}")),
        (("stars", "title", "review"), lambda n: (sentiment(n), f"title {n % 7}", review(n))),
        (("v1", "v2"), lambda n: (sentiment(n), review(n))),
        (("", "v1", "v2"), lambda n: (n, sentiment(n), review(n))),  # as pandas writes the numbers of the rows
        ((), lambda n: (n or "", sentiment(n), review(n))),
        ((), lambda n: (sentiment(n), review(n))),
        ((), lambda n: (n, review(n), sentiment(n))),
    ],
)
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_columns_are_found_where_the_choice_is_plain(tmp_path, header, row, delimiter):
    corpus = read_files(Classification, [save(tmp_path, "a.csv", table(header, row, delimiter=delimiter))])
    assert corpus.labels == ("negative", "positive")
    assert texts(corpus) == REVIEWS


@pytest.mark.parametrize("declared", ["sep=;", '"sep=;"'])
def test_excels_line_that_declares_the_separator_is_no_row(tmp_path, declared):
    written = table(("review", "sentiment"), lambda n: (review(n) + ", so", sentiment(n)), delimiter=";")
    corpus = read_files(Classification, [save(tmp_path, "a.csv", f"{declared}\r\n{written}")])
    assert corpus.labels == ("negative", "positive")
    assert texts(corpus) == {text + ", so" for text in REVIEWS}
    broken = written.replace("positive", "", 1)
    with pytest.raises(DataError, match=":3: expected a label"):
        read_files(Classification, [save(tmp_path, "b.csv", f"{declared}\r\n{broken}")])


def test_what_was_chosen_is_noted_and_what_is_usual_is_not(tmp_path):
    path = save(tmp_path, "a.csv", table(("review", "sentiment"), lambda n: (review(n), sentiment(n)), delimiter=";"))
    (note,) = read_files(Classification, [path]).notes
    assert note == f"{path}: separated by a semicolon, texts from 'review', labels from 'sentiment'"
    path = save(tmp_path, "b.csv", table(("text", "label"), lambda n: (review(n), sentiment(n))))
    assert read_files(Classification, [path]).notes == ()


@pytest.mark.parametrize(
    ("header", "row", "expected"),
    [
        (
            ("review", "verified", "helpful"),
            lambda n: (review(n), n % 2, n % 3),
            "holds the labels; found review (text, 11 words on average), verified (2 values), helpful (3 values); name",
        ),
        (
            ("pros", "cons", "stars"),
            lambda n: (review(n), review(n + 100), n % 5),
            "holds the texts; found pros (text, 11 words on average), cons (text, 11 words on average), stars (5 v",
        ),
    ],
)
def test_columns_that_are_not_plain_are_refused_with_the_columns_found(tmp_path, header, row, expected):
    path = save(tmp_path, "a.csv", table(header, row))
    with pytest.raises(DataError) as caught:
        read_files(Classification, [path])
    assert f"cannot tell which column {expected}" in str(caught.value)
    assert "--label-column" in str(caught.value)
    named = Reading(text_column=header[0], label_column=header[2])
    assert texts(read_files(Classification, [path], reading=named)) == REVIEWS


def test_the_user_names_columns_by_name_or_number(tmp_path):
    path = save(tmp_path, "a.csv", table(("a", "b", "c"), lambda n: (review(n), n % 2, n % 3)))
    for text, label, labels in (("a", "b", 2), ("A", "C", 3), ("1", "3", 3), (None, "b", 2)):
        reading = Reading(text_column=text, label_column=label)
        assert len(read_files(Classification, [path], reading=reading).labels) == labels
    with pytest.raises(UnknownNameError, match=r"unknown column of .*a\.csv 'd'; expected one of: a, b, c"):
        read_files(Classification, [path], reading=Reading(label_column="d"))
    with pytest.raises(UsageError, match=r"--label-column is 4, but .* has 3 columns; expected 1 to 3"):
        read_files(Classification, [path], reading=Reading(label_column="4"))
    with pytest.raises(UsageError, match="both name column 1"):
        read_files(Classification, [path], reading=Reading(text_column="a", label_column="1"))
    with pytest.raises(UsageError, match="--text-column is given, but the format brackets has fixed columns"):
        read_files(Brackets, [tmp_path / "a.txt"], reading=Reading(text_column="a"))


def test_truth_values_of_json_are_classes_and_no_ratings(tmp_path):
    lines = [json.dumps({"text": review(n), "label": n % 3 == 0}) for n in range(30)]
    path = save(tmp_path, "a.jsonl", "".join(f"{line}\n" for line in lines))
    corpus = read_files(Classification, [path])
    assert corpus.labels == ("false", "true")
    examples = (*corpus.train, *corpus.dev, *corpus.test)
    assert {each.text: each.label for each in examples} == {review(n): int(n % 3 == 0) for n in range(30)}
    with pytest.raises(DataError, match="rows without a number as its label"):
        read_files(Regression, [path])


def test_columns_that_are_read_as_one_text_are_told(tmp_path):
    """Without a header the last tab alone separates; where most rows have more, an identifier may be in the text."""
    path = save(tmp_path, "a.tsv", "".join(f"u{n}\tfilm number {n}\t{sentiment(n)}\n" for n in range(40)))
    corpus = read_files(Classification, [path])
    assert corpus.train[0].text.startswith("u")
    assert corpus.notes == (
        f"{path}: the text is the first 2 of 3 fields, the label is the last; if they are columns: --text-column and "
        "--label-column, by number from 1",
    )
    corpus = read_files(Classification, [path], reading=Reading(text_column="2", label_column="3"))
    assert corpus.train[0].text.startswith("film")
    assert not any("the first 2" in note for note in corpus.notes)
    first = save(tmp_path, "c.tsv", "".join(f"gj04\t{n % 2}\t\tthe film number {n} is good\n" for n in range(40)))
    corpus = read_files(Classification, [first])
    assert corpus.labels == ("gj04\t0", "gj04\t1")  # which the note shows to be wrong
    (said,) = corpus.notes
    assert said.startswith(f"{first}: the label is the first 3 of 4 fields, the text is the last; if they are columns")
    some = save(tmp_path, "b.tsv", "".join(f"film{chr(9) * (1 + (n % 3 == 0))}{sentiment(n)}\n" for n in range(40)))
    assert read_files(Classification, [some]).notes == ()  # texts that contain tabs


def test_labels_that_differ_in_case_alone_are_told(tmp_path):
    labels = ("good", "Good", "bad", "odd", "ODD", "Odd")
    path = save(tmp_path, "a.tsv", "".join(f"{review(n)}\t{labels[n % 6]}\n" for n in range(60)))
    corpus = read_files(Classification, [path])
    assert len(corpus.labels) == 6
    assert corpus.notes == (
        f"{path}: labels that differ in their case alone are different labels: Good and good, ODD and Odd and odd",
    )
    assert read_files(Classification, [save(tmp_path, "b.tsv", path.read_text().lower())]).notes == ()


def test_labels_that_are_the_same_number_are_told(tmp_path):
    labels = ("0", "0.0", "1", "1.0", "nan", "inf")
    path = save(tmp_path, "a.tsv", "".join(f"{review(n)}\t{labels[n % 6]}\n" for n in range(60)))
    corpus = read_files(Classification, [path])
    assert len(corpus.labels) == 6
    missing = "labels that may stand for a missing one are learned as labels: nan (6 examples)"
    same = f"{path}: labels that are the same number are different labels: 0 and 0.0, 1 and 1.0"
    assert corpus.notes == (same, f"{path}: {missing}")
    other = save(tmp_path, "b.tsv", path.read_text().replace(".0", ""))
    assert read_files(Classification, [other]).notes == (f"{other}: {missing}",)


def test_a_foreign_header_is_not_an_example(tmp_path):
    path = save(tmp_path, "a.tsv", table(("review", "sentiment"), lambda n: (review(n), sentiment(n)), delimiter="\t"))
    corpus = read_files(Classification, [path])
    assert corpus.labels == ("negative", "positive")
    assert "review" not in texts(corpus)


def test_a_first_line_that_may_be_a_header_or_an_example_is_asked_about(tmp_path):
    rows = "".join(f"not {word}\t{label}\n" for word, label in [("good", "bad"), ("bad", "good")] * 10)
    path = save(tmp_path, "a.tsv", "quite odd\tpuzzling\n" + rows)
    with pytest.raises(DataError) as caught:
        read_files(Classification, [path])
    for words in ("a.tsv:1: cannot tell whether 'quite odd', 'puzzling' names", "--no-header", "--text-column"):
        assert words in str(caught.value)
    kept = read_files(Classification, [path], reading=Reading(header=False))
    assert kept.labels == ("bad", "good", "puzzling")
    assert "a label has one training example, too few to be learned: puzzling" in kept.notes[0]
    named = read_files(Classification, [path], reading=Reading(text_column="Quite odd", label_column="puzzling"))
    assert named.labels == ("bad", "good")
    # the control: a first line whose label occurs again is an example
    assert len(read_files(Classification, [save(tmp_path, "b.tsv", rows)]).train) == 16


def test_no_header_makes_an_example_of_usual_names(tmp_path):
    path = save(tmp_path, "a.csv", table(("text", "label"), lambda n: (review(n), ("label", "other")[n % 2])))
    assert len(texts(read_files(Classification, [path]))) == 40
    assert len(texts(read_files(Classification, [path], reading=Reading(header=False)))) == 41


def test_ratings_are_the_column_of_numbers_that_does_not_count_the_rows(tmp_path):
    path = save(tmp_path, "a.csv", table(("nr", "comment", "points"), lambda n: (n, review(n), f"{n % 7 / 2}")))
    corpus = read_files(Regression, [path])
    assert {example.rating for example in corpus.train} == {n / 2 for n in range(7)}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("quoted.tsv", table((), lambda n: (f'{review(n)}\n"quoted"', sentiment(n)), delimiter="\t")),
        ("backslash.csv", "".join(f'"{review(n)}\n\\"quoted\\"",{sentiment(n)}\n' for n in range(40))),
        ("all.csv", table((), lambda n: (f'{review(n)}\n"quoted"', sentiment(n)), quoting=csv.QUOTE_ALL)),
    ],
)
def test_quotes_are_read_as_they_are_written(tmp_path, name, content):
    corpus = read_files(Classification, [save(tmp_path, name, content)])
    assert texts(corpus) == {f'{review(n)}\n"quoted"' for n in range(40)}


@pytest.mark.parametrize(("delimiter", "inside"), [(";", ","), (",", ";"), ("|", ",")])
@pytest.mark.parametrize("rows", [30, 400])
def test_a_separator_in_every_text_but_not_in_the_header_is_none(tmp_path, delimiter, inside, rows):
    """As a spreadsheet of a country with decimal commas writes texts of two clauses."""
    clauses = [f"{review(n).replace(',', '')}{inside} so" for n in range(rows)]
    lines = [f"{n}{delimiter}{text}{delimiter}{sentiment(n)}" for n, text in enumerate(clauses)]
    header = delimiter.join(("Nr", "Bewertung", "Stimmung"))
    corpus = read_files(Classification, [save(tmp_path, "a.csv", "\n".join([header, *lines, ""]))])
    assert corpus.labels == ("negative", "positive")
    assert texts(corpus) == set(clauses)


def test_texts_with_another_separator_in_them_do_not_mislead(tmp_path):
    path = save(tmp_path, "a.csv", table((), lambda n: (f"one; two; {review(n)}", sentiment(n))))
    assert texts(read_files(Classification, [path])) == {f"one; two; {text}" for text in REVIEWS}


def test_one_column_is_refused_with_the_way_to_predictions(tmp_path):
    for name, content in (("a.csv", "review\n" + "".join(f"{w}\n" for w in WORDS)), ("a.csv", "\n".join(WORDS))):
        with pytest.raises(
            DataError,
            match=r"expected columns for a text and a label, found one.*label.*--label-column; .*unrolled predict RUN",
        ):
            read_files(Classification, [save(tmp_path, name, content)])


BROKEN = ["", ",positive", '"no label",', "a,b,c", '"caf\udce9 noir",positive']


def broken_file(folder):
    lines = [f'"{review(n)}",{sentiment(n)}' for n in range(40)]
    for place, line in zip((3, 8, 9, 20, 30), BROKEN, strict=True):
        lines.insert(place, line)
    return save(folder, "a.csv", "\n".join(lines).encode(errors="surrogateescape") + b"\n\n ,\n\r\n")


def test_rows_without_a_text_or_a_label_are_all_listed(tmp_path):
    with pytest.raises(DataError) as caught:
        read_files(Classification, [broken_file(tmp_path)])
    said = str(caught.value)
    assert "\n" not in said
    for words in (
        "2 rows without a text (lines 4, 9), 1 row without a label (line 10)",
        "1 row with more or fewer columns (line 21), 1 row not in UTF-8 (line 31)",
        "leave them out with --skip-invalid",
    ):
        assert words in said


def test_skip_invalid_leaves_them_out_and_counts_them(tmp_path):
    corpus = read_files(Classification, [broken_file(tmp_path)], reading=Reading(skip_invalid=True))
    assert texts(corpus) == REVIEWS
    (note,) = corpus.notes
    assert "left out: " in note
    assert "2 rows without a text (lines 4, 9)" in note


def test_a_test_label_never_trained_on_is_refused_or_left_out_on_request(tmp_path):
    train = save(tmp_path, "a.tsv", "".join(f"{review(n)}\t{sentiment(n)}\n" for n in range(40)))
    test = save(tmp_path, "b.tsv", f"{review(1)}\tnegative\n{review(2)}\tmixed\n{review(3)}\tunclear\n")
    with pytest.raises(DataError, match=r"2 rows with a label that no training example has \(lines 2-3\)"):
        read_files(Classification, [train], test=[test])
    corpus = read_files(Classification, [train], test=[test], reading=Reading(skip_invalid=True))
    assert len(corpus.test) == 1
    assert "2 rows with a label that no training example has" in corpus.notes[0]
    found = read_split(Classification, [test], corpus.labels, reading=Reading(skip_invalid=True))
    assert (len(found.examples), len(found.notes)) == (1, 1)


@pytest.mark.slow
def test_labels_cost_linear_time(tmp_path):
    def seconds(count):
        path = save(tmp_path, f"{count}.tsv", "".join(f"text {n}\tlabel {n // 2}\n" for n in range(2 * count)))
        began = time.process_time()
        assert len(read_files(Classification, [path]).labels) == count
        return time.process_time() - began

    seconds(100)
    ratio = min(seconds(20_000) / seconds(2_500) for _ in range(2))
    assert ratio < 30  # linear: 8; one look along all labels for every row: 64


def test_jsonl_keys_are_found_or_named(tmp_path):
    path = save(tmp_path, "a.jsonl", "".join(f'{{"body": "{review(n)}", "stars": {n % 3}}}\n' for n in range(40)))
    corpus = read_files(Classification, [path])
    assert (texts(corpus), corpus.labels) == (REVIEWS, ("0", "1", "2"))
    assert corpus.notes == (f"{path}: texts from 'body', labels from 'stars'",)


@pytest.mark.parametrize(
    ("kind", "contents"),
    [
        (Classification, {"a.tsv": "x y\tl0\nz w\tl1\n" * 10}),
        (Classification, {"a.csv": "x y,l0\nz w,l1\n" * 10}),
        (Classification, {"a.jsonl": '{"text": "x y", "label": 0}\n{"text": "z w", "label": 1}\n' * 10}),
        (Tagging, {"a.conll": "a DT\nb NN\n\n" * 20}),
        (Translation, {"a.de": "ein Hund\n" * 20, "a.en": "a dog\n" * 20}),
        (Brackets, {"a.txt": "([])\n()\n" * 10}),
    ],
)
def test_blank_lines_at_the_end_byte_order_marks_and_windows_line_ends_are_no_errors(tmp_path, kind, contents):
    plain = read_files(kind, [save(tmp_path, name, content) for name, content in contents.items()])
    odd = [
        save(tmp_path, name, b"\xef\xbb\xbf" + content.replace("\n", "\r\n").encode() + b"\r\n\r\n  \r\n")
        for name, content in contents.items()
    ]
    assert read_files(kind, odd) == plain
