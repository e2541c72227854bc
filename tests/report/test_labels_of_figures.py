"""Labels of figures stay within them, also of wide letters, and do not touch each other or the next panel."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

import unrolled
from unrolled.report.formatting import fitted, letters

pytest.importorskip("matplotlib", reason="figures need the extra [figures]")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

WIDE = {
    "W": "W" * 40,
    "M": "M" * 40,
    "@": "@" * 40,
    "capitals": "HUGO" * 10,
    "usual": "nubo" * 10,
    "short": "WWWWWWWW",
}


class Reader(nn.Module):
    def __init__(self, bidirectional):
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(9, 3)
        self.rnn = nn.GRU(3, 4, batch_first=True, bidirectional=bidirectional)
        self.head = nn.Linear(8 if bidirectional else 4, 2)

    def forward(self, x):
        return self.head(self.rnn(x if x.is_floating_point() else self.embed(x))[0].mean(dim=1))


def boxes(figure, shown):
    """The boxes of all texts that are shown, in pixels."""
    FigureCanvasAgg(figure).draw()
    found = [text.get_window_extent() for text in figure.findobj(Text) if shown in text.get_text()]
    assert found
    return found, figure.bbox


def assert_inside(figure, shown):
    found, whole = boxes(figure, shown)
    for box in found:
        assert (box.x0 >= 0, box.y0 >= 0, box.x1 <= whole.x1, box.y1 <= whole.y1) == (True,) * 4


@pytest.mark.parametrize("name", WIDE)
def test_labels_stay_within_their_figure(name):
    word, ids = WIDE[name], torch.tensor([[1, 2, 3, 4]], device="cpu")
    start = word[:4]
    series = torch.randn(1, 30, 3, device="cpu")
    assert_inside(unrolled.account(Reader(True), ids, target=1, tokens=[word] * 4).figure(), start)
    found = unrolled.explain(Reader(True), ids, target=1, tokens=[word] * 4).figure()
    assert_inside(found, start)
    assert_inside(unrolled.explain(Reader(False), series, target=1, features=[word, "b", "c"]).figure(), start)


class OfTwo(nn.Module):
    """Reads two series, and has keywords for them."""

    def __init__(self, name):
        super().__init__()
        self.reader, self.name = Reader(False), name

    def forward(self, x, **beside):
        return self.reader(x) + self.reader(beside[self.name])


def test_names_of_groups_stay_within_their_figure():
    series = torch.randn(2, 1, 5, 3, generator=torch.Generator().manual_seed(0))
    for name in ("y", "covariates", *WIDE):
        word = WIDE.get(name, name)
        figure = unrolled.account(OfTwo(word), series[0], target=1, model_kwargs={word: series[1]}).figure()
        assert_inside(figure, "features of")
        assert_inside(figure, "feature 2")


def test_names_of_bars_need_no_more_room_than_before():
    """The negative control: only names of groups that are longer move the bars."""
    ids = torch.tensor([[1, 2, 3, 4]], device="cpu")
    for word in ("not", "n" * 22, "WWWW", WIDE["W"], WIDE["capitals"]):
        (axes,) = unrolled.account(Reader(True), ids, target=1, tokens=[word] * 4).figure().axes
        assert axes.get_position().x0 == pytest.approx(1.7 / 7.2)


@pytest.mark.parametrize("name", WIDE)
def test_labels_of_a_panel_do_not_touch_the_next_one(name):
    ids = torch.tensor([[1, 2, 3, 4]], device="cpu")
    figure = unrolled.explain(Reader(True), ids, target=1, tokens=[WIDE[name]] * 4).figure()
    labels, _ = boxes(figure, WIDE[name][:4])
    ((title,), _) = boxes(figure, "b   backward")
    upper = [box for box in labels if box.y1 > title.y1]
    assert len(upper) == 4
    assert all(box.y0 >= title.y1 for box in upper)


def test_words_of_wide_letters_do_not_stand_in_each_other():
    ids = torch.tensor([[1, 2, 3, 4]], device="cpu")
    for word, flat in (("WWWWWWWW", False), ("nnnnnnnn", True)):
        figure = unrolled.explain(Reader(False), ids, target=1, tokens=[word] * 4).figure()
        (labels, _) = boxes(figure, word)
        assert all(box.height < 0.5 * box.width for box in labels) == flat  # else they stand at an angle
        ends = [(box.x0, box.x1) for box in sorted(labels, key=lambda box: box.x0)]
        if flat:
            assert all(one[1] <= other[0] for one, other in itertools.pairwise(ends))


def test_usual_letters_are_shortened_as_by_their_number():
    assert fitted("n" * 14, 14) == "n" * 14
    assert fitted("n" * 15, 14) == "n" * 13 + "…"
    assert fitted("W" * 14, 14) == "W" * 7 + "…"
    assert fitted("中" * 8, 14) == "中" * 8
    assert fitted("中" * 9, 14) == "中" * 7 + "…"
    assert letters("e\u0301") == 1
