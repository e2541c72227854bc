"""Any model with a recurrent network in it: the ledger closes whatever pools and heads stand behind it."""

from __future__ import annotations

import itertools
import json

import pytest
import torch
from torch import nn

import unrolled
from toy_models import B, D, Model, T, V
from unrolled.errors import NonFiniteError, ShapeError, UnknownNameError, UsageError

LENGTHS = torch.tensor([6, 4, 1])
POOLS = ["last", "h_n", "mean", "max", "attention"]


TOKENS = torch.randint(0, V, (B, T), generator=torch.Generator().manual_seed(0))
NETWORKS = [
    (nn.RNN, {}),
    (nn.RNN, {"nonlinearity": "relu"}),
    (nn.GRU, {}),
    (nn.GRU, {"num_layers": 2, "dropout": 0.4}),
    (nn.LSTM, {"bidirectional": True}),
    (nn.LSTM, {"num_layers": 2, "bidirectional": True}),
    (nn.LSTM, {"num_layers": 2, "proj_size": 4}),
]


def batch(model, expansion="operating", **kwargs):
    lengths = LENGTHS if model.packed else None
    return unrolled.explain_batch(model, TOKENS, lengths, target=1, expansion=expansion, **kwargs)


def closes(explanation):
    led = explanation.ledger
    return abs(led["ngrams"] + led["initial"] + led["bias"] + led["remainder"] - led["logit"])


@pytest.mark.slow_diagonal(2)
@pytest.mark.quick_diagonal(5)  # quick: every network, every pooling
@pytest.mark.parametrize(
    ("dtype", "bound"),
    [pytest.param(torch.float64, 1e-12, id="f64"), pytest.param(torch.float32, 1e-5, id="f32", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize(("kind", "options"), NETWORKS)
def test_ledger_closes_for_every_pooling(kind, options, pool, dtype, bound):
    for packed, batch_first, expansion in itertools.product((False, True), (False, True), ("operating", "gates")):
        model = Model(kind, pool, packed=packed, batch_first=batch_first, **options).to(dtype)
        found = batch(model, expansion)
        model.eval()
        logits = model(TOKENS, LENGTHS if packed else None)[:, 1].detach()
        for b, e in enumerate(found):
            assert e.ledger["logit"] == pytest.approx(float(logits[b]), abs=bound)
            assert abs(e.ledger["remainder"]) < bound, (packed, expansion)
            assert closes(e) < 1e-12
            assert float(e.token_scores.sum()) == pytest.approx(e.ledger["ngrams"], abs=1e-9)
            assert len(e) == (int(LENGTHS[b]) if packed else T)


@pytest.mark.parametrize("pool", POOLS)
def test_path_closes_within_its_tolerance_and_zero_does_not(pool):
    model = Model(nn.LSTM, pool).double()
    assert max(abs(e.ledger["remainder"]) for e in batch(model, "path")) < 1e-6
    wrong = batch(model, "zero")
    assert max(abs(e.ledger["remainder"]) for e in wrong) > 1e-2
    assert max(e.residual for e in wrong) > 1e-2
    assert max(closes(e) for e in wrong) < 1e-12  # it still says so: the remainder holds the difference


@pytest.mark.quick_diagonal(3)  # quick: every head, every pooling
@pytest.mark.parametrize("head", ["relu", "gelu", "norm"])
@pytest.mark.parametrize("pool", POOLS)
def test_heads_of_several_layers(pool, head):
    found = batch(Model(nn.GRU, pool, head).double())
    assert max(abs(e.ledger["remainder"]) for e in found) < 1e-12


def test_initial_state_has_its_own_entry():
    model = Model(nn.LSTM, "mean", num_layers=2).double()
    state = tuple(torch.randn(2, B, D).double() for _ in range(2))
    with_state = unrolled.explain_batch(model, TOKENS, state=state, target=0, expansion="operating")
    assert all(abs(e.ledger["initial"]) > 1e-3 for e in with_state)
    assert all(abs(e.ledger["remainder"]) < 1e-12 for e in with_state)
    assert all(e.ledger["initial"] == 0 for e in batch(model))


def test_the_final_cell_of_an_lstm_can_be_read():
    class ReadsCells(Model):
        def forward(self, tokens):
            return self.head(self.net(self.embedding(tokens))[1][1][-1])

    for expansion in ("operating", "gates", "path"):
        found = unrolled.explain_batch(ReadsCells(nn.LSTM).double(), TOKENS, target=2, expansion=expansion)
        assert max(abs(e.ledger["remainder"]) for e in found) < (1e-12 if expansion != "path" else 1e-6)


def test_lower_layers_of_a_stack_can_be_read():
    class ReadsAll(Model):
        def forward(self, tokens):
            h = self.net(self.embedding(tokens))[1]
            return self.head(h.sum(0))

    for options in ({"num_layers": 3}, {"num_layers": 2, "bidirectional": True}):
        model = ReadsAll(nn.GRU, **options)
        model.head = nn.Linear(D, 3)
        found = unrolled.explain_batch(model.double(), TOKENS, target=0, expansion="operating")
        assert max(abs(e.ledger["remainder"]) for e in found) < 1e-12
        assert all(e.notes == () for e in found)


def test_scores_are_the_class_weight_on_the_vectors():
    """For a linear head on the last state the score is wᵀ v, [N] eq. 14."""
    model = Model(nn.GRU, "last").double()
    e = unrolled.explain(model, TOKENS[:1], target=1, tokens=list("abcdef"), expansion="path")
    with torch.no_grad():
        found = unrolled.decompose(model.net, model.embedding(TOKENS[:1]), expansion="path")
        scores = found.scores(model.head.weight[1])[0, ..., 0]
    for start in range(T):
        for stop in range(start + 1, T + 1):
            assert e.score(start, stop) == pytest.approx(float(scores[stop - 1, start]), abs=1e-9)
            expected = float(scores[stop - 1, start:stop].sum())
            assert e.phrase_score(start, stop) == pytest.approx(expected, abs=1e-9)
            contributes = e.score(start, stop) if stop == T else 0.0
            assert e.contribution(start, stop) == pytest.approx(contributes, abs=1e-9)
    # reading the whole sentence is reading the state: its phrase score is the logit without the bias
    assert e.phrase_score(0, T) == pytest.approx(e.ledger["logit"] - e.ledger["bias"], abs=1e-6)


def test_backward_spans_are_read_at_their_first_token():
    model = Model(nn.LSTM, "mean", bidirectional=True).double()
    e = unrolled.explain(model, TOKENS[:1], target=0, expansion="operating")
    assert e.directions == ("forward", "backward")
    with torch.no_grad():
        found = unrolled.decompose(model.net, model.embedding(TOKENS[:1]), expansion="operating")
    for d, name in enumerate(e.directions):
        scores = found.scores(model.head.weight[0, d * D : (d + 1) * D] / T, d)[0, ..., 0]
        assert e.score(1, 4, name) == pytest.approx(float(scores[3, 1] if d == 0 else scores[1, 3]), abs=1e-9)
    assert e.score(1, 4) == pytest.approx(e.score(1, 4, "forward") + e.score(1, 4, "backward"))


def test_a_batch_is_its_examples():
    model = Model(nn.LSTM, "attention", "gelu", packed=True).double()
    together = batch(model, "secant")
    for b, n in enumerate(LENGTHS.tolist()):
        alone = unrolled.explain(model, TOKENS[b : b + 1, :n], LENGTHS[b : b + 1], target=1)
        torch.testing.assert_close(alone.triangle.scores, together[b].triangle.scores, rtol=1e-5, atol=1e-8)
        assert alone.tokens == together[b].tokens == tuple(map(str, TOKENS[b, :n].tolist()))


def test_one_call_of_a_tagger_by_a_callable_target():
    class Tagger(Model):
        def forward(self, tokens):
            return self.head(self.net(self.embedding(tokens))[0])

    model = Tagger(nn.GRU, bidirectional=True).double()
    e = unrolled.explain(model, TOKENS[:1], target=lambda out: out[:, 2, 1], expansion="operating")
    assert abs(e.ledger["remainder"]) < 1e-12
    assert not e.triangle.contributions[0, 3:].any()  # position 2 reads nothing from later forward states
    with pytest.raises(ShapeError, match=r"callable target such as lambda out: out\[:, -1, 1\]"):
        unrolled.explain(model, TOKENS[:1], target=1)


def test_presentation():
    e = unrolled.explain(Model(nn.GRU).double(), TOKENS[:1], target=1, tokens=list("abcdef"))
    assert len(e.to_records()) == T * (T + 1) // 2
    assert json.loads(json.dumps(e.to_records())) == e.to_records()
    top = e.top(3)
    assert [abs(n.contribution) for n in top] == sorted((abs(n.contribution) for n in top), reverse=True)
    assert e.top(0) == []
    assert "remainder" in e.render()
    assert repr(e).startswith("Explanation(output 1, 6 tokens, secant: ngrams=")
    assert "<script" not in e._repr_html_()


def two_networks():
    model = Model(nn.GRU)
    model.second = nn.LSTM(2, 2)
    return model


class Twice(Model):
    def forward(self, tokens):
        self.net(self.embedding(tokens))
        return super().forward(tokens)


class Pair(Model):
    def forward(self, tokens):
        return super().forward(tokens), 1


def broken():
    model = Model(nn.GRU)
    model.head.bias.data.fill_(float("nan"))
    return model


@pytest.mark.parametrize(
    ("make", "kwargs", "error", "message"),
    [
        (
            lambda: nn.Sequential(nn.Embedding(V, 2), nn.Linear(2, 2)),
            {},
            UsageError,
            "no recurrent network in Sequential",
        ),
        (two_networks, {"readout": "ray"}, UsageError, "of several steps, called once; choose readout='held'$"),
        (two_networks, {"rnn": "second"}, UsageError, "the model gives no sequence to second"),
        (two_networks, {"rnn": "encoder.nett"}, UnknownNameError, "did you mean 'encoder.net'"),
        (two_networks, {"rnn": nn.GRU(1, 1)}, UsageError, "no recurrent network inside the model"),
        (lambda: Twice(nn.GRU), {"readout": "ray"}, UsageError, "expected exactly one call; choose readout='held'$"),
        (lambda: Pair(nn.GRU), {}, ShapeError, "returned a tuple; expected a tensor, or a callable"),
        (broken, {}, NonFiniteError, "the logit is"),
        (lambda: Model(nn.GRU), {"target": -4}, UsageError, "target is -4"),
        (lambda: Model(nn.GRU), {"target": "positive"}, UsageError, "the target is a str; expected an index"),
        (lambda: Model(nn.GRU), {"target": 1.5}, UsageError, "the target is a float; expected an index"),
        (lambda: Model(nn.GRU), {"target": lambda out: out}, ShapeError, r"the target gave \(3, 3\)"),
        (lambda: Model(nn.GRU), {"tokens": ["a"]}, ShapeError, "one list of words for 3 examples; expected a list"),
        (lambda: Model(nn.GRU), {"tokens": [["a"] * 9] * 3}, ShapeError, "9 tokens for a sequence of 6"),
        (lambda: Model(nn.GRU), {"expansion": "zeroo"}, UnknownNameError, "did you mean 'zero'"),
        (lambda: Model(nn.GRU), {"expansion": None}, UsageError, "the expansion is a NoneType; expected a name"),
    ],
)
def test_bad_input_is_named_in_one_line(make, kwargs, error, message):
    with pytest.raises(error, match=message) as caught:
        unrolled.explain_batch(make(), TOKENS, **kwargs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("packed", [False, True])
def test_an_empty_sentence_is_named_in_one_line(packed):
    lengths = torch.tensor([0]) if packed else None
    message = r"the model fails on an input of shape \(1, 0\); expected at least one token"
    with pytest.raises(ShapeError, match=message) as caught:
        unrolled.explain(Model(nn.GRU, packed=packed), TOKENS[:1, :0], lengths)
    assert "\n" not in str(caught.value)
    with pytest.raises(RuntimeError, match="mat1 and mat2"):  # what fails for another reason says so itself
        unrolled.explain(nn.Sequential(nn.Linear(3, 3), nn.GRU(3, 3)), torch.zeros(2, 2, 2))


def test_a_named_network_among_several():
    e = unrolled.explain_batch(two_networks(), TOKENS, rnn="encoder.net", expansion="operating")
    assert max(abs(x.ledger["remainder"]) for x in e) < 1e-5


def test_spans_out_of_range():
    e = unrolled.explain(Model(nn.GRU), TOKENS[:1])
    for call in (lambda: e.score(3, 3), lambda: e.phrase_score(-1, 2), lambda: e.contribution(0, 7)):
        with pytest.raises(UsageError, match="expected 0 <= start < stop <= 6"):
            call()
    with pytest.raises(UsageError, match="unknown direction 'backward'; expected one of: forward"):
        e.score(0, 1, "backward")


def test_padding_that_the_model_reads_is_shown_as_such():
    padded = torch.tensor([[3, 4, 0, 0, 0, 0]])
    e = unrolled.explain(Model(nn.GRU), padded, tokens=["a", "b"])
    assert e.tokens == ("a", "b", *["‹pad›"] * 4)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine")
@pytest.mark.parametrize("pool", POOLS)
def test_on_a_gpu(pool):
    model = Model(nn.LSTM, pool, packed=True, num_layers=2).double().cuda()
    found = unrolled.explain_batch(model, TOKENS.cuda(), LENGTHS, target=1)
    for e, logit in zip(found, model.eval()(TOKENS.cuda(), LENGTHS)[:, 1].tolist(), strict=True):
        assert e.ledger["logit"] == pytest.approx(logit, abs=1e-12)
        assert abs(e.ledger["remainder"]) < 1e-6
