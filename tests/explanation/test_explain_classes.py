"""Every class of a model, and the difference of two: by one sweep, as if each had been asked for alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from toy_models import Model, V
from unrolled.errors import NonFiniteError, ShapeError, UnknownNameError, UsageError
from unrolled.report.page import render_page

LENGTHS = torch.tensor([5, 3, 4])
TOKENS = torch.randint(0, V, (3, 5), generator=torch.Generator().manual_seed(0))
CLASSES = ["negative", "neutral", "positive"]


@pytest.mark.quick_diagonal(2)  # quick: every network, both readouts
@pytest.mark.parametrize("readout", ["held", "ray"])
@pytest.mark.parametrize(
    "options", [{"pool": "last"}, {"pool": "mean", "head": "gelu", "bidirectional": True}, {"num_layers": 2}]
)
def test_the_account_of_each_class_is_the_one_asked_for_alone(options, readout):
    model = Model(nn.LSTM, packed=True, **options).double()
    given = {"readout": readout, "classes": CLASSES}
    found = unrolled.explain_batch(model, TOKENS, LENGTHS, **given)
    for k, name in enumerate(CLASSES):
        alone = unrolled.explain_batch(model, TOKENS, LENGTHS, target=k, every_class=False, **given)
        for one, expected in zip(found, alone, strict=True):
            account = one.by_class[k]
            assert account.target == expected.target == name
            assert account.ledger == pytest.approx(expected.ledger, abs=1e-11)
            torch.testing.assert_close(account.triangle.scores, expected.triangle.scores, rtol=1e-9, atol=1e-11)
            torch.testing.assert_close(account.token_scores, expected.token_scores, rtol=1e-9, atol=1e-11)
            assert account.biases == pytest.approx(expected.biases, abs=1e-11)
            assert expected.by_class == ()
    for one in found:
        chosen = CLASSES.index(one.target)
        assert one.outputs.target == one.outputs.predicted == chosen
        assert one.outputs.values == pytest.approx([each.ledger.logit for each in one.by_class])
        assert one.ledger == one.by_class[chosen].ledger


def test_a_difference_is_the_account_of_the_difference():
    model = Model(nn.GRU, "attention", "gelu", packed=True).double()

    def difference(out):
        return out[:, 2] - out[:, 0]

    wanted = unrolled.explain_batch(model, TOKENS, LENGTHS, target=difference)
    for every in (True, False):
        found = unrolled.explain_batch(
            model, TOKENS, LENGTHS, target="positive", against="negative", classes=CLASSES, every_class=every
        )
        for one, expected in zip(found, wanted, strict=True):
            assert one.target == "positive rather than negative"
            assert (one.outputs.target, one.outputs.against) == (2, 0)
            assert one.ledger == pytest.approx(expected.ledger, abs=1e-11)
            torch.testing.assert_close(one.triangle.scores, expected.triangle.scores, rtol=1e-8, atol=1e-11)
            assert abs(one.ledger.remainder) < 1e-11
    # the negative control: one class alone is another account
    alone = unrolled.explain_batch(model, TOKENS, LENGTHS, target=2)
    assert alone[0].ledger.logit != pytest.approx(wanted[0].ledger.logit, abs=1e-3)


def test_against_the_predicted_class_and_many_classes():
    model = Model(nn.GRU, packed=True).double()
    predicted = model(TOKENS[:1], LENGTHS[:1]).argmax().item()
    other = (predicted + 1) % 3
    found = unrolled.explain(model, TOKENS[:1], LENGTHS[:1], against=other)
    assert found.target == f"output {predicted} rather than output {other}"
    model.head = nn.Linear(7, 9).double()
    assert unrolled.explain(model, TOKENS[:1], LENGTHS[:1]).by_class == ()
    many = unrolled.explain(model, TOKENS[:1], LENGTHS[:1], every_class=True)
    assert len(many.by_class) == len(many.outputs.values) == 9
    assert sum(many.outputs.probabilities) == pytest.approx(1)


class _ManyClasses(nn.Module):
    """Gives numbers of which the last is the largest, in a type that has no such index."""

    def __init__(self, kind: torch.dtype) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(V, 4), nn.GRU(4, 4, batch_first=True), nn.Linear(4, 4000)
        self.kind = kind
        self.head.bias.data[3997] = 5.0

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(self.embed(tokens))[0][:, -1]).to(self.kind)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_one_of_many_classes_is_picked_where_the_output_has_no_number_for_its_index(kind):
    model = _ManyClasses(kind)
    found = unrolled.explain_batch(model, TOKENS, against=3)
    for one, row in zip(found, model(TOKENS).tolist(), strict=True):
        assert one.outputs.target == 3997
        assert one.ledger.logit == pytest.approx(row[3997] - row[3], abs=0.05)
    with pytest.raises(UsageError, match="too coarse for an account"):
        unrolled.account(model, TOKENS)


def test_an_output_that_cannot_be_explained_leaves_the_one_that_was_asked_for():
    class HalfBroken(Model):
        def forward(self, tokens, lengths=None, state=None):
            out = super().forward(tokens, lengths, state)
            return torch.stack((out[:, 0], torch.full_like(out[:, 1], -torch.inf)), dim=1)

    model = HalfBroken(nn.GRU).double()
    found = unrolled.explain(model, TOKENS[:1], target=0)
    assert found.by_class == ()
    assert abs(found.ledger.remainder) < 1e-11
    assert found.outputs.probabilities == (1.0, 0.0)
    assert "is <b" in render_page([found])
    with pytest.raises(NonFiniteError):
        unrolled.explain(model, TOKENS[:1], target=1)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"target": 1, "against": 1}, UsageError, "output 1 against itself; expected two different classes"),
        ({"target": 1, "against": 7}, UsageError, "against is 7; expected 0 to 2"),
        ({"target": "positiv", "classes": CLASSES}, UnknownNameError, "did you mean 'positive'"),
        ({"target": "positive"}, UsageError, "target is a str; expected an index of the output, or its name, with cl"),
        ({"classes": ["a", "b"]}, ShapeError, "classes are 2 names; expected 3"),
        ({"classes": "abc"}, ShapeError, "classes are the string 'abc'"),
        ({"target": lambda out: out[:, 0], "against": 1}, UsageError, "subtract in the function"),
    ],
)
def test_classes_that_do_not_fit_are_refused_in_one_line(options, error, message):
    with pytest.raises(error, match=message) as caught:
        unrolled.explain(Model(nn.GRU), TOKENS[:1], **options)
    assert "\n" not in str(caught.value)


def test_a_batch_is_one_page_with_its_right_classes(tmp_path):
    found = unrolled.explain_batch(Model(nn.GRU, packed=True), TOKENS, LENGTHS, classes=CLASSES)
    page = found.save_html(tmp_path / "page.html", true=[0, None, 2]).read_text(encoding="utf-8")
    assert page.count('"true":') == 3
    assert '"true":null' in page
    assert "positive rather than negative" in page
    with pytest.raises(ShapeError, match="2 right classes for 3 examples"):
        found.save_html(tmp_path / "page.html", true=[0, 1])


@pytest.mark.parametrize("true", [torch.tensor([0, 1, 2]), torch.tensor([0, 1, 2]).numpy(), (0, 1, 2)])
def test_right_classes_are_a_list_of_any_kind(tmp_path, true):
    found = unrolled.explain_batch(Model(nn.GRU, packed=True), TOKENS, LENGTHS)
    page = found.save_html(tmp_path / "page.html", true=true).read_text(encoding="utf-8")
    assert [f'"true":{k}' in page for k in range(3)] == [True] * 3


def test_right_classes_may_be_names(tmp_path):
    found = unrolled.explain_batch(Model(nn.GRU, packed=True), TOKENS, LENGTHS, classes=CLASSES)
    page = found.save_html(tmp_path / "page.html", true=[CLASSES[2], None, 0]).read_text(encoding="utf-8")
    assert page == found.save_html(tmp_path / "page.html", true=[2, None, 0]).read_text(encoding="utf-8")
    assert page != found.save_html(tmp_path / "page.html", true=[1, None, 0]).read_text(encoding="utf-8")
    expected = "a right class is a str; expected an index of the output, a name, or None; no class is called 'positiv'"
    with pytest.raises(UsageError, match=expected):
        found.save_html(tmp_path / "page.html", true=["positiv", 1, 2])


def test_right_classes_need_classes(tmp_path):
    """A model with one logit has none; with a zero beside it, the page has the filter of the errors."""

    class Logit(Model):
        def forward(self, *args):
            return super().forward(*args)[:, 1]

    class Beside(Logit):
        def forward(self, *args):
            logit = super().forward(*args)
            return torch.stack([torch.zeros_like(logit), logit], dim=1)

    torch.manual_seed(0)
    one = Logit(nn.GRU, packed=True)
    two = Beside(nn.GRU, packed=True)
    two.load_state_dict(one.state_dict())
    alone = unrolled.explain_batch(one, TOKENS, LENGTHS)
    for found in (alone, unrolled.explain_batch(two, TOKENS, LENGTHS, target=lambda out: out[:, 1])):
        with pytest.raises(UsageError, match="true= gives right classes, but what is explained has none") as caught:
            found.save_html(tmp_path / "page.html", true=[None, 0, 1])
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "page.html").exists()
    found = unrolled.explain_batch(two, TOKENS, LENGTHS, target=1, against=0)
    for each, other in zip(found, alone, strict=True):
        assert each.ledger == pytest.approx(other.ledger, abs=1e-6)
        torch.testing.assert_close(each.triangle.contributions, other.triangle.contributions)
    assert '"true":1' in found.save_html(tmp_path / "page.html", true=[None, 0, 1]).read_text(encoding="utf-8")
    alone.save_html(tmp_path / "page.html", true=[None] * 3)  # nothing is known, nothing is lost


@pytest.mark.parametrize(
    ("true", "message"),
    [
        ([9, 1, 1], "a right class is 9; expected 0 to 2, or None"),
        ([0, -1, 1], "a right class is -1; expected 0 to 2"),
        (torch.tensor([0, 1, 3]), "a right class is 3; expected 0 to 2"),
        ([0.0, 1, 2], "a right class is a float; expected an index"),
        (torch.eye(3), "a right class is a Tensor; expected an index"),
        (["positive", 1, 2], "a right class is a str; expected an index"),
        (1, "true is an int; expected a list"),
    ],
)
def test_right_classes_that_are_no_index_are_refused_in_one_line(tmp_path, true, message):
    found = unrolled.explain_batch(Model(nn.GRU, packed=True), TOKENS, LENGTHS)
    with pytest.raises(UsageError, match=message) as caught:
        found.save_html(tmp_path / "page.html", true=true)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "page.html").exists()


def test_explanations_and_accounts_are_found_and_compared_without_reading_their_tensors():
    model = Model(nn.GRU, packed=True)
    batch, again = (unrolled.explain_batch(model, TOKENS, LENGTHS, target=1) for _ in range(2))
    assert batch[1] in batch
    assert again[1] not in batch
    assert [batch.index(each) for each in batch] == [0, 1, 2]
    assert batch.count(batch[0]) == 1
    assert batch[:2] == batch[:2]
    assert batch != again
    assert len({*batch, *again, batch[0]}) == 6
    one, other = (unrolled.account(model, TOKENS, LENGTHS, target=1) for _ in range(2))
    assert one == one
    assert one != other
    assert other not in [one]
    assert batch[0].triangle != again[0].triangle
    two = unrolled.explain(TwoCalls(3), TOKENS[:1], target=1)
    assert [two.members.index(each) for each in two.sequences] == [0, 1]


def test_the_ngrams_are_a_data_frame_or_the_extra_is_named(monkeypatch):
    found = unrolled.explain(Model(nn.GRU), TOKENS[:1])
    pytest.importorskip("pandas", reason="needs the extra [tables]")
    frame = found.to_frame()
    assert len(frame) == 15
    assert frame["contribution"].sum() == pytest.approx(found.ledger.ngrams)
    monkeypatch.setattr("unrolled.report.frames.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'unrolled\[tables\]'"):
        found.to_frame()


class TwoCalls(nn.Module):
    """A network that is called twice, so that its two sequences are one explanation."""

    def __init__(self, outputs: int, last: nn.Module | None = None) -> None:
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(V, 4), nn.GRU(4, 5, batch_first=True), nn.Linear(10, outputs)
        self.last = last or nn.Identity()

    def forward(self, ids):
        read = [self.rnn(self.embed(part))[0][:, -1] for part in (ids[:, :2], ids[:, 2:])]
        return self.last(self.head(torch.cat(read, dim=1)))


class OneCall(TwoCalls):
    def forward(self, ids):
        states = self.rnn(self.embed(ids))[0]
        return self.last(self.head(torch.cat((states[:, 0], states[:, -1]), dim=1)))


@pytest.mark.quick_diagonal(3)  # quick: every unit, both kinds
@pytest.mark.parametrize("kind", [OneCall, TwoCalls])
@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize(
    ("make", "options", "unit"),
    [
        (lambda kind: kind(3), {"target": 1}, "logit"),
        (lambda kind: kind(3), {"target": 1, "against": 0}, "difference"),
        (lambda kind: kind(1), {}, "output"),
        (lambda kind: kind(1), {"classes": ["rating"]}, "output"),
        (lambda kind: kind(3, nn.Softmax(dim=1)), {"target": 1}, "probability"),
        (lambda kind: kind(3, nn.LogSoftmax(dim=1)), {"target": 1}, "log-probability"),
        (lambda kind: kind(3, nn.Sigmoid()), {"target": 1}, "probability"),
        (lambda kind: kind(3, nn.Tanh()), {"target": 1}, "logit"),
        (lambda kind: kind(1, nn.Sigmoid()), {}, "probability"),
        (lambda kind: kind(3), {"target": lambda out: out[:, 1]}, "output"),  # as a forecast of the second hour
        (lambda kind: kind(3), {"target": lambda out: out.softmax(dim=1)[:, 1]}, "output"),
        (lambda kind: kind(3), {"target": lambda out: out.sigmoid()[:, 1]}, "probability"),
    ],
)
def test_the_explained_number_is_called_what_it_is(kind, every, make, options, unit):
    found = unrolled.explain(make(kind).double(), TOKENS[:1], every_class=every, **options)
    assert found.unit == unit
    said = str(found)
    assert f"= {unit} " in said
    assert ("= logit " in said) is (unit == "logit")


@pytest.mark.parametrize(
    ("last", "kind", "name"),
    [
        (nn.Identity(), "numbers", "softmax"),
        (nn.Softmax(dim=1), "probabilities", "probability"),
        (nn.LogSoftmax(dim=1), "log-probabilities", "probability"),
        (nn.Sigmoid(), "sigmoids", ""),
    ],
)
@pytest.mark.parametrize("options", [{}, {"target": 1, "against": 0}])
def test_the_softmax_of_outputs_is_called_a_probability_where_it_is_one(last, kind, name, options):
    model = OneCall(3, last).double()
    outputs = unrolled.explain(model, TOKENS[:1], **options).outputs
    values = model(TOKENS[:1])[0]
    assert (outputs.kind, outputs.probability_name) == (kind, name)
    expected = {"probabilities": values, "sigmoids": values[:0]}.get(kind, values.softmax(0))
    assert outputs.probabilities == pytest.approx(expected.tolist())


def test_a_note_on_a_probability_says_what_is_known_of_it():
    class Chosen(nn.Module):
        def forward(self, values):
            return values * 0 + torch.tensor([1.0, 0.0, 0.0])  # no softmax

    found = unrolled.explain(OneCall(3, Chosen()).double(), TOKENS[:1], target=0, every_class=False)
    (note,) = [note for note in found.notes if "probability" in note]
    assert "since the outputs are not negative and sum to 1" in note
    assert "where a softmax gave them" in note
