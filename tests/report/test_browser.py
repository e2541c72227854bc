"""The page in a real browser: headless chromium runs its script and hands back the document it made."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from page_in_browser import CHROMIUM, Document
from unrolled.decomposition.attribution.contrast import of_output
from unrolled.decomposition.attribution.ledger import Ledger
from unrolled.decomposition.attribution.outputs import Features, Outputs
from unrolled.report.colour import DARK_SCALE, SCALE, scale_index, shared_limit
from unrolled.report.formatting import minus, signed, visible
from unrolled.report.page import render_page, render_pages
from unrolled.report.spans import by_span, rows_by_order, values_of

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path"),
]


@pytest.fixture
def colours(chromium, tmp_path: Path):
    """The colours of a picture of the page."""

    def picture(html: str, fragment: str = "", *options: str, size: str = "1200,1600") -> set[str]:
        image = pytest.importorskip("matplotlib.image", reason="pictures are read by the extra [figures]")
        path = tmp_path / "page.png"
        chromium(html, fragment, f"--window-size={size}", f"--screenshot={path}", *options)
        pixels = (image.imread(path)[..., :3] * 255).round().astype("uint32")
        found = set(((pixels[..., 0] << 16) | (pixels[..., 1] << 8) | pixels[..., 2]).ravel().tolist())
        return {f"#{value:06x}" for value in found}

    return picture


def shades(attribution, quantity, scale=SCALE):
    limit = shared_limit([attribution], quantity)
    values = values_of(attribution, quantity)
    rows = [
        rows_by_order(matrix, direction, len(attribution))
        for matrix, direction in zip(values, attribution.directions, strict=True)
    ]
    return {scale[scale_index(value, limit)] for direction in rows for row in direction for value in row}


def classified(build, **fields):
    names = ("negative", "positive", "neutral")
    by_class = tuple(build(mean=True, scale=0.73 - k, target=name, **fields) for k, name in enumerate(names))
    outputs = Outputs(names, tuple(each.ledger.logit for each in by_class), 1)
    return replace(by_class[1], outputs=outputs, by_class=by_class)


def test_hostile_tokens_are_drawn_and_none_runs(build, browse, all_hostile):
    attribution = build(all_hostile, bidirectional=True, notes=tuple(all_hostile))
    examples = [[replace(attribution, target=name)] for name in all_hostile]
    page = browse(render_pages(examples, title="Safe"), f"#ngram=0-{len(all_hostile)}")
    assert page.text("title").startswith("Safe")
    assert len([tag for tag, _ in page.elements if tag == "script"]) == 2
    assert not [tag for tag, _ in page.elements if tag in ("img", "iframe", "object")]
    assert not [name for _, given in page.elements for name in given if name.startswith("on")]
    for token in all_hostile:
        assert " ".join(visible(token)[:40].split()) in page.text("sentence"), token
    assert len(page.with_class("link")) > len(all_hostile)


def test_a_difference_of_classes_reads_from_left_to_right_in_any_script(build, browse):
    explained = build(target="إيجابي rather than سلبي")
    page = browse(render_pages([[explained], [explained]]))
    assert len(page.having(dir="ltr")) == 3  # the sentence above the n-grams, and two rows of the list


def test_the_policy_stops_a_script_that_is_not_ours(build, browse):
    intruder = "<script>document.title='owned'</script></body>"
    page = render_page([build()], title="Safe")
    assert browse(page.replace("</body>", intruder)).text("title").startswith("Safe")
    open_door = re.sub(r"<meta http-equiv[^>]*>", "", page)
    assert browse(open_door.replace("</body>", intruder)).text("title").startswith("owned")


def test_the_address_picks_expansion_quantity_and_ngram(build, browse):
    zero = build(expansion="zero", exact=False, mean=True)
    html = render_page([build(mean=True), zero])
    page = browse(html, "#expansion=zero&show=contribution&ngram=1-4")
    assert [tab["aria-selected"] for tab in page.having(role="tab")] == ["false", "true"]
    assert [b["aria-pressed"] for b in page.having(**{"data-value": "contribution"})] == ["true"]
    assert page.text("detail").startswith("a bad film tokens [1, 4)")
    facts = (zero.phrase_score(1, 4), zero.score(1, 4), zero.contribution(1, 4))
    for name, value in zip(("phrase score", "n-gram term", "contribution"), facts, strict=True):
        assert f"{name} {minus(signed(value))}" in page.text("detail")
    lit = {token["data-index"] for token in page.with_class("lit")}
    assert lit == {"1", "2", "3"}


@pytest.mark.parametrize("way", ["backward", "both"])
def test_a_pinned_phrase_shows_its_sum(build, browse, way):
    attribution = build(bidirectional=True, scale=1.1)
    page = browse(render_page([attribution]), f"#ngram=1-4&direction={way}")
    ways = attribution.directions if way == "both" else (way,)
    total = sum(attribution.phrase_score(1, 4, each) for each in ways)
    assert f"phrase score {minus(signed(total))}" in page.text("detail")
    spans = {"forward": ["film", "bad film", "a bad film"], "backward": ["a", "a bad", "a bad film"]}
    places = {"forward": [(3, 4), (2, 4), (1, 4)], "backward": [(1, 2), (1, 3), (1, 4)]}
    for each in ways:
        terms = [
            f"{text} {minus(signed(attribution.score(*span, each)))}"
            for text, span in zip(spans[each], places[each], strict=True)
        ]
        value = minus(signed(attribution.phrase_score(1, 4, each)))
        assert f"{each}: {value} = {' '.join(terms)}" in page.text("detail")


def test_the_triangle_has_the_colours_of_what_it_shows(build, colours):
    attribution = build(mean=True, scale=1.07)
    html = render_page([attribution])
    assert shades(attribution, "phrase") | {"#fdfdfb"} <= colours(html)
    assert shades(attribution, "score") <= colours(html, "#show=score")
    # the negative control: phrases of another sentence have other colours
    assert not shades(build(mean=True, tokens=list("abcdefghijk")), "phrase") <= colours(html)


def test_a_dark_page_is_dark(build, colours):
    attribution = build(mean=True, scale=1.07)
    found = colours(render_page([attribution]), "", "--blink-settings=preferredColorScheme=0")
    assert shades(attribution, "phrase", DARK_SCALE) <= found
    assert "#17191c" in found
    assert "#fdfdfb" not in found


def test_another_output_is_a_choice(build, browse, colours):
    attribution = classified(build)
    outputs = attribution.outputs
    html = render_page([attribution])
    shown = of_output(attribution, 1, max((0, 2), key=outputs.values.__getitem__))  # the highest beside it
    total = float(by_span(shown, "phrase")[0, 3])
    page = browse(html, "#explain=1&ngram=0-4")
    highest = 100 * max(outputs.probabilities)
    assert page.text("verdict") == f"Highest output: {outputs.names[outputs.predicted]} , softmax {highest:.1f}%"
    assert page.text("picker").startswith(f"Explain positive {shown.target}")
    assert page.text("lede").startswith(f"{shown.target} is {minus(signed(shown.ledger.logit))} : the sum of n-grams ")
    assert f"bias {minus(signed(shown.ledger.bias))} and remainder" in page.text("lede")
    assert f"phrase score {minus(signed(total))}" in page.text("detail")
    assert shades(shown, "phrase") <= colours(html, "#explain=1")


def test_of_results_of_sigmoids_no_share_is_shown(build, browse):
    attribution = classified(build)
    html = render_page([replace(attribution, outputs=replace(attribution.outputs, kind="sigmoids"))])
    page, value = browse(html), max(attribution.outputs.values)
    assert (
        page.text("verdict")
        == f"Highest output: {attribution.outputs.names[attribution.outputs.predicted]} {signed(value)}"
    )
    assert "%" not in page.text("outputs")


def test_several_examples_are_a_list_and_the_address_picks_one(build, browse):
    first, second = classified(build), classified(build, tokens=("it", "shines"))
    predicted = second.outputs.predicted
    right = replace(second, outputs=replace(second.outputs, true=(predicted + 1) % 3))
    plain, sequence = build(mean=True), build(mean=True, name="rnn, call 1")
    page = browse(render_pages([[first], [right], [plain], [sequence]]), "#item=2")
    assert "hidden" not in page.having(id="list")[0]
    rows = [given for tag, given in page.elements if tag == "tr" and "data-item" in given]
    assert [row.get("class") or "" for row in rows] == ["", "current", "", ""]
    assert "4 of 4 shown" in page.text("turn")
    # without classes the explained output; of a sequence of several, what its n-grams contribute
    assert page.text("rows").endswith(
        f"not a bad film class 1 {minus(signed(plain.ledger.logit))} "
        f"rnn, call 1: not a bad film class 1 {minus(signed(sequence.ledger.ngrams))}"
    )
    assert page.text("sentence").startswith("it ")
    assert "wrong" in page.text("outputs")
    alone = browse(render_page([first]))
    assert "hidden" in alone.having(id="list")[0]


def test_examples_with_alike_texts_are_listed_by_their_numbers(build, browse):
    page = browse(
        render_pages([[build(["x0", "x1", "x2"])], [build(["a", "b"])], [build(["x0", "x1", "x2"])]]), "#item=2"
    )
    assert "example 0: x0 x1 x2" in page.text("rows")
    assert "example 2: x0 x1 x2" in page.text("rows")
    assert "example 1" not in page.text("rows")


def test_numbers_are_drawn_over_time(build, browse, colours):
    scores = torch.tensor([[0.5, 0.0], [-0.25, 0.125], [1.0, -1.0]], dtype=torch.float64)
    features = Features(("temperature", "rain"), torch.rand(3, 2), scores, torch.rand(3))
    html = render_page([build(["x0", "x1", "x2"], features=features)])
    page = browse(html)
    assert page.having(**{"aria-label": "Series"})
    assert not page.having(**{"aria-label": "Sentence"})
    assert "temperature +1.250" in page.text("section")
    assert {SCALE[scale_index(value, 1.0)] for value in scores.flatten().tolist()} <= colours(html)


_RECORD = """<script>
const drawn = [], plain = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  const width = this.measureText(text).width;
  const left = x - { left: 0, center: width / 2, right: width }[this.textAlign];
  if (this.canvas.closest("section").getAttribute("aria-label") === "Series") drawn.push([text, left, left + width, y]);
  document.documentElement.dataset.drawn = JSON.stringify(drawn);
  return plain.call(this, text, x, y);
};
</script>"""


@pytest.mark.parametrize("size", ["1200,900", "520,900"])
@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (("temperature outside [°C]", "wind"), [f"2024-03-{1 + k // 24:02d} {k % 24:02d}:00" for k in range(96)]),
        (("W" * 40, "i" * 20), [f"x{k}" for k in range(30)]),
        (("load",), ["a step with a very long name of its own " * 3] * 2),
    ],
)
def test_labels_of_series_lie_on_the_page_and_apart(build, chromium, names, steps, size):
    count = len(steps)
    features = Features(names, torch.rand(count, len(names)), torch.rand(count, len(names)), torch.rand(count))
    html = render_page([build(steps, features=features, max_order=3)])
    watched = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', _RECORD, html)
    page = Document(chromium(watched, "", f"--window-size={size}", "--dump-dom").decode())
    ((_, found),) = [each for each in page.elements if each[0] == "html"]
    texts = json.loads(found["data-drawn"])
    ends = [k for k, (text, *_) in enumerate(texts) if text == "the whole step"]
    paint = texts[ends[-3] + 1 :] if len(ends) > 2 else texts[: ends[-1] + 1]
    paint = [each for each in paint if each[0] != "time"]
    assert all(left >= 0 and right <= int(size.split(",")[0]) for _, left, right, _ in paint), paint
    bottom = max(y for *_, y in paint)
    axis = sorted({(left, right, text) for text, left, right, y in paint if y == bottom})
    assert axis
    assert all(one[1] < other[0] for one, other in itertools.pairwise(axis)), axis
    if size == "1200,900":
        assert all(text in steps for *_, text in axis) or len(steps[0]) > 100
        assert names[-1] in {text for text, *_ in paint}


_RECORD_SLANTED = """<script>
const drawn = [], plain = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  const at = this.getTransform();
  if (at.b) drawn.push([text, at.e / Math.hypot(at.a, at.b), parseFloat(this.font.match(/[0-9.]+(?=px)/)[0])]);
  document.documentElement.dataset.drawn = JSON.stringify(drawn);
  return plain.call(this, text, x, y);
};
</script>"""


@pytest.mark.parametrize(("size", "count"), [("520,900", 30), ("520,900", 60), ("1200,900", 24), ("1200,900", 70)])
def test_slanted_labels_of_the_triangle_do_not_overlap(build, chromium, size, count):
    """The lines of slanted labels are at least as far apart as their letters are high."""
    words = [f"word{k:03}" for k in range(count)]
    html = render_page([build(words, max_order=3)])
    watched = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', _RECORD_SLANTED, html)
    page = Document(chromium(watched, "", f"--window-size={size}", "--dump-dom").decode())
    ((_, found),) = [each for each in page.elements if each[0] == "html"]
    texts = json.loads(found["data-drawn"])
    paint = texts[max(k for k, (text, *_) in enumerate(texts) if text == words[0]) :]
    assert len(paint) > 10
    for (_, left, font), (_, right, _) in itertools.pairwise(paint):
        assert (right - left) * 0.5**0.5 >= 0.95 * font > 8


def test_without_an_address_phrases_of_the_first_expansion_are_shown_and_nothing_is_pinned(build, browse):
    page = browse(render_page([build(), build(expansion="zero", exact=False)]))
    assert [tab["aria-selected"] for tab in page.having(role="tab")] == ["true", "false"]
    assert [b["aria-pressed"] for b in page.having(**{"data-value": "phrase"})] == ["true"]
    assert page.text("detail").startswith("Point at a cell")
    assert not page.having(id="static")


def test_small_numbers_are_written_as_in_the_terminal(build, browse):
    ledger = Ledger(1.0, 0.0, 0.25, 3.1e-9, 1.25)
    page = browse(render_page([build(ledger=ledger)]))
    assert f"remainder {minus(signed(ledger.remainder))}" in page.text("ledger")
    assert minus(signed(ledger.remainder)) == "+3.1e−09"


def test_the_note_of_unknown_words_stands_below_the_sentence_and_only_there(build, browse):
    note = "† not in the model's vocabulary, read as <unk>: zorgle"
    page = browse(render_page([replace(build(), notes=(note, "another note"))]))
    shown = [data for within, data in page.pieces if data in (note, "another note")]
    assert sorted(shown) == sorted((note, "another note"))
    below = [data for within, data in page.pieces if any("ledger" in names for _, names in within)]
    assert note not in below
    assert "another note" in below
