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
