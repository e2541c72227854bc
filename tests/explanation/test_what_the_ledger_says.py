"""Movement, cancellation, closes: what does not close is noted with its cause, and nothing says exact beside it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
import torch
from torch import nn

import unrolled
from unrolled.decomposition.attribution.ledger import Ledger
from unrolled.errors import ConvergenceError, NonFiniteError, StrictError
from unrolled.expansions.zero import Zero
from unrolled.report.account_terminal import to_text as account_text
from unrolled.report.json_records import to_json
from unrolled.report.page import render_page
from unrolled.report.page_data import PageExample, examples_data
from unrolled.report.terminal import to_text
from whole_model_zoo import Classifier, ids


class TwoHalves(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        first, second = x.chunk(2, dim=1)
        return self.model(first) + self.model(second)


def classifier(factor=1.0, kind=nn.GRU, pool="last", dtype=torch.float64):
    torch.manual_seed(0)
    model = Classifier(kind, 1, False, pool, "linear").to(dtype)
    for parameter in model.rnn.parameters():
        parameter.data.mul_(factor)
    return model


def tokens(length=60):
    torch.manual_seed(1)
    return ids(1, length)


class Probability(TwoHalves):
    def forward(self, x):
        return torch.sigmoid(super().forward(x))


def test_the_note_on_the_remainder_of_each_of_two_sequences_names_what_is_explained():
    found = unrolled.explain(Probability(classifier()), tokens(8), target=1, expansion="zero")
    for one in (found, *found.sequences):
        assert any("the probability less the bias" in note for note in one.notes)
        assert not any("the logit less the bias" in note for note in one.notes)


def test_movement_and_cancellation_are_those_of_the_ledger():
    found = unrolled.explain(classifier(), tokens(8), target=1)
    assert found.movement == found.ledger.logit - found.ledger.bias
    assert found.closes
    assert found.deterministic
    sizes = float(found.triangle.contributions.abs().sum())
    assert found.cancellation == pytest.approx(sizes / abs(found.movement))
    record = json.loads(to_json([found]))["accounts"][0]
    assert record["movement"] == found.movement
    assert record["cancellation"] == found.cancellation
    assert record["closes"] is record["deterministic"] is record["exact"] is True


def test_a_remainder_above_a_thousandth_of_the_movement_does_not_close():
    found = unrolled.explain(classifier(), tokens(8), target=1)
    for share, closes in ((0.9e-3, True), (1.1e-3, False), (float("nan"), False)):
        ledger = Ledger(**{**dict(found.ledger), "remainder": share * abs(found.movement)})
        assert replace(found, ledger=ledger).closes is closes


@pytest.mark.parametrize("factor", [30, 100])
def test_a_quadrature_that_ends_unfinished_is_named_and_never_blamed_on_rounding(factor):
    model, text = classifier(factor), tokens()
    found = unrolled.explain(model, text, target=1, expansion="path")
    assert not found.exact
    assert "the quadrature of the expansion path has not converged" in found.notes[0]
    assert not any("float64" in note for note in found.notes)
    assert found.closes is not any("less the bias" in note for note in found.notes)
    with pytest.raises(ConvergenceError, match="quadrature"):
        unrolled.decompose(model.rnn, model.embed(text), expansion="path")
    with pytest.raises(ConvergenceError, match="quadrature"):
        unrolled.account(model, text, target=1, expansion="path")
    shown = [to_text(found), render_page([found]), found._repr_html_()]
    assert not any("exact: its n-grams sum" in text for text in shown)
    assert json.loads(to_json([found]))["accounts"][0]["exact"] is False
    control = unrolled.explain(model, text, target=1)
    assert control.exact
    assert control.closes
    assert "exact: its n-grams sum" in to_text(control)


def test_rounding_is_named_where_it_is_the_cause_and_float64_where_it_helps():
    torch.manual_seed(0)
    coarse = classifier(5, nn.RNN, dtype=torch.float32)
    found = unrolled.explain(coarse, tokens(150), target=1, expansion="gates")
    assert not found.exact
    assert "float64" in found.notes[0]
    fine = unrolled.explain(coarse.double(), tokens(600), target=1, expansion="gates")
    assert not fine.exact
    assert not any("float64" in note for note in fine.notes)


def test_an_inexact_expansion_says_what_it_leaves_out():
    found = unrolled.explain(classifier(), tokens(8), target=1, expansion="zero")
    assert not found.closes
    assert "the expansion zero is not exact; use secant" in found.notes[0]


def test_an_inexact_expansion_of_the_users_own_says_so_as_well():
    class Tangent(Zero):
        def __str__(self) -> str:
            return "tangent at nothing"

    found = unrolled.explain(classifier(), tokens(8), target=1, expansion=Tangent())
    assert "the expansion tangent at nothing is not exact; use secant" in found.notes[0]


def of_cancellation(found) -> list[str]:
    return [note for note in found.notes if "as large as their sum" in note]


def test_a_large_cancellation_is_noted_once_with_what_to_compare():
    model, text = classifier(100), tokens()
    for expansion, other in (("secant", "shares"), ("shares", "secant"), ("gates", "shares")):
        loud = unrolled.explain(model, text, target=1, expansion=expansion)
        if loud.cancellation <= 10:
            continue
        (note,) = of_cancellation(loud)
        assert f"{loud.cancellation:.3g} times" in note
        assert f"compare the expansion {other}" in note
        assert "gates" not in note
        for shown in (to_text(loud, width=1000), account_text(unrolled.account(model, text, target=1).view(), 1000)):
            assert shown.count("as large as their sum") == 1
    calm = unrolled.explain(classifier(), text, target=1)
    assert calm.cancellation < 10
    assert calm.notes == ()
    assert to_text(calm).count("as large as their sum") == (calm.cancellation >= 2)


def test_each_number_has_the_note_of_its_own_cancellation():
    model, text = classifier(100), tokens()
    found = unrolled.explain(model, text)
    for each in found.by_class:
        assert [f"{each.cancellation:.3g} times" in note for note in of_cancellation(each)] == [True] * (
            each.cancellation > 10
        )
    assert not of_cancellation(found)
    (item,) = examples_data([PageExample((found,))])
    (panel,) = item["panels"]
    noted = 0
    for option, told in zip(item["options"], panel["options"], strict=True):
        alone = unrolled.explain(model, text, target=option["plus"], against=option["minus"])
        assert told["notes"] == list(alone.notes)
        noted += bool(of_cancellation(alone))
    assert 0 < noted < len(item["options"])


def test_the_page_notes_what_it_opens_on():
    model, text = classifier(100), tokens()
    loud = unrolled.explain(model, text, target=2)
    assert of_cancellation(loud)
    difference = unrolled.explain(model, text, target=0, against=2)
    page = render_page([replace(difference, notes=("of the command line", *difference.notes))])
    static = page[: page.index('id="data"')]
    assert "of the command line" in static
    assert all(note in static for note in of_cancellation(difference))
    assert not any(note in static for note in of_cancellation(loud))


def test_each_example_of_an_account_has_the_note_of_its_own_cancellation():
    model = classifier(100)
    batch = torch.cat([tokens(), tokens().flip(1)])
    found = unrolled.account(model, batch, target=1)
    assert len({f"{float(each.cancellation):.3g}" for each in found}) == 2
    for each in found:
        assert [f"{float(each.cancellation):.3g} times" in note for note in of_cancellation(each)] == [True] * (
            float(each.cancellation) > 10
        )


def test_an_account_that_does_not_close_is_not_exact():
    found = unrolled.account(classifier(200, dtype=torch.float32), ids(1, 400), target=1)
    assert not found.closes
    assert not found.exact
    assert "use float64 (model.double()) or the expansion operating" in found.notes[0]
    assert "does not close" in account_text(found.view())
    double = unrolled.account(classifier(dtype=torch.float64), tokens(), target=1)
    assert double.exact
    lying = replace(double, output=double.output * (1 + 1e-8))
    assert not lying.closes


def test_contributions_that_overflow_are_refused():
    model = classifier(200, dtype=torch.float32)
    with pytest.raises(NonFiniteError, match="float64"):
        unrolled.account(model, ids(1, 400), target=1, expansion="shares")


@pytest.mark.parametrize("call", [unrolled.account, unrolled.explain])
@pytest.mark.parametrize("loop", [False, True])
def test_what_overflows_in_float64_is_not_told_to_use_it(call, loop):
    def overflow_of(dtype):
        model = classifier(kind=nn.RNN, dtype=dtype)
        model.rnn.weight_hh_l0.data.mul_(1e12)
        if loop:  # two calls of the network, opened by calls
            model = TwoHalves(model)
        with pytest.raises(NonFiniteError, match="overflow") as told:
            call(model, ids(1, 60), target=1, expansion="zero")
        return str(told.value)

    assert overflow_of(torch.float64).endswith("overflow; use the expansion operating")
    assert "use float64 (model.double()) or the expansion operating" in overflow_of(torch.float32)  # the control


def test_of_what_overflows_without_advice_the_input_is_to_be_smaller():
    assert str(NonFiniteError.overflow("terms", True, "operating")).endswith("a shorter input or smaller numbers")
    assert str(NonFiniteError.overflow("terms", True, None)).endswith("a shorter input or smaller numbers")
    assert str(NonFiniteError.overflow("terms", False, None)).endswith("use float64 (model.double())")


class Offset(nn.Module):
    """Returns an output with a constant in it, and the state."""

    def __init__(self, offset):
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.head, self.offset = nn.GRU(3, 5, batch_first=True), nn.Linear(5, 2), offset

    def forward(self, x):
        states, last = self.rnn(x)
        return self.head(states[:, -1]) + self.offset, last


def _of_offset(offset, kind):
    x = torch.linspace(-1, 1, 15, device="cpu").reshape(1, 5, 3).to(kind)
    return unrolled.explain(Offset(offset).to(kind), x, target=lambda out: out[0][:, 0])


@pytest.mark.parametrize(
    ("offset", "kind", "advice"),
    [(1e7, torch.float32, r"use float64: model\.double\(\)"), (1e15, torch.float64, r"explain a target without .*")],
)
def test_a_constant_whose_rounding_hides_the_ngrams_is_noted(offset, kind, advice):
    found = _of_offset(offset, kind)
    (note,) = found.notes
    said = (
        r"rounding of the output, .*, is up to .* the contributions: the remainder does not show whether they are right"
    )
    assert re.fullmatch(rf"{said}; {advice}", note)
    assert abs(found.ledger.logit) * found.rounding > 0.01 * abs(found.ledger.ngrams)
    with pytest.raises(StrictError, match="does not show whether"):
        unrolled.explain(Offset(1e7), torch.ones(1, 5, 3), target=lambda out: out[0][:, 0], strict=True)


@pytest.mark.parametrize(("offset", "kind"), [(0.0, torch.float32), (1e3, torch.float32), (1e7, torch.float64)])
def test_a_constant_that_leaves_the_ngrams_their_digits_is_not_noted(offset, kind):
    """The control: its rounding is below a hundredth of them."""
    assert not _of_offset(offset, kind).notes
