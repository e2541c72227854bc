"""Properties of characters: hand-made texts, and Python's source against a count of our own."""

from __future__ import annotations

import tokenize

import pytest
import torch

from unrolled.errors import DataError
from unrolled.lab.papers.analyses.sentences.text_properties import PROSE, PYTHON, prose_properties, python_properties


def marked(text, name, properties):
    """Write a property under a text."""
    return "".join("\n" if c == "\n" else f"{int(v)}" for c, v in zip(text, properties(text)[name], strict=True))


def test_every_property_is_told_of_every_character():
    assert tuple(prose_properties("a b\n")) == PROSE
    assert tuple(python_properties("a = 1\n")) == PYTHON
    for told in (*prose_properties("a b\n").values(), *python_properties("a = 1").values()):
        assert told.shape in {(4,), (5,)}


def test_a_line_is_counted_from_its_beginning():
    assert prose_properties("ab\n\nc")["position in line"].tolist() == [1, 2, 0, 0, 1]
    assert python_properties("x\n")["position in line"].tolist() == [1, 0]


def test_quotations_are_open_from_mark_to_mark_and_end_with_their_paragraph():
    text = 'He: "No."\n\n"It goes\non\n\n"and on." End'
    told = "000011110\n\n11111111\n11\n\n1111111100000"
    expected = "".join("\n" if c == "\n" else m for c, m in zip(text, told.ljust(len(text), "0"), strict=True))
    assert marked(text, "inside quotes", prose_properties) == expected
    # the paragraph's last line end is still inside the quotation that was never closed; what follows it is not
    assert prose_properties('"a\n\nb')["inside quotes"].tolist() == [1, 1, 1, 1, 0]


SOURCE = '''\
def f(a):  # (if
    """x["""
    if (a and
            b[r"("]): return {1: 2}
    elif not a: return (a if a else b)
'''
TOLD = {
    "inside a string": """\
0000000000000000
000011111110
0000000000000
00000000000000011000000000000000000
00000000000000000000000000000000000000
""",
    "inside a comment": """\
0000000000011111
000000000000
0000000000000
00000000000000000000000000000000000
00000000000000000000000000000000000000
""",
    "inside an if": """\
0000000000000000
000000000000
0000011111111
11111111111111111111000000000000000
00000001111111000000000000000000000000
""",
    "bracket depth": """\
0000011000000000
000000000000
0000000111111
11111111111112222210000000000111110
00000000000000000000000111111111111110
""",
    "block depth": """\
0000000000000000
000011111111
1111111111111
11111111111111111111111111111111111
11111111111111111111111111111111111111
""",
}


@pytest.mark.parametrize("name", TOLD)
def test_python_is_read_as_python_reads_it(name):
    assert marked(SOURCE, name, python_properties) == TOLD[name]


def test_a_string_or_a_comment_is_either():
    told = python_properties(SOURCE)
    assert torch.equal(told["inside a string or comment"], told["inside a string"] + told["inside a comment"])


def test_columns_are_characters_though_the_parser_counts_bytes():
    line = "naïve = 'ü'; x = f(1)\n"
    assert marked(line + "if é: pass\n", "inside an if", python_properties) == "0" * 21 + "\n0111000000\n"
    assert marked(line, "inside a string", python_properties).index("1") == line.index("'")


def test_blocks_end_where_the_next_statement_begins_and_files_may_follow_each_other():
    source = "if a:\n  b\n  # c\n\nd\n"
    assert marked(source, "block depth", python_properties) == "00000\n001\n11111\n\n0\n"


def test_fields_of_strings_are_inside_them():
    source = "f'a{b[\"c\"](d)}e' + g(h)\n"  # whether the tokenizer knows of fields, from Python 3.12 on, or not
    assert marked(source, "inside a string", python_properties) == "0" + "1" * 14 + "0" * 8 + "\n"
    assert marked(source, "bracket depth", python_properties) == "0" * 20 + "110\n"


def test_a_whole_module_of_the_library_comes_out_even():
    with tokenize.open(tokenize.__file__) as file:
        source = file.read()
    told = python_properties(source)
    assert int(told["bracket depth"].min()) == int(told["bracket depth"][-1]) == 0
    assert set(told["inside a string"].tolist()) == set(told["inside an if"].tolist()) == {0, 1}
    begin, comments = 0, 0
    for line in source.split("\n"):  # a rougher count: a line that begins with #, outside a string, is all comment
        if line.lstrip().startswith("#") and not told["inside a string"][begin]:
            comments += 1
            assert told["inside a comment"][begin + line.index("#") : begin + len(line)].all()
        begin += len(line) + 1
    assert comments > 10


@pytest.mark.parametrize("source", ["def f(:\n", "x = (1,\n", "'''open\n"])
def test_what_is_not_python_is_refused(source):
    with pytest.raises(DataError, match="not Python source"):
        python_properties(source)
