"""Numbers over time in the terminal, the figure, the page and JSON: what is shown adds up to the steps."""

from __future__ import annotations

import itertools
import json
import re

import pytest
import torch

from unrolled.decomposition.attribution.outputs import Features
from unrolled.errors import UsageError
from unrolled.report.feature_rows import DRAWN, feature_rows
from unrolled.report.figure import draw_figure, save_figure
from unrolled.report.json_records import to_json
from unrolled.report.page_data import PageExample, examples_data
from unrolled.report.terminal import to_text

STEPS = [f"x{k}" for k in range(6)]


def features_of(count: int, time: int = 6, names: tuple[str, ...] | None = None) -> Features:
    generator = torch.Generator().manual_seed(0)
    values, scores = (torch.randn(time, count, generator=generator, dtype=torch.float64) for _ in range(2))
    return Features(names or tuple(f"f{k}" for k in range(count)), values, scores, torch.full((time,), 0.25).double())


def test_rows_add_up_to_the_step_whatever_is_left_out():
    for count in (1, DRAWN, DRAWN + 1, 3 * DRAWN):
        features = features_of(count)
        rows = feature_rows(features)
        total = torch.stack([row.scores for row in rows]).sum(dim=0)
        torch.testing.assert_close(total, features.scores.sum(dim=1) + features.rest)
        assert sum(row.values is not None for row in rows) == min(count, DRAWN)
        assert len(rows) == min(count, DRAWN) + (count > DRAWN) + 1
    largest = features.scores.abs().sum(dim=0).argsort(descending=True)[:DRAWN]
    assert {row.name for row in rows if row.values is not None} == {f"f{k}" for k in largest.tolist()}


@pytest.mark.parametrize("width", [30, 60, 100])
@pytest.mark.parametrize("time", [1, 6, 500])
def test_the_terminal_draws_every_feature_in_its_width(build, time, width):
    features = features_of(2, time, ("load", "wind"))
    attribution = build([f"x{k}" for k in range(time)], features=features, max_order=2 if time > 6 else None)
    text = to_text(attribution, width=width)
    assert max(map(len, text.splitlines())) <= width
    for name, sums in (("load", features.scores[:, 0]), ("rest", features.rest)):
        (line,) = [line for line in text.splitlines() if line.startswith(name)]
        number = re.search(r"[+-]\d+\.\d+", line)
        assert number is not None
        assert abs(float(number[0]) - float(sums.sum())) < 1e-3
    assert "scores of the phrases" not in text  # the triangle of numbered steps says little


def test_strips_are_read_without_colour(build):
    scores = torch.tensor([[1.0], [-1.0], [0.3], [-0.3], [0.0], [0.05]], dtype=torch.float64)
    features = Features(("load",), torch.arange(6.0)[:, None], scores, torch.zeros(6))
    text = to_text(build(STEPS, features=features))
    (strip,) = [line for line in text.splitlines() if line.startswith("load")]
    assert strip.endswith("▲▼+-··")
    (bars,) = [line for line in text.splitlines() if "▁" in line]
    assert bars.strip() == "▁▂▄▅▇█"


def test_steps_with_names_are_shown_as_words_too(build):
    text = to_text(build(["Mon", "Tue"], features=features_of(1, 2)))
    assert "scores of the phrases" in text
    assert "Mon" in text


@pytest.mark.filterwarnings("ignore:Glyph .* missing")
@pytest.mark.parametrize("name", ["</script>", "[red]", "\x1b[31m", "$\\frac{a$", "x" * 200])
def test_hostile_names_are_only_text(build, name, tmp_path):
    attribution = build(STEPS, features=features_of(1, 6, (name,)))
    assert "\x1b" not in to_text(attribution)
    save_figure(tmp_path / "figure.svg", attribution)
    assert "<script" not in (tmp_path / "figure.svg").read_text()


def test_the_figure_shows_numbers_where_there_are_some(build):
    attribution = build(STEPS, features=features_of(2, 6, ("load", "wind")))
    figure = draw_figure(attribution)
    told = [text.get_text() for axes in figure.axes for text in (*axes.get_yticklabels(), *axes.get_xticklabels())]
    assert {"load", "wind", "rest (biases)", "the whole step", "x0", "x5"} <= set(told)
    strips = next(axes for axes in figure.axes if axes.images)
    features = attribution.features
    torch.testing.assert_close(torch.tensor(strips.images[0].get_array()[0]), features.scores[:, 0])
    assert draw_figure(attribution, "phrase").axes  # the triangle on request
    assert not draw_figure(build()).axes[0].images
    with pytest.raises(UsageError, match="no features to draw"):
        draw_figure(build(), "features")
    with pytest.raises(UsageError, match="limit"):
        draw_figure(attribution, limit=0.0)


def test_labels_of_a_figure_do_not_overlap(build):
    figure = draw_figure(build([f"2024-01-{k:02d}" for k in range(40)], features=features_of(30, 40)))
    figure.canvas.draw()
    for axes in figure.axes:
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            boxes = [label.get_window_extent() for label in labels if label.get_text()]
            assert not any(one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[k + 1 :])


def test_labels_of_a_figure_tell_the_steps_apart(build):
    names = [f"2024-03-{1 + k // 24:02d} {k % 24:02d}:00" for k in range(96)]
    figure = draw_figure(build(names, features=features_of(2, 96), max_order=2))
    figure.canvas.draw()
    (strips,) = [axes for axes in figure.axes if axes.get_xlabel() == "time"]
    labels = strips.get_xticklabels()
    assert [label.get_text() for label in labels] == [names[int(place)] for place in strips.get_xticks()]
    boxes = [label.get_window_extent() for label in labels]
    assert len(boxes) > 2
    assert all(one.x1 < other.x0 for one, other in itertools.pairwise(boxes))


def test_json_holds_the_features(build):
    features = features_of(2)
    (record,) = json.loads(to_json([build(STEPS, features=features)]))["accounts"]
    assert record["features"]["scores"] == features.scores.tolist()
    assert json.loads(to_json([build()]))["accounts"][0]["features"] is None


def test_classes_show_the_same_rows(build):
    wide = build(STEPS, features=features_of(3 * DRAWN))
    (item,) = examples_data([PageExample((wide,))])
    (option,) = item["panels"][0]["options"]
    assert len(option["features"]["rows"]) == len(item["series"]["names"]) == DRAWN + 2
    assert len(item["series"]["values"]) == DRAWN


@pytest.mark.parametrize("names", [STEPS, [f"2024-01-0{k}" for k in range(6)]])
def test_steps_have_one_name_everywhere(build, names):
    pytest.importorskip("matplotlib", reason="figures need the extra [figures]")
    attribution = build(names, features=features_of(2))
    text = to_text(attribution)
    scores = torch.stack([row.scores for row in feature_rows(attribution.features)])
    row, step = divmod(int(scores.abs().argmax()), 6)
    assert f"largest: f{row} at {names[step]}, {float(scores[row, step]):+.3f}" in text
    figure = draw_figure(attribution)
    (strips,) = [axes for axes in figure.axes if axes.get_xlabel() == "time"]
    assert [label.get_text() for label in strips.get_xticklabels()] == names
    assert f"[5, 6)  {names[5]}" in text


@pytest.mark.parametrize("size", [1.0, 1e4])
def test_nothing_in_a_figure_of_numbers_is_covered_or_clipped(build, size):
    pytest.importorskip("matplotlib", reason="figures need the extra [figures]")
    names = [f"2024-01-{k:02d}" for k in range(20)]
    features = features_of(2, 20)
    features = Features(features.names, size * features.values, features.scores, features.rest)
    attribution = build(names, features=features)
    for quantity in ("features", "contribution"):
        figure = draw_figure(attribution, quantity)
        figure.canvas.draw()
        scale = next(axes for axes in figure.axes if axes.get_ylabel().startswith("contribution"))
        whole = figure.bbox
        for axes in figure.axes:
            texts = axes.texts if quantity == "contribution" else (*axes.get_xticklabels(), *axes.get_yticklabels())
            for text in texts:
                box = text.get_window_extent()
                assert not text.get_text() or whole.x0 <= box.x0 <= box.x1 <= whole.x1, text
                assert axes is scale or box.x1 < scale.get_window_extent().x0, text


def test_the_one_output_of_a_model_is_called_output(build):
    logit, output = to_text(build()), to_text(build(target="output", unit="output"))
    assert "= logit" in logit
    assert "= output" in output
    assert "logit" not in output
