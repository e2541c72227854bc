"""On a page of several examples, those whose texts are alike are told apart by their numbers."""

from __future__ import annotations

import re

from tests.report.test_page import items

from unrolled.report.page import render_page, render_pages

SERIES = ["x0", "x1", "x2"]


def test_examples_with_alike_texts_are_numbered(build):
    page = render_pages([[build(SERIES)], [build(["a", "b"])], [build(SERIES)], [build(SERIES, name="rnn")]])
    assert [item["number"] for item in items(page)] == [0, None, 2, None]
    listed = re.findall(r'<th scope="row"><bdi>(.*?)</bdi></th><td><bdi dir="ltr">', page)  # where no script runs
    assert listed[:3] == ["example 0: x0 x1 x2", "a b", "example 2: x0 x1 x2"]


def test_a_page_of_one_example_numbers_nothing(build):
    assert [item["number"] for item in items(render_page([build(SERIES), build(SERIES)]))] == [None]


def test_the_ledger_says_of_which_sequence_its_ngrams_are(build):
    page = render_pages([[build(SERIES)], [build(SERIES, name="load")], [build(SERIES, name="a\tb")]])
    named = [item["panels"][0]["options"][0]["ledger"][0]["name"] for item in items(page)]
    assert named == ["n-grams", "n-grams of load", "n-grams of a␉b"]
    assert "the sum of n-grams of load " in render_page([build(SERIES, name="load")])  # where no script runs
