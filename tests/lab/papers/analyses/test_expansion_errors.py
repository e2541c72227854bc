"""What expansions miss: in a step, against autograd; in a sum, against the vectors; in an account, as rounding."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import unrolled
from unrolled.decomposition.decomposition import decompose
from unrolled.errors import UsageError
from unrolled.lab.data.batches.base import EncodedTexts
from unrolled.lab.data.corpus import Classification
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.pooling import LastState
from unrolled.lab.papers.analyses.expansion_errors import (
    error_quantiles,
    largest_remainder,
    step_errors,
    sum_errors,
)
from unrolled.lab.papers.framework.corpora import SMALL
from unrolled.lab.papers.framework.experiment import TrialSetup
from unrolled.lab.papers.framework.synthetic_corpora import SYNTHETIC
from unrolled.lab.papers.framework.trial_training import train_model

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
    found = sum_errors(model, texts, "zero", longest=4)
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
        errors = sum_errors(model, texts, expansion, longest=5)
        assert errors[~errors.isnan()].max() < 1e-6 if expansion == "path" else errors[~errors.isnan()].max() < 1e-13
    assert next(model.parameters()).dtype == torch.float32


def test_quantiles_are_of_the_sentences_that_are_long_enough():
    nan, inf = math.nan, math.inf
    errors = torch.tensor([[0.1, 0.5, 9.0], [0.2, nan, nan], [0.3, 0.7, nan], [0.4, inf, nan]], dtype=torch.float64)
    told = error_quantiles(errors, fewest=2)
    assert told.median == (0.3, 0.7)
    assert told.ninetieth == (0.4, None)  # past all bounds
    assert error_quantiles(errors, fewest=1).median == (0.3, 0.7, 9.0)
    assert error_quantiles(errors, fewest=4).median == (0.3,)


KINDS = [torch.nn.RNN, torch.nn.GRU, torch.nn.LSTM]
LENGTHS = [6, 4]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def rnn(request):
    torch.manual_seed(0)
    network = request.param(3, 5, batch_first=True).double()
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(3)  # far from linear
    return network


def by_autograd(rnn, inputs):
    """The paper's equations, letter by letter: a Jacobian at zero, and the network's own state before each step."""
    parts = 2 if isinstance(rnn, torch.nn.LSTM) else 1
    size = rnn.hidden_size

    def step(x, state):
        split = tuple(part.view(1, 1, -1) for part in state.view(parts, size).flip(0))  # torch has h before c
        _, after = rnn(x.view(1, 1, -1), split if parts == 2 else split[0])
        return torch.cat([after[1].flatten(), after[0].flatten()]) if parts == 2 else after.flatten()

    state, zero, errors = inputs.new_zeros(parts * size), inputs.new_zeros(parts * size), []
    for x in inputs:
        jacobian = torch.autograd.functional.jacobian(lambda before, x=x: step(x, before), zero)
        guess, state = (step(x, zero) + jacobian @ state)[-size:], step(x, state).detach()
        errors.append(((guess - state[-size:]).norm() / state[-size:].norm()).item())
    return errors


def test_the_error_of_the_expansion_at_zero_is_that_of_the_papers_equation(rnn):
    inputs = torch.randn(2, 6, 3, dtype=torch.float64)
    found = step_errors(decompose(rnn, inputs, LENGTHS, expansion="zero"))
    for row, length, errors in zip(inputs, LENGTHS, found, strict=True):
        assert errors[:length].tolist() == pytest.approx(by_autograd(rnn, row[:length]), abs=1e-12)
        assert errors[length:].abs().sum() == 0
    assert found[:, 0].max() < 1e-12  # from nothing the first step is exact
    assert found.max() > 0.05


@pytest.mark.parametrize("expansion", ["path", "operating"])
def test_exact_expansions_make_no_error_and_the_linear_activations_do(rnn, expansion):
    inputs = torch.randn(2, 6, 3, dtype=torch.float64)
    assert step_errors(decompose(rnn, inputs, LENGTHS, expansion=expansion, tolerance=1e-9)).max() < 1e-9
    assert step_errors(decompose(rnn, inputs, LENGTHS, expansion="activation"))[:, 0].min() > 1e-3


@pytest.mark.parametrize("options", [{"num_layers": 2}, {"bidirectional": True}], ids=str)
def test_only_one_layer_in_one_direction_has_a_single_step(options):
    rnn = torch.nn.GRU(3, 5, batch_first=True, **options)
    with pytest.raises(UsageError, match="one layer"):
        step_errors(decompose(rnn, torch.randn(1, 4, 3), expansion="zero"))


def test_an_accounts_remainder_is_that_of_its_texts(tmp_path):
    setup = TrialSetup(tmp_path / "room", None, tmp_path / "networks")
    corpus = SYNTHETIC[Classification](SMALL, 0)
    run = train_model(setup, "classify", corpus, {"encoder": "gru", "hidden": 8, "embedding": 8}, {"epochs": 1})
    assert 0 <= largest_remainder(run, corpus.test) < 1e-4
