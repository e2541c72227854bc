"""What a user passes to a result by mistake is told in one line."""

from __future__ import annotations

import math
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.head = nn.Embedding(9, 6), nn.GRU(6, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0][:, -1])


class Series(Model):
    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


IDS = torch.tensor([[1, 2, 3]], device="cpu")


@pytest.fixture(scope="module")
def batch():
    return unrolled.explain_batch(Model(), torch.cat([IDS, IDS + 1]), target=1)


@pytest.fixture(scope="module")
def results(batch):
    series = unrolled.explain(Series(), torch.ones(1, 4, 6, device="cpu"), target=1)
    return [batch[0], series, unrolled.account(Model(), IDS, target=1), unrolled.check(Model(), IDS)]


def refused(message, call, *args, **kwargs):
    with pytest.raises(UsageError, match=message) as told:
        call(*args, **kwargs)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("width", ["80", 79.5, 0, -3, None])
def test_a_width_that_is_no_number_of_columns(results, width):
    for each in results:
        refused("^width is .*; expected 1 or more, a whole number$", each.render, width=width)
        assert each.render(width=np.int64(80)) == each.render(width=80)


def test_what_cannot_stand_beside_an_explanation(batch, results, tmp_path):
    one, account = batch[0], results[2]
    path = tmp_path / "page.html"
    for wrong, kind in ((account, "an Account"), ([one], "a list"), ("title", "a str")):
        refused(f"^what is shown beside this explanation is {kind}; expected an expl", one.save_html, path, wrong)
    of_another_class = unrolled.explain(Model(), IDS, target=2)
    for wrong in (batch[1], of_another_class):
        refused("is one of another text or target; expected other expansions of this one", one.save_html, path, wrong)
    assert not path.exists()
    one.save_html(path, unrolled.explain(Model(), IDS, target=1, expansion="shares"))  # the control
    assert "shares" in path.read_text()


@pytest.mark.parametrize(
    ("method", "usual", "wrong"),
    [("save_html", ".html", ".pdf"), ("save_html", ".html", ".PNG"), ("save_json", ".json", ".csv")],
)
def test_a_path_of_another_format(batch, results, tmp_path, method, usual, wrong):
    for each in (*results[:3], batch):
        save = getattr(each, method)
        refused(
            rf"would hold the format of {usual}, not of {wrong.lower()}; choose a name that",
            save,
            tmp_path / f"a{wrong}",
        )
        refused("would hold the format of", save, f"{tmp_path}/a{wrong}")
        for free in ("page", "page.v2", f"page{usual.upper()}"):  # the control: no program chooses by such a name
            assert save(tmp_path / free).read_bytes()
    assert not list(tmp_path.glob("a.*"))


def test_explanations_of_a_model_before_and_after_training(tmp_path):
    model, path = Model(), tmp_path / "page.html"
    before = unrolled.explain(model, IDS, target=1)
    with torch.no_grad():
        model.head.bias.add_(0.5)
    after = unrolled.explain(model, IDS, target=1)
    assert (after.tokens, after.target) == (before.tokens, before.target)
    refused(
        "^what is shown beside this explanation is one of another model, .*: its logit", before.save_html, path, after
    )
    assert not path.exists()
    after.save_html(path, unrolled.explain(model, IDS, target=1, expansion="zero"))  # the control


def test_runs_of_one_model_in_bfloat16_alone_and_in_a_batch_stand_on_one_page(tmp_path):
    model = Model().bfloat16()
    batch = unrolled.explain_batch(model, torch.cat([IDS, IDS + 1]), target=1)
    alone = unrolled.explain(model, IDS, target=1, expansion="shares")
    assert batch[0].save_html(tmp_path / "page.html", alone)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_runs_of_one_model_whose_logit_cancels_stand_on_one_page(dtype, tmp_path):
    """The logit is computed from the states of batches in another order than from those of one text."""
    path, model = tmp_path / "page.html", Model()
    with torch.no_grad():
        state, weight, _ = model.rnn(model.embed(IDS))[0][0, -1], model.head.weight.mul_(20), model.head.bias.zero_()
        weight[1] -= state * (weight[1] @ state - 0.01) / state.square().sum()
    one = unrolled.explain(model, IDS, target=1)
    assert one.token_scores.abs().max() > 50 * abs(one.ledger.logit)
    eps, largest = torch.finfo(dtype).eps, float(one.token_scores.abs().max())
    for off, said in ((2 * eps, None), (0.1, "is one of another model")):  # the second is the control
        with torch.no_grad():
            model.head.bias[1] = off * largest
        other = replace(unrolled.explain(model, IDS, target=1, expansion="shares"), rounding=eps)
        if said is None:
            one.save_html(path, other)
        else:
            refused(said, one.save_html, path, other)


def test_functions_of_one_name_and_seeds_are_told_apart(tmp_path):
    class Draws(Model):
        def forward(self, ids):
            return super().forward(ids) + torch.randn(1)

    of_seeds = [unrolled.explain(Draws(), IDS, target=1, seed=seed) for seed in (0, 1)]
    functions = (lambda out: out[:, 1], lambda out: 9 + out[:, 2])
    of_functions = [unrolled.explain(Model(), IDS, target=each) for each in functions]
    for one, other in (of_seeds, of_functions):
        said = "is one of another model, function of the outputs or seed: its logit is"
        refused(said, one.save_html, tmp_path / "page.html", other)
        assert one.save_html(tmp_path / "page.html", one)  # the control


def test_names_that_only_one_of_two_explanations_has(tmp_path):
    path, plain = tmp_path / "page.html", unrolled.explain(Model(), IDS, target=1)
    for names in ({"tokens": list("abc")}, {"classes": list("PQR")}):
        for expansion in ("secant", "shares", "zero"):
            named = unrolled.explain(Model(), IDS, target=1, expansion=expansion, **names)
            assert (named.tokens, named.target) != (plain.tokens, plain.target)
            assert named.save_html(path, plain) == plain.save_html(path, named) == path


def test_one_sequence_of_a_model_is_not_shown_beside_another(tmp_path):
    class Twice(Model):
        def forward(self, ids, other):
            return super().forward(ids) + super().forward(other)

    one, other = (unrolled.explain(Twice(), IDS, IDS + 1, target=1, call=call) for call in (0, 1))
    assert one.ledger.logit == other.ledger.logit
    refused("is one of another text or target", one.save_html, tmp_path / "page.html", other)


def test_what_is_no_title_and_what_are_no_phrases(batch, tmp_path):
    path = tmp_path / "page.html"
    refused("^title is an int; expected a text", batch.save_html, path, title=5)
    refused(r"^phrases is a list; expected what the method phrases\(\) returns", batch.save_html, path, phrases=[1])
    assert not path.exists()
    batch.save_html(path, title="5", phrases=batch.phrases(least=1))  # the control
    assert "<h1>5</h1>" in path.read_text()


def test_a_colour_limit_that_is_infinite(results):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    for each in results[:3]:
        for limit in (math.inf, math.nan, 0, "1"):
            refused("^colour limit is .*; expected a finite number above 0$", each.figure, limit=limit)
        assert each.figure(limit=2) is not None


def test_an_account_of_one_number_is_compared_without_a_warning():
    model = nn.Linear(1, 2)
    one, other = (unrolled.account(model, torch.full((1, 1), 2.0), target=0) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = one.compare(other)
    assert math.isnan(found["correlation"])
    assert found["largest"] == 0


@pytest.mark.parametrize("layers", [1, 2])
def test_decompositions_are_compared_by_identity_as_other_results_are(layers):
    rnn = nn.GRU(2, 3, layers, bidirectional=True)
    one, other = (unrolled.decompose(rnn, torch.ones(4, 1, 2)) for _ in range(2))
    assert {one, other, one} == {one, other}
    assert one == one
    assert one != other
    again = pickle.loads(pickle.dumps(one))
    torch.testing.assert_close(again.vectors(), one.vectors(), rtol=0, atol=0)
