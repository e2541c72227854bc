"""The error of a sum of n-grams: against the vectors themselves, with sentences that end early."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import unrolled
from unrolled.lab.data.batching import EncodedTexts
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.pooling import LastState
from unrolled.lab.papers.analyses.accumulated_error import accumulated_errors, by_length

WORDS = ("no", "dull", "film", "is", "fine")
TEXTS = [WORDS, WORDS[:2], WORDS[1:5]]


@pytest.fixture
def model():
    torch.manual_seed(0)
    made = Classifier(nn.Embedding(7, 4), nn.GRU(4, 5, batch_first=True), LastState(), nn.Linear(5, 2)).eval()
    for weight in made.parameters():
        weight.data.mul_(3)
    return made


@pytest.fixture
def texts():
    return EncodedTexts.encode(TEXTS, [0, 0, 0], Vocabulary.from_texts([WORDS]))


def test_it_is_the_distance_of_the_vectors_sum_from_the_state(model, texts):
    found = accumulated_errors(model, texts, "zero", longest=4)
    assert found.shape == (3, 4)
    vocabulary = Vocabulary.from_texts([WORDS])
    rnn = nn.GRU(4, 5, batch_first=True).double()
    rnn.load_state_dict(model.encoder.state_dict())
    for row, text in zip(found, TEXTS, strict=True):
        x = model.embedding(torch.tensor(vocabulary.encode(text))).detach().double()[:4]
        states = rnn(x)[0].detach()
        sums = unrolled.decompose(rnn, x, expansion="zero").vectors()[0].sum(dim=1)
        expected = (sums - states).norm(dim=-1) / states.norm(dim=-1)
        torch.testing.assert_close(row[: len(x)], expected)
        assert row[len(x) :].isnan().all()
    assert found[:, 0].max() < 1e-12  # one word from nothing is expanded where it stands
    assert found[0, 1:].min() > 1e-3


def test_exact_expansions_are_off_by_rounding_in_double_precision_and_the_model_stays_as_it_was(model, texts):
    for expansion in ("operating", "path", "gates"):
        errors = accumulated_errors(model, texts, expansion, longest=5)
        assert errors[~errors.isnan()].max() < 1e-6 if expansion == "path" else errors[~errors.isnan()].max() < 1e-13
    assert next(model.parameters()).dtype == torch.float32


def test_quantiles_are_of_the_sentences_that_are_long_enough():
    nan, inf = math.nan, math.inf
    errors = torch.tensor([[0.1, 0.5, 9.0], [0.2, nan, nan], [0.3, 0.7, nan], [0.4, inf, nan]], dtype=torch.float64)
    told = by_length(errors, fewest=2)
    assert told.median == (0.3, 0.7)
    assert told.ninetieth == (0.4, None)  # past all bounds
    assert by_length(errors, fewest=1).median == (0.3, 0.7, 9.0)
    assert by_length(errors, fewest=4).median == (0.3,)
