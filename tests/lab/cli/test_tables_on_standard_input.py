"""Standard input that is a table or JSON lines is read as a file of them is; any other is a text a line."""

from __future__ import annotations

import io

import pytest

pytestmark = pytest.mark.usefixtures("beside_reviews")


@pytest.mark.parametrize("header", ["line,review", "text;label", '\ufeff"id"\t"text"'])
def test_a_table_on_standard_input_is_read_as_the_file_is(unrolled, tmp_path, monkeypatch, header):
    separator = next(each for each in ",;\t" if each in header)
    content = f'{header}\n"a dull{separator} slow film"{separator}1\n"a great\nfilm"{separator}0\n'
    if header.endswith(("review", 'text"')):
        content = f'{header}\n1{separator}"a dull{separator} slow film"\n2{separator}"a great\nfilm"\n'
    (tmp_path / "a.csv").write_text(content)
    for command in (("predict",), ("explain", "--file")):
        name, *option = command
        of_file = unrolled(name, "runs/reviews", *option, "a.csv")
        monkeypatch.setattr("sys.stdin", io.StringIO(content))
        piped = unrolled(name, "runs/reviews", *option, "-")
        assert (piped.status, piped.out) == (0, of_file.out)
        assert "standard input: read as a table, since its first line names the columns" in piped.err
        assert "dull" in piped.out


def test_json_lines_on_standard_input_are_read_as_the_file_is(unrolled, tmp_path, monkeypatch):
    content = '{"id": 1, "review": "a dull {film}"}\n{"id": 2, "review": "a great film"}\n\n'
    (tmp_path / "a.jsonl").write_text(content)
    of_file = unrolled("predict", "runs/reviews", "a.jsonl")
    monkeypatch.setattr("sys.stdin", io.StringIO(content))
    piped = unrolled("predict", "runs/reviews")
    assert (piped.status, piped.out) == (0, of_file.out)
    assert "standard input: read as JSON lines" in piped.err
    assert "\n1,a dull {film}," in piped.out
    monkeypatch.setattr("sys.stdin", io.StringIO(content.rstrip("\n") + "\na great film\n"))
    mixed = unrolled("predict", "runs/reviews")
    assert (mixed.status, mixed.out) == (65, "")
    assert "standard input:3: expected an object in JSON, found 'a great film'" in mixed.err


@pytest.mark.parametrize(
    "first",
    ["{a dull film}", "{", '["a film"]', "a review, a text", "review", "text me, later", '"text', "a dull, slow film"],
)
def test_a_first_line_that_is_a_text_is_none_of_names(unrolled, monkeypatch, first):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{first}\na great film\n"))
    piped = unrolled("predict", "runs/reviews")
    assert [line.partition(",")[0] for line in piped.out.splitlines()] == ["line", "1", "2"]
    assert "table" not in piped.err


@pytest.mark.parametrize(("first", "noted"), [("review", True), ('"Review"', True), ("a review", False), ("", False)])
def test_a_first_line_that_is_the_name_of_the_trained_column_alone_is_noted(unrolled, monkeypatch, first, noted):
    for command in (("predict",), ("explain", "--file")):
        name, *option = command
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{first}\na great film\n"))
        piped = unrolled(name, "runs/reviews", *option, "-")
        assert piped.status == 0
        assert ("standard input:1: " in piped.err and "if it is no text, leave the line out" in piped.err) == noted


def test_the_column_of_a_table_that_cannot_be_told_is_to_be_named_of_a_file(unrolled, tmp_path, monkeypatch):
    """Standard input takes no --text-column, which would be the advice about a file."""
    (tmp_path / "a.csv").write_text(content := "comment,sentiment\nfine,good\n")
    for given, advice in (("a.csv", "; name it with"), ("-", "; give the path of a file, and name it with")):
        monkeypatch.setattr("sys.stdin", io.StringIO(content))
        refused = unrolled("predict", "runs/reviews", given)
        assert (refused.status, refused.out) == (65, "")
        assert f"{advice} --text-column" in refused.err
    assert unrolled("predict", "runs/reviews", "a.csv", "--text-column", "comment").status == 0
