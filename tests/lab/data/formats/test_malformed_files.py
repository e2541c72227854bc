"""Files as they should not be: each is answered in one line, with the place, what was expected, and a hint."""

from __future__ import annotations

import gzip
import lzma
import re

import pytest

from one_line import check_answer
from unrolled.errors import DataError
from unrolled.lab.data.corpus import Classification, Regression, Relations, Tagging
from unrolled.lab.data.formats import read_files
from unrolled.lab.data.text_files import LONGEST_LINE

TSV = b"".join(b"text %d\t%d\n" % (i, i % 2) for i in range(12))
CSV = TSV.replace(b"\t", b",")
JSONL = b"".join(b'{"text": "text %d", "label": %d}\n' % (i, i % 2) for i in range(12))
PAIRS = b"".join(b"<e1>a</e1> of <e2>b</e2> %d\t%d\n" % (i, i % 2) for i in range(12))
AFTER = 13  # the line that follows these twelve

MALFORMED = [
    # A file of any kind
    (Classification, "a.tsv", TSV + b"caf\xe9\tgood\n", AFTER, "UTF-8 text, found the byte 0xe9 in 'caf\ufffd'; save"),
    (
        Classification,
        "a.tsv",
        TSV.decode().encode("utf-16"),
        1,
        "UTF-8 text, found UTF-16; save the file with the encoding",
    ),
    (
        Classification,
        "a.tsv",
        TSV.decode().encode("utf-16-le"),
        1,
        "UTF-8 text, found UTF-16LE without a byte-order mark; save the file with the encoding UTF-8, or convert it: "
        "iconv -f UTF-16LE",
    ),
    (Classification, "a.tsv", TSV.decode().encode("utf-32"), 1, "UTF-8 text, found UTF-32; save the file with"),
    (Classification, "a.tsv", TSV.decode().encode("utf-16-be"), 1, "UTF-8 text, found UTF-16BE without"),
    (Classification, "a.tsv", TSV + b"nu\0ll\tgood\n", AFTER, "text, found a NUL at column 3; the file is damaged"),
    (
        Classification,
        "a.tsv",
        TSV + b"long " * 2_000_000,
        AFTER,
        "a line of at most 4,194,304 bytes, found a longer one",
    ),
    (Classification, "a.tsv.gz", gzip.compress(TSV)[:12], 1, "a whole .gz file, found Compressed file ended before"),
    (
        Classification,
        "a.tsv.xz",
        lzma.compress(TSV)[:24],
        1,
        "a whole .xz file, found Compressed file ended before",
    ),
    (Classification, "a.tsv.gz", TSV, 1, "a whole .gz file, found Not a gzipped file"),
    (Classification, "a.tsv", b"", None, "at least 10 examples, found 0; a tenth of them is kept"),
    (Classification, "a.tsv", TSV[:72], None, "at least 10 examples, found 8; a tenth of them is kept"),
    # Tabs
    (Classification, "a.tsv", TSV + b"no tab at all\n", AFTER, "2 columns, found 1 in 'no tab at all'; separate"),
    (Classification, "a.tsv", TSV + b"\n" + TSV, AFTER, "a text, found an empty row; every label needs a text"),
    (Classification, "a.tsv", TSV + b"no label\t \n", AFTER, "a label, found the text 'no label' alone; every text"),
    (Classification, "a.tsv", TSV + b" \tgood\n", AFTER, "a text, found the label 'good' alone; every label needs"),
    (Classification, "a.tsv", b"text\tlabel\n" + TSV + b"one\n", 14, "2 columns, found 1 in 'one'; separate the"),
    (Classification, "a.tsv", b"text\tsentence\tlabel\n" + TSV, 1, "one column of texts, found text, sentence; name"),
    (
        Classification,
        "a.tsv",
        b"".join(b"words\t%d\n" % i for i in range(12)),
        None,
        "labels that occur on several lines",
    ),
    # Commas
    (
        Classification,
        "a.csv",
        CSV + b"text, with a comma,good\n",
        AFTER,
        "2 columns, found 3 in 'text, with a comma,good'; put a",
    ),
    (
        Classification,
        "a.csv",
        CSV + b'"never closed,good\n' + CSV,
        AFTER,
        "fields in closed quotes, or without quotes, f",
    ),
    (
        Classification,
        "a.csv",
        CSV + b'"a "quoted" word",good\n',
        AFTER,
        "fields in closed quotes, or without quotes, fo",
    ),
    (
        Classification,
        "a.csv",
        CSV + b'"' + b"x\n" * 2_200_000 + b'",good\n',
        AFTER,
        "fields in closed quotes, or without quotes, fou",
    ),
    (Classification, "a.csv", CSV + b"a\rfilm,1\n", AFTER, "lines that end in a line feed, found a carriage return o"),
    (Classification, "a.csv", b"\n" + CSV, 1, "a text, found an empty row; every label needs a text"),
    (
        Classification,
        "a.csv",
        b"label,id,text\n" + CSV.replace(b",", b",1,") + b"text 0,0\n",
        14,
        "3 columns, found 2 in 'text 0,0'; put a text or a",
    ),
    (
        Relations,
        "a.csv",
        PAIRS.replace(b"\t", b",") + b"<e1>a</e1>,r(e1,e2)\n",
        AFTER,
        "2 columns, found 3 in '<e1>a</e1>,r(",
    ),
    # JSON
    (Classification, "a.jsonl", JSONL + b'{"text": "cut off", "la\n', AFTER, "an object in JSON, found '{"),
    (Classification, "a.jsonl", JSONL + b"[" * 100_000 + b"\n", AFTER, "an object in JSON, found '[[["),
    (Classification, "a.jsonl", JSONL + b"9" * 5_000 + b"\n", AFTER, "an object in JSON, found '999"),
    (
        Classification,
        "a.jsonl",
        JSONL + b'{"text": "a", "label": "x", "label": "y"}\n',
        AFTER,
        'each key once in an object, found "label": "x" and "label": "y"; leave one',
    ),
    (Classification, "a.jsonl", JSONL + b'["text", "label"]\n', AFTER, "an object in JSON, found '["),
    (
        Classification,
        "a.jsonl",
        JSONL + b'{"text": "x"}\n',
        AFTER,
        'the key "label", found only "text"; an example has',
    ),
    (
        Classification,
        "a.jsonl",
        JSONL + b"{}\n",
        AFTER,
        'the key "text", found none; an example has a text and a label',
    ),
    (
        Classification,
        "a.jsonl",
        JSONL + b'{"text": 3, "label": "x"}\n',
        AFTER,
        'a string for "text", found 3; in quotes',
    ),
    (Classification, "a.jsonl", JSONL + b'{"text": "a\\u0000", "label": "x"}\n', AFTER, 'a string for "text", found'),
    (
        Classification,
        "a.jsonl",
        JSONL + b'{"text": "x", "label": null}\n',
        AFTER,
        'a string or a number for "label", found n',
    ),
    (
        Classification,
        "a.jsonl",
        JSONL + b'{"text": "x", "label": ["y"]}\n',
        AFTER,
        'a string or a number for "label", found ["y"]; write the label that it contains under a key of its own',
    ),
    (
        Classification,
        "a.jsonl",
        JSONL + b'{"text": {"body": "x"}, "label": "y"}\n',
        AFTER,
        'a string for "text", found {"body": "x"}; write the text that it contains under a key of its own',
    ),
    (
        Classification,
        "a.jsonl",
        JSONL + b'{"text": "x", "label": NaN}\n',
        AFTER,
        "a finite number, found NaN; leave the example out, or",
    ),
    (
        Classification,
        "a.jsonl",
        JSONL + b'{"text": "half \\ud83d of it", "label": "x"}\n',
        AFTER,
        'whole characters, found "\\ud83d"; write a character',
    ),
    (
        Classification,
        "a.jsonl",
        JSONL + b'{"text": "x", "label": "\\ude00"}\n',
        AFTER,
        'whole characters, found "\\ude00"; write a character',
    ),
    # Numbers
    (
        Regression,
        "a.tsv",
        TSV + b"text\tgood\n",
        AFTER,
        "a number, found 'good'; for labels that are names, train class",
    ),
    (Regression, "a.tsv", TSV + b"text\tNaN\n", AFTER, "a finite number, found 'NaN'; leave the example out"),
    (Regression, "a.csv", CSV + b"text,1e999\n", AFTER, "a finite number, found '1e999'; leave the example out"),
    (Regression, "a.jsonl", JSONL + b'{"text": "x", "label": NaN}\n', AFTER, "a finite number, found NaN; leave the"),
    (Regression, "a.tsv", TSV + b"text\t1_000\n", AFTER, "a number, found '1_000'; for labels that are names"),
    # Entities
    (
        Relations,
        "a.tsv",
        PAIRS + b"a of b\tx\n",
        AFTER,
        "<e1>…</e1> and <e2>…</e2>, once each and apart, found no mark",
    ),
    (
        Relations,
        "a.tsv",
        PAIRS + b"<e1>a</e1> of b\tx\n",
        AFTER,
        "<e1>…</e1> and <e2>…</e2>, once each and apart, found",
    ),
    (
        Relations,
        "a.tsv",
        PAIRS + b"<e1>a <e2>b</e2></e1>\tx\n",
        AFTER,
        "<e1>…</e1> and <e2>…</e2>, once each and apart,",
    ),
    (
        Relations,
        "a.tsv",
        PAIRS + b"<e1> </e1> of <e2>b</e2>\tx\n",
        AFTER,
        "a word between <e1> and </e1>, found none; mark",
    ),
]


@pytest.mark.parametrize(("kind", "name", "content", "line", "expected"), MALFORMED, ids=[row[4] for row in MALFORMED])
def test_a_malformed_file_is_answered_in_one_line(tmp_path, kind, name, content, line, expected):
    path = tmp_path / name
    path.write_bytes(content)
    check_answer(kind, path, line, expected)


@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [
        (Classification, "a.tsv", TSV),
        (Classification, "a.csv", CSV),
        (Classification, "a.jsonl", JSONL),
        (Regression, "a.tsv", TSV),
        (Regression, "a.csv", CSV),
        (Regression, "a.jsonl", JSONL),
        (Relations, "a.tsv", PAIRS),
    ],
)
def test_what_the_malformed_files_were_made_of_is_read(tmp_path, kind, name, content):
    (tmp_path / name).write_bytes(content)
    assert len(read_files(kind, [tmp_path / name]).train) == 10


def test_a_name_nan_and_both_halves_of_a_character_are_read(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(JSONL + b'{"text": "\\ud83d\\ude00", "label": "NaN"}\n' * 3)
    corpus = read_files(Classification, [tmp_path / "a.jsonl"])
    assert corpus.labels == ("0", "1", "NaN")
    assert any("\N{GRINNING FACE}" in example.tokens for example in corpus.train)


def test_the_longest_line_that_is_allowed_is_read(tmp_path):
    label = b"\t0\n"
    (tmp_path / "a.tsv").write_bytes(TSV + b"x" * (LONGEST_LINE - len(label)) + label)
    corpus = read_files(Classification, [tmp_path / "a.tsv"])
    assert sum(len(split) for split in (corpus.train, corpus.dev, corpus.test)) == 13


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_label_never_trained_on_is_refused_where_it_stands(tmp_path, split):
    train, other = tmp_path / "train.tsv", tmp_path / "other.tsv"
    train.write_bytes(TSV)
    other.write_bytes(b"some words\t0\nmore words\tmaybe\n")
    said = f"{re.escape(str(other))}:2: expected a label that training examples have, found 'maybe'; a model cannot"
    with pytest.raises(DataError, match=said):
        read_files(Classification, [train], **{split: [other]})


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_file_without_an_example_beside_a_good_one_is_named(tmp_path, split):
    train, other = tmp_path / "train.csv", tmp_path / "other.csv"
    train.write_bytes(b"text,label\n" + CSV)
    for content in (b"", b"text,label\n"):
        other.write_bytes(content)
        with pytest.raises(
            DataError, match=r"other\.csv:1: expected an example, found none; give a file with at least"
        ):
            read_files(Classification, [train], **{split: [other]})


def test_one_class_is_nothing_to_tell_apart(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"some words\tx\n" * 20)
    with pytest.raises(DataError, match=r"a\.tsv: expected at least two labels, found 'x' on every example"):
        read_files(Classification, [tmp_path / "a.tsv"])


@pytest.mark.parametrize("tag", ["O", "NN"])
def test_one_tag_is_nothing_to_tell_apart(tmp_path, tag):
    (tmp_path / "a.conll").write_bytes(f"some {tag}\nwords {tag}\n\n".encode() * 20)
    with pytest.raises(DataError, match=rf"a\.conll: expected at least two tags, found '{tag}' on every token"):
        read_files(Tagging, [tmp_path / "a.conll"])
    (tmp_path / "b.conll").write_bytes(f"some {tag}\nwords X\n\n".encode() * 20)
    assert {each for sentence in read_files(Tagging, [tmp_path / "b.conll"]).train for each in sentence.tags} == {
        tag,
        "X",
    }
