from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import torch

from unrolled.decomposition.attribution.ledger import Ledger
from unrolled.decomposition.attribution.outputs import Features, Outputs
from unrolled.decomposition.attribution.triangle import Triangle
from unrolled.errors import FileError, NonFiniteError, UsageError
from unrolled.report import page_data
from unrolled.report.formatting import magnitude, minus, signed, visible
from unrolled.report.page import render_fragment, render_page, render_pages, save_page, save_pages
from unrolled.report.spans import by_span, values_of


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


@pytest.mark.parametrize("field", ["target", "expansion"])
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
    (item,) = json.loads(block)["items"]
    (panel,) = item["panels"]
    assert [t[:40] for t in item["tokens"]] == [visible(t)[:40] for t in all_hostile]
    assert panel["directions"] == ["forward", "backward"]
    (arrays,) = panel["classes"]
    for name, value in (("score", attribution.score), ("contribution", attribution.contribution)):
        for direction, rows in zip(panel["directions"], arrays[name], strict=True):
            for order, row in enumerate(rows, start=1):
                for start, number in enumerate(row):
                    assert number == pytest.approx(value(start, start + order, direction), abs=2e-6)


def test_the_ledger_is_written_out_and_sums(build):
    attribution = build(mean=True)
    text = "".join(Reader(render_page([attribution])).text)
    ledger = attribution.ledger
    for value in ledger.values():
        assert minus(signed(value)) in text
    assert ledger.ngrams + ledger.initial + ledger.bias + ledger.remainder == ledger.logit
    assert f"The remainder is {minus(magnitude(attribution.relative_remainder))} of the {attribution.unit}" in text
    parts = [f"{name} {minus(signed(ledger[key]))}" for name, key in (("n-grams", "ngrams"), ("bias", "bias"))]
    assert f"the sum of {parts[0]}, initial state +0.062, {parts[1]} and remainder" in text


def test_expansions_stand_side_by_side_with_what_they_miss(build):
    page = render_page([build(), build(expansion="zero", exact=False)])
    panels = json.loads(Reader(page).blocks["application/json"])["items"][0]["panels"]
    assert [(panel["label"], panel["exact"], panel["local"]) for panel in panels] == [
        ("path", True, False),
        ("zero", False, True),
    ]
    text = "".join(Reader(page).text)
    assert "exact: its n-grams sum to the state" in text
    assert "not exact: its n-grams miss the state by 1.8 times its size" in text


def test_notes_and_parity_are_told(build):
    attribution = build(notes=("2 words are unknown",))
    text = "".join(Reader(render_page([attribution])).text)
    assert "2 words are unknown" in text
    assert "2 words are unknown" not in "".join(Reader(render_page([build()])).text)
    assert "Parity 2.5e−07" in text
    assert "Residual 4e−16" in text


def test_a_long_sequence_leaves_out_its_longest_ngrams(build, monkeypatch):
    monkeypatch.setattr(page_data, "NUMBERS", 12_000)
    (panel,) = json.loads(Reader(render_page([build(["w"] * 150)])).blocks["application/json"])["items"][0]["panels"]
    assert panel["longest"] == len(panel["classes"][0]["score"][0]) == 40
    (panel,) = json.loads(Reader(render_page([build(["w"] * 100)])).blocks["application/json"])["items"][0]["panels"]
    assert panel["longest"] == 100


def test_a_logit_of_zero_is_shown(build):
    ledger = Ledger(0.0, 0.0, 0.0, 0.0, 0.0)
    attribution = build(scale=0.0, ledger=ledger)
    assert "The remainder is 0." in render_page([attribution])


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


def classified(build, tokens=("not", "a", "bad", "film"), classes=2, **outputs):
    """An explanation that holds the account of every class, each a multiple of one."""
    names = tuple("negative positive neutral mixed".split()[:classes])
    by_class = tuple(build(tokens, mean=True, scale=k - 0.75, target=name) for k, name in enumerate(names))
    given = Outputs(names, tuple(each.ledger.logit for each in by_class), **({"target": classes - 1} | outputs))
    return replace(by_class[given.target], outputs=given, by_class=by_class)


def items(page):
    return json.loads(Reader(page).blocks["application/json"])["items"]


def test_of_two_classes_the_difference_comes_first(build):
    attribution = classified(build)
    (item,) = items(render_page([attribution]))
    names = ["positive rather than negative", "positive", "negative"]
    assert [option["name"] for option in item["options"]] == names
    for option, told in zip(item["options"], item["panels"][0]["options"], strict=True):
        logit = attribution.outputs.values[option["plus"]]
        if option["minus"] is not None:
            logit -= attribution.outputs.values[option["minus"]]
        assert told["ledger"][-1]["value"] == pytest.approx(logit)
        assert sum(bar["value"] for bar in told["ledger"][:-1]) == pytest.approx(logit)
        assert sum(told["tokens"]) == pytest.approx(told["ledger"][0]["value"], abs=1e-4)
    assert "positive rather than negative" in "".join(Reader(render_page([attribution])).text)


def test_of_several_classes_the_target_comes_first_and_then_its_contrast_with_the_runner_up(build):
    attribution = classified(build, classes=4, target=1)
    (item,) = items(render_page([attribution]))
    outputs = attribution.outputs
    rivals = sorted((k for k in range(4) if k != 1), key=lambda k: -outputs.values[k])
    assert item["options"][0] == {"name": "positive", "plus": 1, "minus": None}
    assert [option["minus"] for option in item["options"][1:4]] == rivals
    assert [option["plus"] for option in item["options"][4:]] == rivals
    asked = replace(attribution, outputs=replace(outputs, against=3))
    assert items(render_page([asked]))[0]["options"][0]["name"] == "positive rather than mixed"


def test_probabilities_are_those_of_the_outputs(build):
    (item,) = items(render_page([classified(build, classes=3, true=0)]))
    told = item["outputs"]
    values = torch.tensor(told["values"], dtype=torch.float64)
    assert told["probabilities"] == pytest.approx(values.softmax(0).tolist(), abs=1e-5)
    assert told["predicted"] == int(values.argmax())
    assert told["true"] == 0
    assert told["probability_name"] == "softmax"  # nothing tells whether the outputs are logits
    given = Outputs(("a", "b"), (0.25, 0.75), 1, kind="probabilities")
    assert given.probabilities == (0.25, 0.75)
    assert given.probability_name == "probability"
    assert Outputs(("a",), (2.0,), 0).probabilities == ()


def test_where_an_expansion_has_no_account_of_each_class_there_is_no_choice(build):
    (item,) = items(render_page([classified(build), build(expansion="zero")]))
    assert len(item["options"]) == 1


def test_a_colour_scale_for_each_expansion_and_one_side_by_side(build):
    small, large = build(mean=True), build(mean=True, scale=50.0, expansion="operating")
    (item,) = items(render_page([small, large]))
    limits = [panel["options"][0]["limits"] for panel in item["panels"]]
    for quantity in ("phrase", "score", "contribution", "token"):
        assert limits[1][quantity] > 20 * limits[0][quantity]
    assert item["shared"] == [limits[1]["token"]]


@pytest.mark.parametrize("quantity", ["phrase", "score", "contribution"])
def test_the_scale_of_a_triangle_holds_the_sum_of_both_directions(build, quantity):
    attribution = build(bidirectional=True, mean=True)
    (item,) = items(render_page([attribution]))
    limit = item["panels"][0]["options"][0]["limits"][quantity]
    together = float(by_span(attribution, quantity).abs().max())
    assert together > float(values_of(attribution, quantity).abs().max())  # one direction alone would cut it
    assert together <= limit < 3 * together


def test_several_examples_are_one_page_with_a_list(build, tmp_path):
    examples = [[classified(build, ("a", "b", "c")[: k + 1], true=k % 2)] for k in range(3)]
    page = render_pages(examples, "Errors")
    found = items(page)
    assert [item["tokens"] for item in found] == [["a"], ["a", "b"], ["a", "b", "c"]]
    assert [item["outputs"]["true"] for item in found] == [0, 1, 0]
    assert "a b c" in "".join(Reader(page).text)
    named = render_pages([[build(["a", "b"], name="one")]] * 2)  # also where no script runs
    assert f'<td class="number">{minus(signed(build(["a", "b"]).ledger.ngrams))}</td><td class="largest">' in named
    largest = build(["a", "b"]).top(1)[0]
    assert f"<bdi>{largest.text}</bdi> {minus(signed(largest.contribution))}" in named
    save_pages(tmp_path / "page.html", examples, "Errors")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    for wrong in ([], [[]]):
        with pytest.raises(UsageError, match="no explanation"):
            render_pages(wrong)


def test_hostile_text_of_several_examples_adds_no_element(build, hostile):
    plain = Reader(render_pages([[build(["a", "b"])], [build(["a", "b"])]]))
    page = Reader(render_pages([[build(["a", hostile], target=hostile)], [build(["a", "b"])]]))
    assert page.structure == plain.structure


def test_the_numbers_that_a_model_read_are_on_the_page(build):
    values = torch.tensor([[20.0, 1.0], [21.5, 0.0], [19.0, 1.0]])
    scores = torch.tensor([[0.5, 0.0], [-0.25, 0.125], [1.0, -1.0]], dtype=torch.float64)
    attribution = build(
        ["x0", "x1", "x2"], features=Features(("temperature", "</script>"), values, scores, torch.zeros(3))
    )
    page = render_page([attribution])
    (item,) = items(page)
    names = ["temperature", "</script>", "rest (biases)"]
    assert item["series"] == {"names": names, "values": values.T.tolist(), "named": False}
    told = item["panels"][0]["options"][0]["features"]
    assert told == {"rows": [*scores.T.tolist(), [0.0] * 3], "limit": 1.0}
    assert items(render_page([build()]))[0]["series"] is None
