"""Measures of an attribution method on a network: sums, order of the texts, stability."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.errors import UsageError
from unrolled.lab.data.corpus import Example
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.pooling import MeanPooling
from unrolled.lab.papers.analyses.attribution_methods.explained_texts import batch_texts
from unrolled.lab.papers.analyses.attribution_methods.token_attributions import attribute
from unrolled.lab.papers.analyses.faithfulness.deletion import delete
from unrolled.lab.papers.analyses.faithfulness.measures import measure_method, time_gradient
from unrolled.lab.papers.analyses.text_classifiers import draw_texts

TEXTS = [[2, 3, 4, 5, 6, 7], [4, 4, 5, 6, 7], [2, 2, 7, 3, 3, 5, 6], [7, 6, 5, 4, 3], [3, 5, 2, 6, 4, 7, 7]]


@pytest.fixture
def model():
    torch.manual_seed(0)
    encoder = nn.GRU(3, 4, batch_first=True)
    return Classifier(nn.Embedding(8, 3), encoder, MeanPooling(), nn.Linear(4, 3)).double().eval()


def test_the_scores_stand_in_the_order_of_the_texts(model):
    batches = batch_texts(model, TEXTS, size=2)
    assert len(batches) > 2
    found = measure_method("secant", batches, 1.0, 5)
    for text, score in zip(TEXTS, found["scores"], strict=True):
        ((_, alone),) = batch_texts(model, [text])
        assert score == pytest.approx(1000 * float(delete(alone, attribute("secant", alone).values).score), abs=1)


def test_what_is_complete_leaves_nothing_over_and_what_is_not_does(model):
    batches = batch_texts(model, TEXTS)
    gradient = time_gradient(batches)
    assert gradient > 0
    exact, not_exact = (measure_method(name, batches, gradient, 2) for name in ("secant", "zero"))
    assert exact["remainder"] < 1e-6 < not_exact["remainder"]
    assert measure_method("occlusion", batches, gradient, 2)["remainder"] is None
    assert exact["cancellation"] >= 1


def test_a_method_that_ignores_context_is_stable_and_random_attributions_are_not(model):
    batches = batch_texts(model, TEXTS)
    with torch.no_grad():
        model.encoder.weight_hh_l0.zero_()
        model.encoder.weight_ih_l0[4:8] = 0  # the update gate: then a word's part does not depend on the others
    batches = batch_texts(model, TEXTS)
    steady, random = (measure_method(name, batches, 1.0, 5)["stability"] for name in ("gradient x input", "random"))
    assert steady > 0.9 > random


def test_a_method_that_the_network_does_not_have_is_refused(model):
    with pytest.raises(UsageError, match="LSTM"):
        measure_method("LRP", batch_texts(model, TEXTS), 1.0, 2)


def test_fewer_texts_are_the_first_of_more():
    examples = [Example(("a",) * length, 0) for length in range(1, 40)]
    some, more = (draw_texts(examples, count) for count in (5, 20))
    assert some == more[:5]
    assert min(map(len, more)) >= 5


def test_stability_is_measured_where_texts_are_left_for_it(model):
    batches = batch_texts(model, TEXTS)
    assert measure_method("secant", batches, 1.0, 0)["stability"] is None
    assert measure_method("secant", batches, 1.0, 1)["stability"] is not None
