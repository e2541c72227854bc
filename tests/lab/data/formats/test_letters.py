"""Texts and labels that look the same are the same, however their accents and invisible characters are written."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from unrolled.lab.data.corpus import Classification, Regression, Tagging, Translation
from unrolled.lab.data.formats import read_files, read_split
from unrolled.lab.data.tokenise import line_tokeniser, tokenise, tokenise_unknown
from written_tables import save

WORDS = "un café très crème à Zürich 한국 tiếng".split()


def apart(text):
    """Write accents as characters of their own, as macOS does."""
    return unicodedata.normalize("NFD", text)


def words(corpus):
    return [example.tokens for split in (corpus.train, corpus.dev, corpus.test) for example in split]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
def test_texts_and_labels_are_the_same_in_both_forms(tmp_path, name):
    def written(form):
        rows = [(f"{WORDS[n % 8]} {WORDS[n % 5]} {n}", ("très bon", "mauvais")[n % 2]) for n in range(40)]
        rows = [tuple(map(form, row)) for row in rows]
        if name == "a.jsonl":
            return "".join(json.dumps(dict(zip(("text", "label"), row, strict=True))) + "\n" for row in rows)
        return "".join(("\t" if name == "a.tsv" else ",").join(row) + "\n" for row in [("text", "label"), *rows])

    found = [read_files(Classification, [save(tmp_path, name, written(form))]) for form in (str, apart)]
    assert found[0].labels == found[1].labels == ("mauvais", "très bon")
    assert words(found[0]) == words(found[1])
    # the control: what is shown to the user is what was written
    shown = [[each.text for each in corpus.train] for corpus in found]
    assert shown[1] == list(map(apart, shown[0])) != shown[0]


def test_tagged_and_parallel_sentences_are_the_same_in_both_forms(tmp_path):
    sentences = "\n".join(f"{WORDS[n % 8]} {'A' if n % 2 else 'B'}\n" for n in range(40))
    found = [read_files(Tagging, [save(tmp_path, "a.conll", form(sentences))]) for form in (str, apart)]
    assert words(found[0]) == words(found[1])
    lines = "".join(f"{WORDS[n % 8]} {n}\n" for n in range(40))
    pairs = []
    for form in (str, apart):
        files = [save(tmp_path, name, form(lines)) for name in ("a.fr", "a.tok.en")]
        pairs.append(read_files(Translation, files))
    assert pairs[0].train == pairs[1].train


@pytest.mark.parametrize(
    "split", [tokenise, line_tokeniser(Path("a.tok.fr")), lambda line: tokenise_unknown(line, WORDS)]
)
def test_every_way_to_split_composes_letters(split):
    line = " ".join(WORDS)
    assert split(apart(line)) == split(line) == WORDS
    assert split("cafe") != split("café")  # the control: an accent is no ornament


@pytest.mark.parametrize("sign", ["\u200b", "\ufeff", "\u00ad", "\u2060"])
def test_labels_that_differ_by_what_nobody_sees_are_one(tmp_path, sign):
    def written(first, second):
        return "text,label\n" + "".join(f"text {n},{(first, second, 'no')[n % 3]}\n" for n in range(60))

    corpus = read_files(Classification, [save(tmp_path, "a.csv", written(f"yes{sign}", f"{sign}yes"))])
    assert corpus.labels == ("no", "yes")
    rated = read_files(Regression, [save(tmp_path, "b.csv", written(f"{sign}3", "4").replace("no", "5"))])
    assert {each.rating for each in rated.train} == {3.0, 4.0, 5.0}
    joined = "yes\u200d"  # the control: a joiner changes how letters look
    assert len(read_files(Classification, [save(tmp_path, "c.csv", written(joined, "yes"))]).labels) == 3


def test_a_run_of_before_keeps_its_labels(tmp_path):
    path = save(tmp_path, "a.csv", "text,label\na,très\nb,non\n" + apart("c,très\n"))
    for known in (["non", "très"], ["non", apart("très")], ["non\u200b", "très"]):
        assert [each.label for each in read_split(Classification, [path], known).examples] == [1, 0, 1]
