from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections import Counter
from html.parser import HTMLParser

import pytest
import torch

from unrolled.decomposition.attribution import Ledger, Triangle
from unrolled.errors import FileError, NonFiniteError, UsageError
from unrolled.report.formatting import magnitude, minus, signed, visible
from unrolled.report.page import render_fragment, render_page, save_page


class Reader(HTMLParser):
    """Counts elements with the names of their attributes, and keeps the text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.structure: Counter[tuple[str, ...]] = Counter()
        self.text: list[str] = []
        self.blocks: dict[str, str] = {}
        self.policy = ""
        self.open = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.structure[tag, *sorted(name for name, _ in attrs)] += 1
        given = dict(attrs)
        self.open = given.get("type", tag) if tag in ("script", "style") else ""
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]

    def handle_data(self, data):
        if self.open:
            self.blocks[self.open] = self.blocks.get(self.open, "") + data
        else:
            self.text.append(data)

    def handle_endtag(self, _tag):
        self.open = ""

    def handle_comment(self, _data):
        self.structure["comment",] += 1


RENDERERS = {"page": lambda attribution: render_page([attribution]), "fragment": render_fragment}


@pytest.mark.parametrize("render", RENDERERS.values(), ids=RENDERERS.keys())
@pytest.mark.parametrize("bidirectional", [False, True])
def test_hostile_text_adds_no_element_and_no_attribute(build, hostile, render, bidirectional):
    plain = Reader(render(build(["a", "b", "c"], bidirectional=bidirectional, notes=("n",))))
    attribution = build(["a", hostile, "c"], bidirectional=bidirectional, notes=(hostile,), target=hostile)
    page = Reader(render(attribution))
    assert page.structure == plain.structure
    assert visible(hostile)[:50] in "".join(page.text)


@pytest.mark.parametrize("field", ["target", "expansion", "scope"])
def test_hostile_names_add_nothing_either(build, hostile, field):
    plain = Reader(render_page([build(**{field: "x"}), build()], title="t"))
    assert Reader(render_page([build(**{field: hostile}), build()], title=hostile)).structure == plain.structure


def test_the_reader_would_see_an_injection(build):
    page = render_page([build()])
    assert Reader(page.replace("<main>", "<main><img src=x onerror=x>")).structure != Reader(page).structure


def test_the_page_is_all_there_and_asks_for_nothing(build):
    page = render_page([build(bidirectional=True), build(expansion="zero", exact=False, bidirectional=True)])
    assert not re.search(r"https?:", page.replace('"http://www.w3.org/2000/svg"', ""))
    names = {name for _, *attributes in Reader(page).structure for name in attributes}
    assert not names & {"src", "href", "style", "srcset", "action", "xlink:href"}
    assert not [name for name in names if name.startswith("on")]


def test_the_policy_lets_in_our_own_script_and_style_alone(build):
    page = Reader(render_page([build(["</script>"])]))
    rules = dict(rule.strip().split(" ", 1) for rule in page.policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for kind in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(page.blocks[kind].encode()).digest()).decode()
        assert rules[f"{kind}-src"] == f"'sha256-{digest}'"


def test_the_data_block_is_plain_and_true(build, all_hostile):
    attribution = build(all_hostile, bidirectional=True, mean=True)
    block = Reader(render_page([attribution])).blocks["application/json"]
    assert block.isascii()
    assert not set("<>&") & set(block)
    (panel,) = json.loads(block)["panels"]
    assert [t[:40] for t in panel["tokens"]] == [visible(t)[:40] for t in all_hostile]
    for direction in panel["directions"]:
        for name, value in (("score", attribution.score), ("contribution", attribution.contribution)):
            for order, row in enumerate(direction[name], start=1):
                for start, number in enumerate(row):
                    assert number == pytest.approx(value(start, start + order, direction["name"]), rel=1e-5)


def test_the_ledger_is_written_out_and_sums(build):
    attribution = build(mean=True)
    text = "".join(Reader(render_page([attribution])).text)
    ledger = attribution.ledger
    for value in ledger.values():
        assert minus(signed(value)) in text
    assert ledger.ngrams + ledger.initial + ledger.bias + ledger.remainder == ledger.logit
    assert f"The remainder is {minus(magnitude(attribution.relative_remainder))} of the logit" in text


def test_expansions_stand_side_by_side_with_what_they_miss(build):
    page = render_page([build(), build(expansion="zero", exact=False)])
    comparison = " ".join(" ".join(Reader(page[page.index('class="comparison"') :]).text).split())
    assert re.search(r"path yes no \S+ \S+ \S+ −0.002", comparison)
    assert re.search(r"zero no yes \S+ \S+ \S+ −0.002", comparison)
    assert page.count('role="tab"') == 2
    text = "".join(Reader(page).text)
    assert "exact: its n-grams sum to the state" in text
    assert "not exact: its n-grams miss the state by 1.8 of its size" in text


def test_scope_notes_and_parity_are_told(build):
    attribution = build(scope="the inputs of the top layer", notes=("2 words are unknown",))
    text = "".join(Reader(render_page([attribution])).text)
    assert "The n-grams consist of the inputs of the top layer" in text
    assert "2 words are unknown" in text
    assert "Parity 2.5e−07" in text
    assert "Residual 4e−16" in text
    assert "The n-grams consist of" not in "".join(Reader(render_page([build()])).text)


def test_a_long_sequence_says_what_its_triangle_leaves_out(build):
    page = render_page([build(["w"] * 150)])
    assert "n-grams of up to 40 tokens" in page
    (panel,) = json.loads(Reader(page).blocks["application/json"])["panels"]
    assert len(panel["directions"][0]["score"]) == 40
    assert "n-grams of up to" not in render_page([build(["w"] * 100)])


def test_a_logit_of_zero_is_shown(build):
    ledger = Ledger(0.0, 0.0, 0.0, 0.0, 0.0)
    assert "of the logit" in render_page([build(scale=0.0, ledger=ledger)])


def test_what_cannot_be_drawn_is_refused(build):
    with pytest.raises(UsageError, match="no explanation"):
        render_page([])
    with pytest.raises(UsageError, match="no tokens"):
        render_page([build([])])
    broken = torch.full((1, 4, 4), math.inf, dtype=torch.float64)
    with pytest.raises(NonFiniteError):
        render_page([build(triangle=Triangle(broken, broken))])


def test_a_page_is_saved_whole_or_not_at_all(build, tmp_path):
    path = tmp_path / "page.html"
    save_page(path, [build(["\ud800", "日本"])])
    before = path.read_text(encoding="utf-8")
    assert before == render_page([build(["\ud800", "日本"])])
    with pytest.raises(UsageError):
        save_page(path, [])
    with pytest.raises(FileError, match="folder"):
        save_page(tmp_path, [build()])
    with pytest.raises(FileError, match=r"missing.* does not exist"):
        save_page(tmp_path / "missing" / "page.html", [build()])
    assert path.read_text(encoding="utf-8") == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_fragment_is_static_and_shows_the_remainder(build):
    fragment = render_fragment(build(bidirectional=True))
    reader = Reader(fragment)
    assert not {tag for tag, *_ in reader.structure} & {"script", "style", "link", "img", "iframe"}
    assert f"remainder {minus(signed(build().ledger.remainder))}" in "".join(reader.text)
    assert "http" not in fragment
