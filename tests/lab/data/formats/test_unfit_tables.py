"""Tables that a task cannot read are refused in words that say what mends them, and the advice works."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from unrolled.errors import DataError
from unrolled.lab.data.corpus import Classification, Regression
from unrolled.lab.data.formats import read_files, read_split
from unrolled.lab.data.reading import Reading
from unrolled.lab.data.unlabelled import read_texts
from written_tables import review, save, table, texts

SENSORS = [f"{1 + n % 28:02d}.01.2024 {n % 24:02d}:00;A{n % 2};{n % 37},{n % 10};{20 + n % 31},5" for n in range(60)]


@pytest.mark.parametrize("kind", [Regression, Classification])
def test_a_table_of_sensors_is_told_what_learns_series(tmp_path, kind):
    path = save(tmp_path, "sensors.csv", "Datum;Anlage;Temperatur [K];Last [kW]\n" + "\n".join(SENSORS) + "\n")
    with pytest.raises(DataError) as caught:
        read_files(kind, [path])
    for words in ("Temperatur [K] (numbers)", "Last [kW] (numbers)", "RecurrentRegressor"):
        assert words in str(caught.value)
    # the controls: a table of texts without plain columns, and one without numbers
    others = table(("pros", "cons", "stars"), lambda n: (review(n), review(n + 100), n % 5))
    for content in (others, "a,b\n" + "x1,y1\nx2,y2\n" * 20):
        with pytest.raises(DataError) as caught:
            read_files(Classification, [save(tmp_path, "texts.csv", content)])
        assert "RecurrentRegressor" not in str(caught.value)


def test_a_decimal_comma_is_told_and_the_advice_works(tmp_path):
    content = "Text;Note\n" + "".join(f"{review(n)};{n % 5},5\n" for n in range(40))
    with pytest.raises(DataError, match=r"expected a number, found '0,5'; write it with a point, 0\.5"):
        read_files(Regression, [save(tmp_path, "a.csv", content)])
    corpus = read_files(Regression, [save(tmp_path, "b.csv", content.replace(",5\n", ".5\n"))])
    assert {each.rating for each in corpus.train} == {0.5, 1.5, 2.5, 3.5, 4.5}
    assert len(read_files(Classification, [tmp_path / "a.csv"]).labels) == 5  # a name may have a comma
    with pytest.raises(DataError, match="train classify"):
        read_files(Regression, [save(tmp_path, "c.csv", content.replace(",5\n", " stars\n"))], reading=BOTH)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("1,001", "write it as 1001 if its comma separates thousands, as 1.001 if it is a decimal comma"),
        ("1,000,001", "write it without commas, 1000001"),
        ("1,001.5", "write it without commas, 1001.5"),
        ("0,125", "write it with a point, 0.125"),  # no thousands begin with 0
        ("1,5", "write it with a point, 1.5"),
        ("\N{MINUS SIGN}1", "write it with a hyphen, -1"),
        ("\N{MINUS SIGN}1,5 %", "write it without the sign, with a hyphen, with a point, -1.5"),
        ("50%", "write it without the sign, 50"),
        ("$ 50", "write it without the sign, 50"),
        ("1,5 €", "write it without the sign, with a point, 1.5"),
        ("50 stars", "for labels that are names, train classify"),
        ("%", "for labels that are names, train classify"),
    ],
)
def test_what_a_number_means_and_how_it_is_written_is_told(tmp_path, written, said):
    rows = [f'{{"text": "a film {n}", "label": "{written if n == 1 else n}"}}\n' for n in range(20)]
    with pytest.raises(DataError, match=re.escape(f"expected a number, found {written!r}; {said}")):
        read_files(Regression, [save(tmp_path, "a.jsonl", "".join(rows))])


BOTH = Reading(text_column="Text", label_column="Note")


@pytest.mark.skipif(shutil.which("iconv") is None, reason="no iconv on the path")
@pytest.mark.parametrize("name", ["latin.csv", "it's latin.csv"])
def test_a_file_in_latin_1_is_read_after_the_command_that_the_error_names(tmp_path, name):
    rows = "".join(f"{'schön' if n % 2 else 'öde'} {review(n)};{n % 2}\n" for n in range(40))
    path = tmp_path / name
    path.write_bytes(("Text;Größe\n" + rows).encode("latin-1"))
    with pytest.raises(DataError) as caught:
        read_files(Classification, [path], reading=Reading(text_column="Text", label_column="2"))
    command = str(caught.value).partition("convert it: ")[2]
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    found = read_files(Classification, [tmp_path / f"utf8-{name}"], reading=Reading(text_column="Text"))
    assert texts(found) == {f"{'schön' if n % 2 else 'öde'} {review(n)}" for n in range(40)}


def test_bytes_of_another_encoding_are_shown_as_such_in_the_names_of_columns(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("Maß;Größe\n".encode("latin-1") + b"a b;c\n" * 20)
    with pytest.raises(DataError) as caught:
        read_files(Classification, [path])
    str(caught.value).encode()
    assert "'Ma\ufffd', 'Gr\ufffd\ufffde'" in str(caught.value)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_header_that_is_not_utf_8_is_refused_though_the_rows_are_ascii(tmp_path, name):
    content = table(("Größe", "text", "label"), lambda n: (n, review(n), "good" if n % 2 else "bad"), delimiter="\t")
    path = tmp_path / name
    path.write_bytes(content.encode("latin-1"))
    for read in (
        lambda: read_files(Classification, [path]),
        lambda: read_files(Classification, [path], reading=Reading(skip_invalid=True)),
        lambda: list(read_texts(path, Reading())),
    ):
        with pytest.raises(DataError, match=r":1: expected UTF-8 text, found the byte 0xf6 in 'Gr\ufffd\ufffde'; save"):
            read()
    path.write_text(content, encoding="utf-8")  # the control: the same header in UTF-8
    assert texts(read_files(Classification, [path])) == {text for _, text in read_texts(path, Reading())}


OBJECTS = [{"text": review(n), "label": "good" if n % 2 else "bad"} for n in range(40)]
LISTS = {
    "a.json": (json.dumps(OBJECTS), ".[]"),
    "b.json": (json.dumps(OBJECTS, indent=2), ".[]"),
    "c.jsonl": ("\n".join(json.dumps(each, indent=2) for each in OBJECTS), "."),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_in_json_is_told_how_its_objects_are_written_on_lines(tmp_path, name):
    content, program = LISTS[name]
    path = save(tmp_path, name, content)
    for read in (
        lambda: read_files(Classification, [path], reading=Reading(skip_invalid=True)),
        lambda: list(read_texts(path, Reading())),
    ):
        with pytest.raises(DataError, match=re.escape(f"on a line of its own: jq -c '{program}' {name} > ")) as caught:
            read()
        assert "\n" not in str(caught.value)
    lines = save(tmp_path, "lines.json", "".join(json.dumps(each) + "\n" for each in OBJECTS))  # the control
    assert texts(read_files(Classification, [lines])) == {each["text"] for each in OBJECTS}
    pairs = save(tmp_path, "pairs.jsonl", '["a text", "good"]\n' * 12)
    with pytest.raises(DataError, match="12 rows without one object in JSON"):
        read_files(Classification, [pairs])


@pytest.mark.parametrize("title", ["Reviews of 2024\n", "# made by hand\n\n"])
def test_a_header_below_a_title_is_no_example(tmp_path, title):
    rows = table(("review", "label"), lambda n: (review(n), n % 2))
    path = save(tmp_path, "a.csv", title + rows)
    with pytest.raises(DataError, match=r"expected the names of the columns, found '(Reviews|# made)"):
        read_files(Classification, [path])
    corpus = read_files(Classification, [path], reading=Reading(skip_invalid=True))
    assert corpus.labels == ("0", "1")
    assert corpus.train == read_files(Classification, [save(tmp_path, "b.csv", rows)]).train


def test_texts_with_commas_below_the_name_of_their_column_are_no_header(tmp_path):
    """The control of titles: a single column has a header of one field."""
    path = save(tmp_path, "a.csv", "text\nHello, world\n" + "".join(f"good {n}, bad {n}\n" for n in range(20)))
    said: list[str] = []
    assert [line for line, _ in read_texts(path, Reading(), say=said.append)] == list(range(2, 23))


def test_a_header_without_rows_is_told_as_that(tmp_path):
    path = save(tmp_path, "a.csv", "review,sentiment\n")
    with pytest.raises(DataError, match="expected examples below the header, found none"):
        read_files(Classification, [path])


def test_labels_that_may_stand_for_a_missing_one_are_told(tmp_path):
    def notes(label: str) -> str:
        rows = table(("text", "label"), lambda n: (review(n), label if n % 3 == 0 else ("good", "bad")[n % 2]))
        return "\n".join(read_files(Classification, [save(tmp_path, "a.csv", rows)]).notes)

    for label in ("NaN", "NA", "null", "#N/A"):
        assert f"labels that may stand for a missing one are learned as labels: {label} (" in notes(label)
    assert "missing" not in notes("nanny")


def test_of_two_columns_of_one_name_the_number_is_asked_for_and_works(tmp_path):
    path = save(tmp_path, "a.csv", table(("text", "label", "text"), lambda n: (review(n), n % 2, review(n + 100))))
    with pytest.raises(DataError, match="found text, text; give the number of one, from 1, with --text-column"):
        read_files(Classification, [path])
    with pytest.raises(DataError, match="give the number of one, from 1, with --text-column"):
        list(read_texts(path, Reading()))
    found = read_files(Classification, [path], reading=Reading(text_column="3"))
    assert review(100) in texts(found)


def test_what_may_be_a_header_is_settled_by_the_column_of_the_texts_alone(tmp_path):
    rows = "".join(f"not {word}\t{label}\n" for word, label in [("good", "bad"), ("bad", "good")] * 10)
    path = save(tmp_path, "a.tsv", "quite odd\tpuzzling\n" + rows)
    with pytest.raises(DataError, match=r"or name the column of the texts with --text-column$"):
        read_files(Classification, [path])
    assert len(read_files(Classification, [path], reading=Reading(text_column="quite odd")).train) == 16


def test_the_labels_of_the_model_are_told_where_another_stands(tmp_path):
    rows = "".join(f"a film {n},{('POS', 'NEG')[n % 2]}\n" for n in range(60))
    path = save(tmp_path, "a.csv", "text,label\n" + rows)
    said = r"not trained on \(texts from 'text', labels from 'label'\); "
    with pytest.raises(DataError, match=said + r"did you mean 'pos'\?"):
        read_split(Classification, [path], ["neg", "pos"])
    with pytest.raises(DataError, match=said + "expected one of: bad, good"):
        read_split(Classification, [path], ["bad", "good"])
    assert len(read_split(Classification, [path], ["NEG", "POS"]).examples) == 60  # the control


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (range(0, 80, 2), r"40 rows without a label \(lines 2, 4, 6, 8, 10, 12, 14, 16 and 32 more\)"),
        (range(9), r"9 rows without a label \(lines 2-10\)"),
        ([*range(0, 16, 2), 20, 21, 22], r"11 rows without a label \(lines 2, 4, 6, 8, 10, 12, 14, 16 and 3 more\)"),
    ],
)
def test_a_message_lists_few_lines(tmp_path, wrong, said):
    rows = "".join(f"a film {n},{'' if n in wrong else 'pos'}\n" for n in range(80))
    with pytest.raises(DataError, match=said):
        read_files(Classification, [save(tmp_path, "a.csv", "text,label\n" + rows)])


def test_labels_that_each_occur_once_are_refused_with_the_column_that_was_read(tmp_path):
    path = save(
        tmp_path, "a.csv", "text,author\n" + "".join(f"good film number {n} of many,writer {n}\n" for n in range(12))
    )
    with pytest.raises(DataError, match=r"found each on one \(texts from 'text', labels from 'author'\); name"):
        read_files(Classification, [path])
