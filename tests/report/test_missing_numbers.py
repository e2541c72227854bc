"""Numbers that are missing: a model that fills them in is explained, and every view leaves a gap where one is."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
import torch
from torch import nn

import unrolled
from page_in_browser import CHROMIUM, Document
from unrolled.decomposition.attribution.outputs import Features
from unrolled.errors import NonFiniteError
from unrolled.report.feature_rows import feature_rows
from unrolled.report.figure import draw_figure
from unrolled.report.json_records import to_json
from unrolled.report.page import render_page
from unrolled.report.page_data import PageExample, examples_data
from unrolled.report.terminal import to_text

NAN, INF = float("nan"), float("inf")
STEPS = [f"day {k}" for k in range(6)]
READ = torch.tensor(
    [[1.0, NAN], [NAN, NAN], [3.0, NAN], [NAN, NAN], [2.0, INF], [1.0, -INF]], dtype=torch.float64, device="cpu"
)
RECORD = """<script>
const starts = new Set(), plain = CanvasRenderingContext2D.prototype.moveTo;
CanvasRenderingContext2D.prototype.moveTo = function (x, y) {
  if (this.canvas.closest("section").getAttribute("aria-label") === "Series") starts.add(`${x} ${y}`);
  document.documentElement.dataset.starts = starts.size;
  return plain.call(this, x, y);
};
</script>"""


class FillsIn(nn.Module):
    """A forecaster that reads zero and a mask where a number is missing."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(4, 5, batch_first=True)
        self.head = nn.Linear(5, 1)

    def forward(self, x):
        missing = torch.isnan(x)
        read = torch.cat([torch.nan_to_num(x), missing.to(x.dtype)], dim=-1)
        return self.head(self.rnn(read)[0][:, -1])


def features(values: torch.Tensor) -> Features:
    scores = torch.arange(values.numel(), dtype=torch.float64, device="cpu").view(values.shape) / 10
    return Features(("a", "b"), values, scores, torch.zeros(len(values), dtype=torch.float64, device="cpu"))


@pytest.fixture
def explained():
    torch.manual_seed(0)
    model = FillsIn().double().eval()
    x = torch.randn(1, 6, 2, dtype=torch.float64, device="cpu")
    x[0, 2, 1] = NAN
    x[0, 4] = NAN
    return model, x, unrolled.explain(model, x, features=["load", "wind"])


def test_a_model_that_fills_in_numbers_is_explained_in_every_view(explained, tmp_path):
    model, x, found = explained
    assert found.closes
    assert found.ledger.logit == pytest.approx(model(x).item(), abs=1e-12)
    assert found.features.values.isnan().equal(x[0].isnan())
    assert "load" in str(found)
    found.save_html(tmp_path / "page.html")
    found.save_json(tmp_path / "found.json")
    (record,) = json.loads((tmp_path / "found.json").read_text())["accounts"]
    assert [[number is None for number in step] for step in record["features"]["values"]] == x[0].isnan().tolist()


def test_a_step_without_any_number_keeps_its_place_among_the_names(explained):
    *_, found = explained
    assert list(found.tokens) == [f"x{t}" for t in range(6)]


class EndsWithoutNumbers(FillsIn):
    """Its sequences end where all further steps have no number, and it reads them backwards if told so."""

    def __init__(self, backwards: bool) -> None:
        super().__init__()
        self.backwards = backwards

    def forward(self, x):
        lengths = (~x.isnan()).any(-1).long().flip(1).cummax(1).values.sum(1)
        read = torch.nan_to_num(torch.cat([x, torch.zeros_like(x)], dim=-1))
        if self.backwards:
            read = torch.stack([torch.cat([row[:n].flip(0), row[n:]]) for row, n in zip(read, lengths, strict=True)])
        packed = nn.utils.rnn.pack_padded_sequence(read, lengths, batch_first=True, enforce_sorted=False)
        return self.head(self.rnn(packed)[1][0])


@pytest.mark.parametrize("backwards", [False, True])
def test_missing_numbers_may_decide_how_long_a_sequence_is(backwards):
    torch.manual_seed(0)
    x = torch.randn(3, 6, 2, dtype=torch.float64, device="cpu")
    x[0, 3:] = NAN
    x[1, 2] = NAN
    x[2, 5] = NAN
    x[2, 0] = NAN
    model = EndsWithoutNumbers(backwards).double().eval()
    found = unrolled.explain_batch(model, x, features=["load", "wind"])
    names = [[f"x{t}" for t in range(n)] for n in (3, 6, 5)]
    assert [list(each.tokens) for each in found] == [each[::-1] if backwards else each for each in names]
    assert [each.ledger.logit for each in found] == pytest.approx(model(x)[:, 0].tolist())


def test_the_terminal_leaves_a_gap(build):
    lines = to_text(build(STEPS, features=features(READ))).splitlines()
    place = next(k for k, line in enumerate(lines) if line.startswith("a "))
    assert lines[place - 1].strip() == "▁ █ ▅▁"
    assert not lines[place + 1].strip()


def test_the_figure_leaves_a_gap_and_a_number_between_two_gaps_is_a_dot(build):
    pytest.importorskip("matplotlib", reason="figures need the extra [figures]")
    figure = draw_figure(build(STEPS, features=features(READ)))
    figure.canvas.draw()
    first, second = figure.axes[:2]
    (line,) = first.lines
    assert torch.tensor(line.get_ydata(), device="cpu").isfinite().tolist() == READ[:, 0].isfinite().tolist()
    assert line.get_marker() == "o"
    assert list(first.get_yticks()) == [1.0, 3.0]
    assert list(second.get_yticks()) == []
    whole = draw_figure(build(STEPS, features=features(READ.nan_to_num(0.0, 0.0, 0.0))))
    assert whole.axes[0].lines[0].get_marker() == "None"


def test_the_page_holds_null_and_rounds_each_feature_by_its_own_size(build):
    sizes = torch.stack([READ[:, 0] * 1e9, torch.arange(1, 7, dtype=torch.float64, device="cpu") / 1e5], dim=1)
    (item,) = examples_data([PageExample((build(STEPS, features=features(sizes)),))])
    large, small = item["series"]["values"]
    assert large == [1e9, None, 3e9, None, 2e9, 1e9]
    assert small == pytest.approx([k / 1e5 for k in range(1, 7)], rel=1e-6)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path")
def test_the_page_starts_a_line_anew_behind_a_gap(build, chromium):
    def lines(values: torch.Tensor) -> int:
        html = render_page([build(STEPS, features=features(values))])
        watched = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', RECORD, html)
        page = Document(chromium(watched, "", "--window-size=1200,900", "--dump-dom").decode())
        ((_, found),) = [each for each in page.elements if each[0] == "html"]
        return int(found["data-starts"])

    whole = torch.ones(6, 2, dtype=torch.float64, device="cpu")
    gaps = whole.clone()
    gaps[1, 0], gaps[3, 0] = NAN, INF
    empty = whole.clone()
    empty[:, 0] = NAN
    assert (lines(gaps), lines(empty)) == (lines(whole) + 2, lines(whole) - 1)


def test_contributions_that_are_no_numbers_are_still_refused(build):
    for broken in ("scores", "rest"):
        found = features(READ)
        getattr(found, broken)[2] = NAN
        with pytest.raises(NonFiniteError, match="contributions"):
            to_text(build(STEPS, features=found))
        with pytest.raises(NonFiniteError, match="JSON"):
            to_json([replace(build(STEPS), features=found)])


def test_the_ends_of_a_series_are_those_of_its_numbers():
    (a, b, rest) = feature_rows(features(READ))
    assert (a.ends, b.ends, rest.ends) == ((1.0, 3.0), None, None)
    assert feature_rows(features(READ))[1].values.isnan().all()
