from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import numpy as np
import pytest
import torch

import unrolled
from unrolled.errors import DataError
from unrolled.lab.data.corpus import RatedText, Regression
from unrolled.lab.models.settings import PooledSettings
from unrolled.lab.tasks.regress import Regress

SMALL = {"embedding": 6, "hidden": 8, "dropout": 0.0, "word_dropout": 0.0}
WORTH = {"dull": -1.0, "fine": 0.5, "great": 1.0, "very": 0.0}


def texts(count, seed, shuffled=False):
    """The sum of what its words are worth."""
    draw = random.Random(seed)
    rows = [tuple(draw.choice(list(WORTH)) for _ in range(draw.randint(1, 4))) for _ in range(count)]
    ratings = [3.0 + sum(WORTH[word] for word in row) for row in rows]
    if shuffled:
        draw.shuffle(ratings)
    return tuple(RatedText(row, rating) for row, rating in zip(rows, ratings, strict=True))


CORPUS = Regression(name="sums", train=texts(100, 0), dev=texts(30, 1), test=texts(30, 2))


def made(**parts):
    return Regress.from_corpus(CORPUS, PooledSettings(**SMALL | parts))


def test_it_learns_sums_and_nothing_where_there_is_nothing_to_learn(learn, judge):
    task = made(pooling="mean")
    scores = judge(task, learn(task, CORPUS.train, steps=150), CORPUS.test)
    spread = np.var([each.rating for each in CORPUS.test])
    assert scores["mse"] < 0.1 * spread
    assert scores["pearson"] > 0.95
    blind = judge(task, learn(task, texts(100, 0, shuffled=True), steps=150), CORPUS.test)
    assert blind["mse"] > 0.5 * spread
    assert blind["pearson"] < 0.7


def scaled(scale, shift=0.0):
    def of(examples):
        return tuple(replace(each, rating=shift + scale * each.rating) for each in examples)

    return Regression(name="scaled", **{split: of(getattr(CORPUS, split)) for split in ("train", "dev", "test")})


@pytest.mark.parametrize(("scale", "shift"), [(1e5, 0.0), (1e-4, 0.0), (-3e7, 1e9), (1.0, 2000.0)])
def test_ratings_of_any_unit_are_learned_and_measured_in_it(learn, judge, scale, shift):
    corpus = scaled(scale, shift)
    task = Regress.from_corpus(corpus, PooledSettings(**SMALL, pooling="mean"))
    model = learn(task, corpus.train, steps=150)
    scores = judge(task, model, corpus.test)
    true = np.array([each.rating for each in corpus.test])
    said = np.array([model(torch.tensor([task.vocabulary.encode(each.tokens)])).item() for each in corpus.test])
    assert scores["mse"] == pytest.approx(np.mean((said - true) ** 2), rel=1e-3)
    assert scores["mae"] == pytest.approx(np.mean(np.abs(said - true)), rel=1e-3)
    assert scores["mse"] < 0.1 * np.var(true)
    assert scores["pearson"] > 0.95


def test_in_the_unit_1_prices_are_not_learned(learn, judge):
    corpus = scaled(1e5)
    task = Regress.from_corpus(corpus, PooledSettings(**SMALL, pooling="mean"))
    blind = Regress(task.architecture, task.vocabulary, task.mean, unit=1.0)
    true = np.array([each.rating for each in corpus.test])
    assert judge(blind, learn(blind, corpus.train, steps=150), corpus.test)["mse"] > 0.9 * np.var(true)


def test_a_rating_is_not_rounded_where_products_are():
    corpus = scaled(10.0, 1990.0)  # years
    task = Regress.from_corpus(corpus, PooledSettings(**SMALL))
    torch.manual_seed(0)
    model = task.build().eval()
    tokens = torch.tensor([task.vocabulary.encode(each.tokens[:1] * 3) for each in corpus.test])
    with torch.no_grad():
        exact = model(tokens)[:, 0]
        with torch.autocast("cpu", torch.bfloat16):
            found = model(tokens)[:, 0]
            plain = torch.nn.functional.linear(torch.ones(1, 1), torch.zeros(1, 1), torch.tensor([2001.0]))
    assert found.dtype == torch.float32
    assert (found - exact).abs().max() < 0.3
    assert abs(plain.item() - 2001) >= 1  # as the bias of a linear layer is


def test_usual_ratings_keep_their_unit_and_a_run_without_one_has_1():
    corpora = {scale: scaled(scale) for scale in (0.1, 1.0, 5.0, 1e5, 1e-4)}
    spreads = {scale: np.std([each.rating for each in corpus.train]) for scale, corpus in corpora.items()}
    units = {scale: Regress.from_corpus(each, PooledSettings(**SMALL)).unit for scale, each in corpora.items()}
    assert [units[scale] for scale in (0.1, 1.0, 5.0)] == [1.0, 1.0, 1.0]
    assert all(1 <= spreads[scale] / units[scale] < 10 for scale in (1e5, 1e-4))
    assert {math.log10(unit) % 1 for unit in units.values()} == {0.0}
    record = dict(made().to_record())
    assert Regress.from_record({**record, "unit": 1e5}, PooledSettings(**SMALL)).unit == 1e5
    del record["unit"]
    assert Regress.from_record(record, PooledSettings(**SMALL)).unit == 1.0
    with pytest.raises(DataError, match="unit is 0; expected a positive number"):
        Regress.from_record({**record, "unit": 0.0}, PooledSettings(**SMALL))


def test_ratings_that_float32_cannot_tell_apart_are_refused():
    with pytest.raises(DataError, match=r"the mean 1e\+08 .* subtract a constant from all ratings"):
        Regress.from_corpus(scaled(1.0, 1e8), PooledSettings(**SMALL))
    Regress.from_corpus(scaled(0.0, 1e8), PooledSettings(**SMALL))  # all equal: nothing to tell apart


def test_the_explanation_of_a_price_adds_up_to_it(learn):
    corpus = scaled(1e5)
    task = Regress.from_corpus(corpus, PooledSettings(**SMALL))
    model = learn(task, corpus.train, steps=30)
    tokens = torch.tensor([task.vocabulary.encode(("very", "fine"))])
    found = unrolled.explain(model.double(), tokens, target=0)
    said = model(tokens).item()
    assert abs(said) > 1e4
    assert found.ledger.logit == pytest.approx(said)
    assert found.ledger.ngrams + found.ledger.initial + found.ledger.bias == pytest.approx(said, rel=1e-6)


def test_it_begins_at_the_mean_rating():
    task = made()
    assert task.mean == pytest.approx(np.mean([each.rating for each in CORPUS.train]))
    torch.manual_seed(0)
    model = task.build().eval()
    assert model.head.bias.item() == pytest.approx(task.mean)
    assert model(torch.tensor([[2, 3]])).item() == pytest.approx(task.mean, abs=0.7)


def test_the_measures_are_numpys(learn, judge):
    task = made()
    model = learn(task, CORPUS.train, steps=5)
    said = np.array([model(torch.tensor([task.vocabulary.encode(each.tokens)])).item() for each in CORPUS.dev])
    true = np.array([each.rating for each in CORPUS.dev])
    expected = {
        "mse": np.mean((said - true) ** 2),
        "mae": np.mean(np.abs(said - true)),
        "pearson": np.corrcoef(said, true)[0, 1],
    }
    assert judge(task, model, CORPUS.dev, 4) == pytest.approx(expected, rel=1e-4)
    assert not task.metrics[0].higher_is_better


def test_the_loss_is_the_squared_error_whatever_the_batches(learn, cost):
    task = made()
    model = learn(task, CORPUS.train, steps=3)
    squares = [
        (model(torch.tensor([task.vocabulary.encode(each.tokens)])).item() - each.rating) ** 2 for each in CORPUS.dev
    ]
    for size in (30, 4, 1):
        assert cost(task, model, CORPUS.dev, size) == pytest.approx((sum(squares), 30), rel=1e-5)


def test_gradient_reaches_every_parameter():
    task = made()
    model, split = task.build(), task.encode(CORPUS.train)
    task.loss(model, split.select(torch.arange(100)), ()).total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_its_fields_make_the_same_task_again():
    task = made()
    again = Regress.from_record(json.loads(json.dumps(task.to_record())), task.architecture)
    assert (again.vocabulary, again.mean, again.unit) == (task.vocabulary, task.mean, task.unit)


@pytest.mark.parametrize("mean", [None, "3", math.nan, math.inf, True])
def test_fields_that_were_touched_are_refused(mean):
    with pytest.raises(DataError, match=r"mean is .*; expected a finite number"):
        Regress.from_record({**made().to_record(), "mean": mean}, PooledSettings(**SMALL))


@pytest.mark.parametrize("rating", [math.nan, math.inf, 1e300])
def test_what_is_no_number_is_refused(rating):
    with pytest.raises(DataError, match=r"text 2 has the rating .*; expected a finite float32 number"):
        made().encode([CORPUS.dev[0], RatedText(("fine",), rating)])
    with pytest.raises(DataError, match=r"text 2 has the rating .*; expected a finite float32 number"):
        Regress.from_corpus(replace(CORPUS, train=[CORPUS.dev[0], RatedText(("fine",), rating)]), made().architecture)
    with pytest.raises(DataError, match="no examples"):
        made().encode([])


def test_a_typed_text_is_read():
    task = made()
    reading = task.prepare(task.build().eval(), "very fine")
    assert reading.outputs == ("rating",)
    assert reading.model(*reading.inputs).shape == (1, 1)
