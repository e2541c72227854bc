"""The page in a real browser: headless chromium runs its script and hands back the document it made."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from unrolled.report.formatting import minus, signed
from unrolled.report.page import render_page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path"),
]


class Document(HTMLParser):
    """The elements of a dumped document with their attributes, its title, and the text of the hover box."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tip, self.title = "", ""
        self.inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.elements.append((tag, given))
        if given.get("id") == "tip" or (tag == "title" and not self.title):
            self.inside = [tag]
        elif self.inside:
            self.inside.append(tag)

    def handle_endtag(self, tag):
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data):
        if self.inside[:1] == ["div"]:
            self.tip += data + " "
        elif self.inside[:1] == ["title"]:
            self.title += data

    def having(self, **wanted: str) -> list[dict[str, str | None]]:
        return [given for _, given in self.elements if wanted.items() <= given.items()]

    def cells(self) -> list[dict[str, str | None]]:
        return [given for _, given in self.elements if (given.get("class") or "").split()[:1] == ["cell"]]


@pytest.fixture
def browse(tmp_path: Path):
    def open_page(html: str, fragment: str = "") -> Document:
        path = tmp_path / "page.html"
        path.write_text(html, encoding="utf-8")
        arguments = (
            "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
            "--disable-background-networking --disable-component-update --window-size=1200,1600 "
            "--virtual-time-budget=2000 --dump-dom"
        )
        done = subprocess.run(
            [
                CHROMIUM,
                *arguments.split(),
                f"--user-data-dir={tmp_path / 'profile'}",
                f"{path.as_uri()}{fragment}",
            ],
            capture_output=True,
            check=True,
            timeout=120,
        )
        return Document(done.stdout.decode())

    return open_page


def test_hostile_tokens_are_drawn_and_none_runs(build, browse, all_hostile):
    attribution = build(all_hostile, bidirectional=True)
    page = browse(render_page([attribution], title="Safe"))
    count = len(all_hostile)
    assert len(page.cells()) == 2 * count * (count + 1) // 2
    assert len([tag for tag, _ in page.elements if tag == "script"]) == 2
    assert not [tag for tag, _ in page.elements if tag in ("img", "iframe", "object")]
    assert not [name for _, given in page.elements for name in given if name.startswith("on")]
    assert page.title == "Safe"
    assert all(re.search(r"score (0|[+−])", cell["aria-label"]) for cell in page.cells())


def test_the_policy_stops_a_script_that_is_not_ours(build, browse):
    intruder = "<script>document.title='owned'</script></body>"
    page = render_page([build()], title="Safe")
    assert browse(page.replace("</body>", intruder)).title == "Safe"
    open_door = re.sub(r"<meta http-equiv[^>]*>", "", page)
    assert browse(open_door.replace("</body>", intruder)).title == "owned"


def test_the_address_picks_expansion_quantity_and_ngram(build, browse):
    zero = build(expansion="zero", exact=False, mean=True)
    html = render_page([build(mean=True), zero])
    page = browse(html, "#expansion=zero&show=contribution&ngram=1-4")
    assert [tab["aria-selected"] for tab in page.having(role="tab")] == ["false", "true"]
    first, second = page.having(role="tabpanel")
    assert "hidden" in first
    assert "hidden" not in second
    assert [b["aria-pressed"] for b in page.having(**{"data-quantity": "contribution"})] == ["true", "true"]
    told = page.tip.split()
    assert told[:3] == ["a", "bad", "film"]
    facts = (zero.score(1, 4), zero.contribution(1, 4), zero.phrase_score(1, 4))
    for name, value in zip((r"score", r"contribution", r"phrase score"), facts, strict=True):
        assert re.search(rf"(?<!phrase ){name} {re.escape(minus(signed(value)))}(?!\S)", page.tip), name
    (here,) = [cell for cell in page.cells() if "here" in cell["class"].split()]
    assert (here["data-start"], here["data-stop"]) == ("1", "4")
    parts = {(c["data-start"], c["data-stop"]) for c in page.cells() if "part" in c["class"].split()}
    assert parts == {("1", "4"), ("2", "4"), ("3", "4")}


def test_backward_a_phrase_ends_at_its_first_token(build, browse):
    attribution = build(bidirectional=True)
    page = browse(render_page([attribution]), "#ngram=1-4&direction=backward")
    assert f"phrase score {minus(signed(attribution.phrase_score(1, 4, 'backward')))}" in page.tip
    parts = {(c["data-start"], c["data-stop"]) for c in page.cells() if "part" in c["class"].split()}
    assert parts == {("1", "2"), ("1", "3"), ("1", "4")}


def test_without_an_address_the_first_expansion_is_open_and_nothing_hovers(build, browse):
    page = browse(render_page([build(), build(expansion="zero", exact=False)]))
    assert [tab["aria-selected"] for tab in page.having(role="tab")] == ["true", "false"]
    assert page.tip.strip() == ""
    assert len(page.cells()) == 10
    assert len([cell for cell in page.cells() if cell["tabindex"] == "0"]) == 1
