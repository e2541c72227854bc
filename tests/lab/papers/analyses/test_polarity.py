"""Polarity scores: against products written out, and against what the model itself says."""

from __future__ import annotations

import pytest
import torch

from unrolled.errors import UsageError
from unrolled.lab.papers.analyses.polarity import (
    context_scores,
    context_vectors,
    ngram_scores,
    polarity_weight,
    triangle_scores,
)
from unrolled.lab.papers.framework.experiment import TrialSetup
from unrolled.lab.papers.framework.synthetic_corpora import negation, ratings, topics
from unrolled.lab.papers.framework.trial_training import train_once

PHRASES = ["charming", "not charming", "the film was not not bad"]
SMALL = {"hidden": 9, "embedding": 9}
TRAINING = {"epochs": 1, "batch": 16}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Train each encoder once, when it is first asked for."""
    room = tmp_path_factory.mktemp("polarity")

    def give(encoder, task="classify", corpus=None, **model):
        setup = TrialSetup(room, None, room / "shelf")
        learned = corpus or negation((48, 16, 16))
        return train_once(setup, task, learned, {"encoder": encoder, **SMALL, **model}, TRAINING)

    return give


def says(run, phrase):
    """The model's own logit of "positive" less that of "negative", without the bias."""
    reading = run.task.prepare(run.model, phrase)
    with torch.no_grad():
        logits = run.model(*reading.inputs)[0] - run.model.head.bias
    return float(logits[-1] - logits[0]) if len(logits) == 2 else float(logits[0])


ALL = ["gru", "lstm", "rnn", "mvma_g", "mvma_l", "mvma_e", "mvma_me", "mvm_g", "mm", "va_w", "va_ew"]


@pytest.mark.parametrize("encoder", ALL)
def test_the_context_of_a_model_that_reads_it_last_is_what_it_says(encoder, trained):
    run = trained(encoder)
    assert context_scores(run, PHRASES).tolist() == pytest.approx([says(run, text) for text in PHRASES], abs=1e-5)


@pytest.mark.parametrize("encoder", ["gru", "lstm", "rnn", "mvma_g", "mvma_l", "va_w", "va_ew"])
def test_all_that_end_at_the_last_word_add_up_to_the_context(encoder, trained):
    run = trained(encoder)
    for phrase in PHRASES:
        triangle = triangle_scores(run, phrase, "path")
        assert triangle.shape == (len(phrase.split()),) * 2
        assert not triangle.triu(1).any()
        assert triangle.sum(dim=1)[-1].item() == pytest.approx(says(run, phrase), abs=1e-5)


def test_what_an_inexact_expansion_adds_up_to_is_not_what_the_network_says(trained):
    run = trained("lstm")
    with torch.no_grad():
        run.model.encoder.weight_hh_l0.mul_(6)
    phrase = PHRASES[-1]
    by_zero = triangle_scores(run, phrase, "zero")[-1].sum().item()
    assert abs(by_zero - says(run, phrase)) > 1e-3
    assert context_scores(run, [phrase], "zero").item() == pytest.approx(by_zero, abs=1e-5)
    assert context_scores(run, [phrase], "path").item() == pytest.approx(says(run, phrase), abs=1e-5)


@pytest.mark.parametrize("encoder", [*ALL])
def test_the_n_gram_of_a_phrase_is_the_corner_of_its_triangle(encoder, trained):
    run = trained(encoder)
    found = ngram_scores(run, PHRASES)  # one batch: padding must not reach it
    corners = [triangle_scores(run, phrase)[-1, 0].item() for phrase in PHRASES]
    assert found.tolist() == pytest.approx(corners, abs=1e-6)


def test_a_bigram_of_mvma_e_is_a_jacobian_at_zero_applied_to_the_first_word(trained):
    run = trained("mvma_e")
    words = torch.tensor(run.task.vocabulary.encode(["not", "charming"]))
    cell = run.model.encoder.cell(0, 0)
    with torch.no_grad():
        first, second = run.model.embedding(words)
        zero = torch.zeros(1, cell.state_size)
        v = torch.func.jvp(lambda s: cell.step(second[None], s), (zero,), (cell.step(first[None], zero),))[1]
        expected = (v @ polarity_weight(run)).item()
    assert ngram_scores(run, ["not charming"]).item() == pytest.approx(expected, abs=1e-6)


def test_a_rating_has_one_weight_and_the_mean_of_contexts_is_another_thing_than_the_last(trained):
    run = trained("gru", task="regress", corpus=ratings((48, 16, 16)), pooling="mean")
    assert polarity_weight(run).equal(run.model.head.weight[0])
    vectors = context_vectors(run, ["the plot is good", "bad"])
    assert vectors.shape == (2, 9)
    one = context_scores(run, ["bad"]).item()
    assert one == pytest.approx(says(run, "bad"), abs=1e-5)
    assert abs(context_scores(run, ["the plot is good"]).item() - says(run, "the plot is good")) > 1e-6


def test_what_has_no_n_grams_of_a_phrase_or_no_polarity_is_refused(trained):
    with pytest.raises(UsageError, match="transformer has no n-grams"):
        ngram_scores(trained("transformer", embedding=8, hidden=8), PHRASES)
    with pytest.raises(UsageError, match="reads one way"):
        ngram_scores(trained("gru", bidirectional=True), PHRASES)
    with pytest.raises(UsageError, match="one output or two"):
        polarity_weight(trained("gru", corpus=topics((48, 16, 16))))
