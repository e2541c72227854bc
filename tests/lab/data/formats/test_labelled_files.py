"""Texts with labels, in each of the formats that write them: the same examples, the same corpus."""

from __future__ import annotations

import gzip
import json
import lzma
from collections import Counter
from pathlib import Path

import pytest

from unrolled.errors import DataError, FileError, UnknownNameError, UsageError
from unrolled.lab.data import formats
from unrolled.lab.data.corpus import Classification, Language, Regression, Relations, Selection
from unrolled.lab.data.formats import FORMATS, read_files, read_split
from unrolled.lab.data.formats.brackets import BracketLines
from unrolled.lab.data.reading import Reading

WRITERS = {
    "tsv": lambda text, label: f"{text}\t{label}\n",
    "csv": lambda text, label: '"{}","{}"\n'.format(text.replace('"', '""'), label),
    "jsonl": lambda text, label: json.dumps({"id": 3, "text": text, "label": label}) + "\n",
}
KINDS = (Classification, Regression, Relations)


def write(folder, name, examples, writer=None):
    path = folder / name
    writer = writer or WRITERS[path.suffix[1:]]
    path.write_text("".join(writer(*example) for example in examples), encoding="utf-8", newline="\n")
    return path


def reviews(count):
    return [(f'It isn\'t "{i}", yes, no', "good" if i % 2 else "bad") for i in range(count)]


def all_of(corpus):
    return (*corpus.train, *corpus.dev, *corpus.test)


def test_the_formats_are_found_by_listing_the_folder():
    assert {"csv", "jsonl", "tsv"} <= set(FORMATS.names())
    folder = Path(formats.__file__).parent
    written_in = {member.__module__.rpartition(".")[2] for member in FORMATS.members.values()}
    assert written_in == {path.stem for path in folder.glob("*.py")} - {"__init__", "base"}


@pytest.mark.parametrize("name", FORMATS.names())
def test_each_says_what_it_looks_like_and_what_it_gives(name):
    member = FORMATS.get(name)
    assert member.description
    assert "\n" not in member.description
    assert member.kinds
    assert all(suffix.startswith(".") for suffix in member.suffixes)


def claimed_twice(members):
    """The kinds and suffixes that two formats claim; a format without suffixes claims files of any name."""
    claims = Counter(
        (kind.__name__, suffix or "any file")
        for member in members
        for kind in member.kinds
        for suffix in member.suffixes or ("",)
    )
    return {claim for claim, count in claims.items() if count > 1}


def test_no_two_formats_claim_the_same_file():
    class Again(BracketLines):
        name = "again"

    members = [*FORMATS.members.values()]
    twice = claimed_twice(members)
    assert not twice, f"give one of the formats another suffix, or another kind of corpus: {twice}"
    assert claimed_twice([*members, Again]) == {("Brackets", "any file")}


@pytest.mark.parametrize("suffix", WRITERS)
def test_texts_are_tokenised_and_split_8_1_1(tmp_path, suffix):
    corpus = read_files(Classification, [write(tmp_path, f"mine.{suffix}", reviews(50))])
    assert type(corpus) is Classification
    assert (corpus.name, corpus.labels) == ("mine", ("bad", "good"))
    assert [len(split) for split in (corpus.train, corpus.dev, corpus.test)] == [40, 5, 5]
    assert len({example.tokens for example in all_of(corpus)}) == 50
    for example in all_of(corpus):
        number = example.tokens[4]
        assert example.tokens == ("It", "is", "n't", "``", number, "''", ",", "yes", ",", "no")
        assert example.label == int(number) % 2


def test_every_format_gives_the_same_corpus_packed_or_not(tmp_path):
    paths = [write(tmp_path, f"mine.{suffix}", reviews(30)) for suffix in WRITERS]
    for suffix, pack in ((".gz", gzip.compress), (".xz", lzma.compress)):
        paths.append(tmp_path / f"mine.tsv{suffix}")
        paths[-1].write_bytes(pack(paths[0].read_bytes()))
    first, *others = (read_files(Classification, [path]) for path in paths)
    assert others == [first] * 4
    assert read_files(Classification, [paths[0]]) == first
    assert read_files(Classification, [write(tmp_path, "mine.tsv", reviews(31))]) != first


@pytest.mark.parametrize("suffix", WRITERS)
def test_ratings_are_numbers_seen_before_or_not(tmp_path, suffix):
    corpus = read_files(Regression, [write(tmp_path, f"mine.{suffix}", [(f"text {i}", i / 4 - 1) for i in range(20)])])
    assert type(corpus) is Regression
    assert sorted(example.rating for example in all_of(corpus)) == [i / 4 - 1 for i in range(20)]
    assert [len(corpus.train), len(corpus.dev), len(corpus.test)] == [16, 2, 2]


@pytest.mark.parametrize("suffix", WRITERS)
def test_marked_entities_keep_their_markers(tmp_path, suffix):
    rows = [(f'The "<e1>fire</e1>" of day{i} came from a <e2>spark</e2>.', f"r{i % 2}(e1,e2)") for i in range(20)]
    corpus = read_files(Relations, [write(tmp_path, f"mine.{suffix}", rows)])
    assert type(corpus) is Relations
    assert corpus.labels == ("r0(e1,e2)", "r1(e1,e2)")
    assert corpus.test[0].tokens[:7] == ("The", "``", "<e1>", "fire", "</e1>", "''", "of")
    assert corpus.test[0].tokens[-5:] == ("a", "<e2>", "spark", "</e2>", ".")


def test_a_test_file_leaves_only_dev_to_be_split_off(tmp_path):
    train, dev = write(tmp_path, "a.tsv", reviews(40)), write(tmp_path, "b.csv.tsv", reviews(7), WRITERS["tsv"])
    corpus = read_files(Classification, [train], test=[dev])
    assert [len(corpus.train), len(corpus.dev), len(corpus.test)] == [36, 4, 7]
    assert [example.tokens[4] for example in corpus.test] == [str(i) for i in range(7)]
    corpus = read_files(Classification, [train], dev=[dev], test=[dev])
    assert [len(corpus.train), len(corpus.dev), len(corpus.test)] == [40, 7, 7]


def test_several_training_files_are_one_corpus(tmp_path):
    paths = [write(tmp_path, f"{part}.tsv", reviews(40)[part * 20 : part * 20 + 20]) for part in range(2)]
    corpus = read_files(Classification, paths)
    whole = read_files(Classification, [write(tmp_path, "0.tsv", reviews(40))])
    assert corpus == whole


def test_the_only_example_of_a_class_is_trained_on(tmp_path):
    rows = [("common", "a")] * 15 + [(f"rare {i}", f"b{i}") for i in range(15)]
    corpus = read_files(Classification, [write(tmp_path, "mine.tsv", rows)])
    assert {example.label for example in corpus.train} == set(range(16))
    assert {example.label for example in (*corpus.dev, *corpus.test)} == {0}
    assert (len(corpus.dev), len(corpus.test)) == (3, 3)


@pytest.mark.parametrize(
    ("name", "header", "row"),
    [
        ("mine.tsv", "id\tLabel\tsentence\n", "7\t{label}\t{text}\n"),
        ("mine.csv", "Class,id, Text\n", '{label},7,"{text}"\n'),
    ],
)
def test_a_header_names_the_columns(tmp_path, name, header, row):
    rows = [(f"fine, text {i}", f"c{i % 2}") for i in range(20)]
    path = tmp_path / name
    path.write_text(header + "".join(row.format(text=text, label=label) for text, label in rows))
    corpus = read_files(Classification, [path])
    assert corpus.labels == ("c0", "c1")
    assert {example.tokens for example in all_of(corpus)} == {("fine", ",", "text", str(i)) for i in range(20)}


def test_a_text_in_a_tsv_without_a_header_may_have_tabs_and_quotes(tmp_path):
    rows = [(f'say "hello\tto {i}', f"c{i % 2}") for i in range(20)]
    corpus = read_files(Classification, [write(tmp_path, "mine.tsv", rows)])
    assert {example.tokens for example in all_of(corpus)} == {("say", "``", "hello", "to", str(i)) for i in range(20)}


def test_a_text_in_a_csv_may_go_over_several_lines(tmp_path):
    rows = [(f'first,\n"second" {i}', f"c{i % 2}") for i in range(20)]
    path = write(tmp_path, "mine.csv", rows)
    corpus = read_files(Classification, [path])
    assert {example.tokens for example in all_of(corpus)} == {
        ("first", ",", "``", "second", "''", str(i)) for i in range(20)
    }
    path.write_text(path.read_text() + "one column\n")
    with pytest.raises(DataError, match=r"mine\.csv:41: expected 2 columns, found 1 in 'one column'"):
        read_files(Classification, [path])


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_byte_order_marks_cr_lf_and_other_line_ends_inside_a_text_are_no_errors(tmp_path, suffix, end, mark):
    rows = [(f"one\u0085two\u2028three {i}", f"c{i % 2}") for i in range(20)]
    path = write(tmp_path, f"mine.{suffix}", rows)
    path.write_bytes((mark + path.read_text(encoding="utf-8").replace("\n", end)).encode())
    corpus = read_files(Classification, [path])
    assert corpus.labels == ("c0", "c1")
    assert {example.tokens for example in all_of(corpus)} == {("one", "two", "three", str(i)) for i in range(20)}


def test_a_json_label_may_be_a_number(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(f'{{"text": "t{i}", "label": {i % 2}}}\n' for i in range(20)))
    assert read_files(Classification, [path]).labels == ("0", "1")
    assert {example.rating for example in all_of(read_files(Regression, [path]))} == {0.0, 1.0}


def test_the_format_may_be_named_where_the_suffix_does_not_say_it(tmp_path):
    path = write(tmp_path, "mine.data", reviews(20), WRITERS["tsv"])
    assert len(read_files(Classification, [path], format="tsv").train) == 16
    with pytest.raises(UsageError, match=r"mine\.data: no format of the suffix '\.data' can be read for class.*tsv \("):
        read_files(Classification, [path])
    with pytest.raises(UnknownNameError, match="unknown format 'tvs'; did you mean 'tsv'"):
        read_files(Classification, [path], format="tvs")
    with pytest.raises(UsageError, match="the format tsv cannot be read for language; expected one of"):
        read_files(Language, [path], format="tsv")
    with pytest.raises(UsageError, match=r"for selection; expected one of answers \(.*\): question<TAB>sentence<TAB>1"):
        read_files(Selection, [path])


def test_files_of_two_formats_or_no_files_are_refused(tmp_path):
    paths = [write(tmp_path, f"mine.{suffix}", reviews(20)) for suffix in ("tsv", "csv")]
    with pytest.raises(UsageError, match=r"files of several formats \(csv, tsv\) for one corpus; expected one"):
        read_files(Classification, paths[:1], test=paths[1:])
    with pytest.raises(UsageError, match="no training file; pass at least one"):
        read_files(Classification, [])


def test_a_file_that_is_not_there_is_a_file_error(tmp_path):
    with pytest.raises(FileError, match=r"mine\.tsv: cannot be read: No such file"):
        read_files(Classification, [tmp_path / "mine.tsv"])


def test_a_key_that_is_written_twice_with_one_value_loses_nothing(tmp_path):
    plain = [f'{{"text": "text {i}", "label": {i % 2}}}' for i in range(12)]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([*plain, '{"text": "a b", "text": "a b", "label": 1, "meta": {"n": 1, "n": 1}}']))
    corpus = read_files(Classification, [path])
    assert sum(len(split) for split in (corpus.train, corpus.dev, corpus.test)) == 13
    path.write_text("\n".join([*plain, '{"text": "a b", "label": 1, "label": true}']))
    with pytest.raises(DataError, match="each key once in an object"):
        read_files(Classification, [path])


def test_an_error_of_too_few_examples_says_which_rows_were_left_out(tmp_path):
    skipping, none = Reading(skip_invalid=True), tmp_path / "none.csv"
    none.write_bytes(b"text,label\nsome words,maybe\nmore words,maybe\n")
    said = (
        r"none\.csv:1: expected an example, found none; give a file with at least one; left out: .*none\.csv: 2 rows "
    )
    with pytest.raises(DataError, match=said + r"with a label that no training example has \(lines 2-3\)$"):
        read_split(Classification, [none], ("bad", "good"), reading=skipping)
    few = tmp_path / "few.csv"
    few.write_bytes(b"text,label\n" + b"some words,good\nother words,bad\n" * 4 + b"words,\n" * 9)
    with pytest.raises(
        DataError, match=r"found 8; a tenth .* files; left out: .*: 9 rows without a label \(lines 10-18\)$"
    ):
        read_files(Classification, [few], reading=skipping)
    few.write_bytes(b"text,label\n" + b"some words,good\nother words,bad\n" * 4)  # control: nothing is left out
    with pytest.raises(DataError, match=r"found 8; a tenth .* files$"):
        read_files(Classification, [few], reading=skipping)
