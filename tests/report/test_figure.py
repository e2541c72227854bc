from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from torch import nn

import unrolled
from unrolled.decomposition.attribution.triangle import Triangle
from unrolled.errors import FileError, UsageError

pytest.importorskip("matplotlib", reason="figures need the extra [figures]")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from unrolled.report.colour import SCALE, STEPS, colour, shared_limit
from unrolled.report.figure import save_figure
from unrolled.report.raster import raster
from unrolled.report.triangle_figure import triangle_figure


def texts(figure) -> list[str]:
    return [t.get_text() for axes in figure.axes for t in axes.texts] + [t.get_text() for t in figure.texts]


def cells(axes) -> PolyCollection:
    (collection,) = [c for c in axes.collections if isinstance(c, PolyCollection)]
    return collection


@pytest.mark.parametrize("bidirectional", [False, True])
def test_one_panel_a_direction_with_every_ngram(build, bidirectional):
    attribution = build(bidirectional=bidirectional)
    figure = triangle_figure(attribution)
    *panels, _ = figure.axes
    assert len(panels) == len(attribution.directions)
    limit = shared_limit([attribution])
    for axes, direction in zip(panels, attribution.directions, strict=True):
        polygons = cells(axes)
        assert len(polygons.get_paths()) == 10
        for path, shade in zip(polygons.get_paths(), polygons.get_facecolor(), strict=True):
            left, row = path.vertices[:, 0].min(), path.vertices[:, 1].min()
            start, stop = round(left - row / 2), round(left + row / 2) + 1
            assert to_hex(shade) == colour(attribution.phrase_score(start, stop, direction), limit)


def test_tokens_ledger_and_numbers_are_written(build):
    written = texts(triangle_figure(build()))
    assert {"not", "a", "bad", "film"} <= set(written)
    assert any("remainder −0.002" in line for line in written)
    assert "expansion path, exact: its n-grams sum to the state" in written
    inexact = texts(triangle_figure(build(expansion="zero", exact=False)))
    assert "expansion zero, not exact: its n-grams miss the state by 1.8 times its size" in inexact
    assert "−1.50" in written
    for name, shown in (("a\tb", "= n-grams of a␉b −"), ("", "= n-grams −")):  # of one of several sequences, of one
        assert any(line.startswith(shown) for line in texts(triangle_figure(build(name=name))))


@pytest.mark.parametrize(
    ("quantity", "unit"),
    [("phrase", "score of the phrase"), ("score", "term of the n-gram"), ("contribution", "contribution to the logit")],
)
def test_the_colour_bar_is_symmetric_with_zero_marked_and_a_unit(build, quantity, unit):
    bar = triangle_figure(build(mean=True), quantity).axes[-1]
    low, high = bar.get_ylim()
    assert low == -high
    assert high == shared_limit([build(mean=True)], quantity)
    assert [label.get_text() for label in bar.get_yticklabels()][2] == "0"
    assert bar.get_yticks()[2] == 0
    assert any(list(line.get_ydata()) == [0, 0] for line in bar.lines)
    assert bar.get_ylabel().startswith(unit)


def test_a_given_limit_makes_figures_comparable(build):
    assert triangle_figure(build(), limit=7.0).axes[-1].get_ylim() == (-7.0, 7.0)
    with pytest.raises(UsageError, match="above 0"):
        triangle_figure(build(), limit=0.0)


def test_cells_of_a_long_sentence_bear_no_numbers(build):
    assert len(texts(triangle_figure(build(["w"] * 40)))) == 40 + 3


def test_a_very_long_sentence_labels_some_of_its_tokens(build):
    assert len(texts(triangle_figure(build(["w"] * 200)))) == 67 + 3


def test_pyplot_is_not_touched(build, tmp_path):
    import matplotlib.pyplot as plt

    save_figure(tmp_path / "triangle.png", build())
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".PNG", b"\x89PNG")]
)
def test_the_suffix_says_the_format(build, tmp_path, suffix, start):
    path = tmp_path / f"triangle{suffix}"
    save_figure(path, build())
    assert path.read_bytes().startswith(start)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")  # matplotlib's font has not every script
def test_hostile_tokens_are_drawn_as_text(build, tmp_path, all_hostile):
    save_figure(tmp_path / "triangle.svg", build(all_hostile, target="$\\frac{a$"))
    assert b"<script" not in (tmp_path / "triangle.svg").read_bytes()


def test_where_every_ngram_is_zero_all_cells_have_the_middle_colour(build):
    figure = triangle_figure(build(scale=0.0))
    assert {to_hex(shade) for shade in cells(figure.axes[0]).get_facecolor()} == {SCALE[STEPS]}
    assert [text.get_text() for text in figure.axes[0].texts if text.get_text() == "0"] == ["0"] * 10
    assert figure.axes[-1].get_ylim() == (-1.0, 1.0)


@pytest.mark.parametrize("name", ["triangle", "triangle.bmp", "triangle.py"])
def test_another_suffix_is_refused(build, tmp_path, name):
    with pytest.raises(UsageError, match=r"\.pdf, \.png, \.svg"):
        save_figure(tmp_path / name, build())
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_drawn_or_written_is_refused(build, tmp_path):
    with pytest.raises(UsageError, match="no tokens"):
        triangle_figure(build([]))
    with pytest.raises(UsageError, match="unknown quantity"):
        triangle_figure(build(), "colour")
    with pytest.raises(FileError, match=r"missing.* does not exist"):
        save_figure(tmp_path / "missing" / "triangle.png", build())


def test_without_matplotlib_the_extra_is_named(build, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"a figure needs matplotlib: pip install 'unrolled\[figures\]'"):
        triangle_figure(build())


def test_no_room_is_kept_for_ngrams_that_are_not_told_apart(build):
    whole = build(["w"] * 12)
    triangle = Triangle(whole.triangle.score_band[..., :3], whole.triangle.contribution_band[..., :3])
    short = build(["w"] * 12, triangle=triangle, max_order=3)
    assert triangle_figure(short).axes[0].get_ylim() == (0, 3)
    assert triangle_figure(whole).axes[0].get_ylim() == (0, 12)


@pytest.mark.parametrize("max_order", [None, 5])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_text_of_hundreds_of_words_is_an_image_of_bounded_size(build, bidirectional, max_order):
    time = 500
    drawn = torch.randn(1 + bidirectional, time, max_order or time, generator=torch.Generator().manual_seed(0)).double()
    for k in range(drawn.shape[-1]):
        drawn[0, :k, k] = 0
        drawn[1:, time - k :, k] = 0
    long = build(["w"] * time, bidirectional=bidirectional, triangle=Triangle(drawn, drawn), max_order=max_order)
    figure = triangle_figure(long, "score")
    width, height = figure.get_size_inches()
    assert width < 30
    assert height < (45 if max_order is None else 8)
    images = [image.get_array() for axes in figure.axes for image in axes.images if axes.get_xlim()[1] > 100]
    assert len(images) == 1 + bidirectional
    for image, band in zip(images, drawn, strict=True):
        assert image.shape == (drawn.shape[-1], 2 * time)
        assert image.mask.sum() == sum(2 * k for k in range(drawn.shape[-1]))  # half a token on each side, a row
        assert float(image.compressed().max()) == float(band.max())
        assert float(image.compressed().min()) == float(band.min())
    forward = images[0]
    assert forward[3, 2 * 7 + 3] == forward[3, 2 * 7 + 4] == float(drawn[0, 10, 3])  # four words from the eighth on


def test_a_point_of_an_image_shows_the_largest_number_of_its_place():
    band = torch.zeros(30_000, 3, dtype=torch.float64)
    band[12_345, 1], band[12_346, 1] = -7.0, 2.0
    image = raster(band, "forward", 3)
    assert image.shape == (3, 4800)
    assert image[1, 12_345 * 4800 // 30_000] == -7
    assert (np.abs(image[~np.isnan(image)]) > 0).sum() <= 2


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_an_image_of_several_sequences_has_the_images_of_each(direction):
    torch.manual_seed(0)
    one, other = torch.rand(5, 4).double(), torch.rand(3, 4).double()
    image = raster(torch.cat((one, other)), direction, 4, (5,))
    assert image.shape == (4, 16)
    np.testing.assert_array_equal(image[:, :10], raster(one, direction, 4))
    np.testing.assert_array_equal(image[:3, 10:], raster(other, direction, 3))
    as_one = raster(torch.cat((one, other)), direction, 4)
    assert np.isnan(image).sum() > np.isnan(as_one).sum()


class TwoTexts(nn.Module):
    def __init__(self, both: bool):
        super().__init__()
        self.embed, self.one = nn.Embedding(9, 4), nn.GRU(4, 3, batch_first=True, bidirectional=True)
        self.other = nn.GRU(4, 3, batch_first=True, bidirectional=both)

    def forward(self, one, other):
        read, further = self.one(self.embed(one))[0], self.other(self.embed(other))[0]
        return read.mean(dim=1).sum(dim=1, keepdim=True) + further.mean(dim=1).sum(dim=1, keepdim=True)


@pytest.mark.parametrize("both", [False, True])
def test_a_sequence_that_is_read_in_one_direction_has_no_cells_in_the_other(both):
    torch.manual_seed(0)
    found = unrolled.explain(TwoTexts(both).double(), torch.tensor([[1, 2, 3]]), torch.tensor([[4, 5]]), target=0)
    forward, backward, _ = triangle_figure(found).axes
    drawn = len(cells(forward).get_paths()), len(cells(backward).get_paths())
    assert drawn == ((9, 9) if both else (9, 6))  # 3 + 2 + 1 of three tokens, 2 + 1 of two
    assert sum(drawn) == len(list(found.ngrams()))


def test_an_image_leaves_out_a_sequence_without_its_direction():
    band = torch.ones(8, 4, dtype=torch.float64)
    whole, part = raster(band, "backward", 4, (5,)), raster(band, "backward", 4, (5,), [1])
    np.testing.assert_array_equal(part[:, :10], whole[:, :10])
    assert np.isnan(part[:, 10:]).all()
    assert not np.isnan(whole[0, 10:]).any()  # the control


def test_a_character_that_the_font_lacks_comes_from_another_installed_font(build):
    token = "\u1d25"  # in DejaVu Serif and not in DejaVu Sans; matplotlib brings both
    triangle_figure(build([token, "film"])).canvas.draw()  # a warning would be an error
    plain = Figure()
    plain.text(0.5, 0.5, token)
    with pytest.warns(UserWarning, match="missing from font"):
        FigureCanvasAgg(plain).draw()


def test_a_notebook_shows_a_figure_without_pyplot(build):
    assert triangle_figure(build())._repr_png_().startswith(b"\x89PNG")
