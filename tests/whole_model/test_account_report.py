"""An account shows itself: terminal, page, notebook and figure; tokens are untrusted text."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import NonFiniteError, UnrolledError, UsageError
from unrolled.report.account_page import render_page
from unrolled.report.account_terminal import to_text
from unrolled.report.account_view import AccountView, Group
from unrolled.report.formatting import minus, signed
from whole_model_zoo import Classifier, Siamese, Tagger, ids

WORDS = ["not", "<b>bad</b>", "\u202eevil\x1b[31m", ""]


@pytest.fixture
def account():
    torch.manual_seed(0)
    model = Classifier(nn.GRU, 2, True).double()
    return unrolled.account(model, ids(2, 4), target=1, tokens=[WORDS, list("abcd")])


def view(**changes):
    given = {
        "target": "output 1",
        "expansion": "secant",
        "groups": (Group("tokens", ("a", "b"), (1.5, -0.5)),),
        "biases": {"head.bias": 0.25},
        "constants": {},
        "initial": 0.0,
        "remainder": 0.0,
        "output": 1.25,
        "cancellation": 1.8,
        "closes": True,
        "notes": (),
    }
    return AccountView(**(given | changes))


@pytest.mark.parametrize("show", [str, lambda found: found._repr_html_()])
def test_an_expansion_is_named_where_a_recurrent_network_follows_it(account, show):
    assert "recurrent networks by secant, all else by shares" in show(account)
    without = unrolled.account(nn.Linear(3, 2), torch.randn(1, 3), target=1, expansion="path")
    assert "by shares" in show(without)
    assert "path" not in show(without)


def test_the_terminal_shows_tokens_ledger_biases_and_verdict(account):
    text = str(account)
    for part in (
        "output 1",
        "by secant",
        "not",
        "<b>bad</b>",
        "tokens",
        "biases",
        "remainder",
        "= output",
        "head.0.bias",
    ):
        assert part in text
    assert "closes: the remainder is rounding" in text
    assert " ".join(text.split()).count("times as large as their sum") == 1
    assert "example 0 of a batch of 2" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert all(len(line) <= 60 for line in account.render(width=60).splitlines())
    assert "\x1b[" in account.render(colour=True)
    assert account.render(example=1) != account.render()
    with pytest.raises(IndexError, match="expected -2 to 1"):
        account.render(example=2)


def test_the_summands_are_those_of_the_ledger(account):
    shown = account.view(1)
    parts = [value for _, value in shown.entries]
    assert sum(parts) == pytest.approx(shown.output, abs=1e-12)
    assert shown.output == pytest.approx(account[1].ledger["output"])
    assert sum(shown.groups[0].values) == pytest.approx(account[1].ledger["inputs"], abs=1e-12)
    assert list(shown.groups[0].labels) == list("abcd")


def test_texts_and_features_have_their_own_groups():
    torch.manual_seed(0)
    found = unrolled.account(Siamese().double(), ids(2, 3), ids(2, 2), target=1)
    assert [group.name for group in found.view().groups] == ["tokens of first", "tokens of second"]
    assert [len(group.labels) for group in found.view().groups] == [3, 2]
    assert "tokens of second" in str(found)
    x = torch.randn(2, 5, 3).double()
    tagged = unrolled.account(Tagger().double(), x, target=lambda out: out[:, 0, 0])
    (group,) = tagged.view(1).groups
    assert group.labels == ("x0", "x1", "x2", "x3", "x4")
    torch.testing.assert_close(torch.tensor(group.values).double(), tagged.features["0"][1].sum(-1))


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = torch.nn.GRU(3, 4, batch_first=True), torch.nn.Linear(4, 2)

    def forward(self, series):
        return self.head(self.rnn(series)[0][:, -1])


@pytest.mark.parametrize("batch", [1, 2])
def test_numbers_are_shown_by_step_and_by_feature(batch):
    torch.manual_seed(0)
    model, series = Forecaster().double(), torch.randn(batch, 5, 3).double()
    steps = list("abcde") if batch == 1 else [list("abcde"), list("fghij")]
    names = ["wind", "load", "<rain>"]
    found = unrolled.account(model, series, target="high", classes=["low", "high"], features=names, tokens=steps)
    shown = found.view(batch - 1)
    (by_step,), (by_feature,) = shown.groups, shown.by_feature
    part = found.features["0"].reshape(batch, 5, 3)[batch - 1]
    assert by_step.labels == tuple("fghij" if batch == 2 else "abcde")
    assert by_step.values == pytest.approx(part.sum(dim=1).tolist())
    assert by_feature.labels == tuple(names)
    assert by_feature.values == pytest.approx(part.sum(dim=0).tolist())
    assert sum(value for _, value in shown.entries) == pytest.approx(shown.output)  # each contribution counts once
    assert shown.target == "high"
    assert all(name in found.render() for name in ("wind", "load", "<rain>", "steps"))
    assert "&lt;rain&gt;" in found._repr_html_()
    plain = unrolled.account(model, series, target=1).view(batch - 1)
    assert plain.groups[0].labels == ("x0", "x1", "x2", "x3", "x4")
    assert plain.by_feature[0].labels == ("feature 0", "feature 1", "feature 2")


def test_the_numbers_of_one_row_are_told_apart_and_named():
    model = torch.nn.Linear(3, 2)
    (group,) = unrolled.account(model, torch.ones(1, 3), target=0, features=["a", "b", "c"]).view().groups
    assert group.labels == ("a", "b", "c")
    assert group.values == pytest.approx(model.weight[0].tolist())


def test_names_that_do_not_fit_an_account_are_refused():
    model, series, text = Forecaster(), torch.randn(1, 5, 3), ids(1, 4)
    for options, said in (
        ({"classes": ["a"]}, "classes are 1 names; expected 2"),
        ({"features": ["a"]}, "features are 1 names; expected 3"),
        ({"target": "c", "classes": ["a", "b"]}, "unknown class 'c'"),
        ({"target": "c"}, "or its name, with classes="),
        ({"tokens": list("abcdef")}, "6 tokens for numbers of 5 steps"),
    ):
        with pytest.raises(UnrolledError, match=said):
            unrolled.account(model, series, **options)
    with pytest.raises(UsageError, match="reads token ids; leave it out"):
        unrolled.account(Classifier(torch.nn.GRU, 1, False, "last", "linear"), text, features=["a"])
    named = unrolled.account(model, series, classes=["a", "b"])
    assert named.target == "ab"[int(model(series).argmax())]


def test_the_page_is_self_contained_and_escapes_tokens(account, tmp_path):
    path = account.save_html(tmp_path / "account.html")
    page = path.read_text(encoding="utf-8")
    assert "<b>bad</b>" not in page
    assert "&lt;b&gt;bad&lt;/b&gt;" in page
    assert "\u202e" not in page
    assert "<script" not in page
    assert not re.search(r"(src|href)\s*=", page)
    assert re.search(r"default-src (&#39;|')none(&#39;|'); style-src (&#39;|')sha256-", page)
    assert "prefers-color-scheme: dark" in page
    assert "head.0.bias" in page
    assert 'class="word s' in page
    parts = [f"{name} {minus(signed(value))}" for name, value in account.view().entries]
    assert f"the sum of {', '.join(parts[:-1])} and {parts[-1]}." in page


def test_numbers_without_a_text_have_none_in_the_list_of_examples():
    pages = [render_page([view(groups=(Group(name, ("x0", "x1"), (1.5, -0.5)),))] * 2) for name in ("steps", "tokens")]
    assert [page.count('<bdi class="text">x0 x1</bdi>') for page in pages] == [0, 2]
    assert "∅" not in pages[0]


def test_a_narrow_page_hides_no_contribution(account):
    page = render_page([account.view()])
    hidden = re.findall(r"([^{}]+)\{[^{}]*display: none", page)
    assert ".spare" in {selector.strip() for selector in hidden}
    assert not [selector for selector in hidden if ":nth" in selector]
    assert "spare" not in page.partition("</style>")[2]


def test_a_short_group_has_its_numbers_beside_a_long_one():
    steps = Group("steps", tuple(f"x{k}" for k in range(50)), (0.5,) * 50)
    features = Group("features", ("wind", "<rain>"), (0.25, 24.75))
    page = render_page([view(groups=(steps,), by_feature=(features,))])
    assert re.findall(r"<small>(.*?)</small>", page) == ["+0.250", "+24.750"]
    (table,) = re.findall(r"<details class=\"numerics.*?</details>", page, re.DOTALL)
    assert re.findall(r"<bdi>(x\d+)</bdi></th><td class=\"number\">\+0\.500<", table) == list(steps.labels)
    assert page.count('class="sentence dense"') == 1


def test_a_notebook_shows_one_div(account):
    fragment = account._repr_html_()
    assert fragment.startswith("<div")
    assert "<style" not in fragment
    assert "&lt;b&gt;bad&lt;/b&gt;" in fragment


def test_the_figure_has_a_bar_for_each_token(account):
    plt = pytest.importorskip("matplotlib.pyplot", reason="figures need the extra [figures]")
    figure = account.figure()
    assert plt.get_fignums() == []  # pyplot's global state is not used
    assert len(figure.axes[0].patches) == 4
    assert [bar.get_width() for bar in figure.axes[0].patches] == pytest.approx(account[0].tokens[0].tolist())
    with pytest.raises(UsageError, match="colour limit is 0"):
        account.figure(limit=0)


def test_the_figure_names_every_feature_beside_many_steps():
    pytest.importorskip("matplotlib", reason="figures need the extra [figures]")
    from unrolled.report.account_figure import account_figure

    steps = Group("steps", tuple(f"x{k}" for k in range(70)), (0.5,) * 70)
    features = Group("features, all steps together", ("temperature", "rain"), (0.25, 34.75))
    (axes,) = account_figure(view(groups=(steps,), by_feature=(features,))).axes
    labels = [tick.get_text() for tick in axes.get_yticklabels()]
    assert labels[-3:] == ["features, all steps together", "temperature", "rain"]
    assert [each.get_text() for each in axes.texts] == ["+0.25", "+34.75"]
    assert len(axes.patches) == 72


def test_a_text_of_many_tokens_and_one_of_zeros():
    pytest.importorskip("matplotlib", reason="figures need the extra [figures]")
    from unrolled.report.account_figure import account_figure

    many = view(groups=(Group("tokens", tuple(map(str, range(300))), tuple(float(k % 7 - 3) for k in range(300))),))
    assert account_figure(many).get_size_inches()[1] < 20
    zeros = view(groups=(Group("tokens", ("a", "$b$"), (0.0, 0.0)),))
    account_figure(zeros)
    assert "sentence dense" in render_page([many])
    for shown in (many, zeros):
        assert "= output" in to_text(shown)


@pytest.mark.parametrize("number", [300, 3000, 12_000])
def test_no_bar_falls_between_two_pixels(number):
    pytest.importorskip("matplotlib", reason="figures need the extra [figures]")
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from unrolled.report.account_figure import account_figure

    values = tuple(10.0 if k % (number // 29) == 7 else 0.01 for k in range(number))
    figure = account_figure(view(groups=(Group("tokens", tuple(map(str, range(number))), values),)))
    (axes,) = figure.axes
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]
    column = int(axes.transData.transform((9.0, 0.0))[0])
    drawn = (pixels[:, column] < 250).any(axis=-1)
    bars = int((np.diff(drawn.astype(int)) == 1).sum())
    assert bars == sum(value == 10.0 for value in values)


def test_many_biases_are_summed_up():
    named = {f"layer.{k}.bias": float(k) for k in range(40)}
    shown = view(biases=named)
    assert len(shown.named) == 13
    assert shown.named[0] == ("layer.39.bias", 39.0)
    assert shown.named[-1] == ("28 more", sum(range(28)))


def test_numbers_that_are_not_finite_are_refused():
    bad = view(groups=(Group("tokens", ("a",), (float("nan"),)),))
    for shown in (to_text, lambda shown: render_page([shown])):
        with pytest.raises(NonFiniteError, match="the account holds NaN or infinity"):
            shown(bad)


def test_the_root_package_offers_it():
    assert unrolled.account.__module__ == "unrolled.whole_model.account"
    assert unrolled.Account.__name__ == "Account"
    assert repr(unrolled.account(nn.Linear(2, 2), torch.ones(1, 2), target=0)).startswith(
        "Account(output 0, 1 examples"
    )


@pytest.mark.parametrize("expansion", ["secant", "shares", "zero"])
@pytest.mark.parametrize("recurrent", [False, True])
def test_another_expansion_is_advised_only_where_a_recurrent_network_ran(recurrent, expansion):
    class Cancels(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.rnn = nn.RNN(2, 2, batch_first=True)

        def forward(self, x):
            states = self.rnn(x)[0] if recurrent else x
            return 1000.0 * (x[:, -1] - x[:, 0]) + states[:, -1]

    x = torch.tensor([[[1.0, 2.0], [0.5, 0.3], [1.0, 2.001]]], dtype=torch.float64)
    found = unrolled.account(Cancels().double(), x, target=1, expansion=expansion)
    assert float(found.cancellation) > 100
    note = next(note for note in found.notes if "times as large as their sum" in note)
    assert ("the expansion" in " ".join(found.notes)) is recurrent
    assert note.endswith("check") is not recurrent
    assert found.exact is (not recurrent or expansion != "zero")
