"""Scores of phrases: against explain(), against runs one by one, and what each must not know."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError
from unrolled.lab.data.vocabulary import Vocabulary
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.pooling import LastState
from unrolled.lab.papers.analyses.attribution_methods.labelled_phrases import LabelledPhrases
from unrolled.lab.papers.analyses.attribution_methods.phrase_scores import (
    PolarityModel,
    attribution_scores,
    contextual_decomposition_scores,
    expansion_error,
    expansion_scores,
    gradient_times_input,
    integrated_gradients,
    isolated_scores,
)
from unrolled.lab.papers.analyses.attribution_methods.word_sums import word_sum_scores

WORDS = ["one", "fine", "film", "that", "is", "not", "a", "bore", "and", "not", "dull"]
SENTENCES = (tuple(WORDS), tuple(WORDS[3:9]), tuple(WORDS[:5]), tuple(WORDS[2:8]))
PLACES = torch.tensor([[0, 0, 3], [0, 4, 8], [1, 2, 6], [1, 0, 5], [2, 1, 3], [3, 0, 4], [3, 1, 3]])
PHRASES = LabelledPhrases(SENTENCES, PLACES, torch.zeros(len(PLACES), dtype=torch.float64))


def reader_of(encoder):
    torch.manual_seed(0)
    vocabulary = Vocabulary.from_texts([WORDS])
    model = Classifier(nn.Embedding(len(vocabulary), 4), encoder(4, 6, batch_first=True), LastState(), nn.Linear(6, 2))
    for weight in model.parameters():
        weight.data.mul_(2)
    return PolarityModel(model.double().eval(), vocabulary)


@pytest.fixture(params=[nn.GRU, nn.LSTM], ids=["gru", "lstm"])
def reader(request):
    return reader_of(request.param)


def bias(reader):
    negative, positive = reader.model.head.bias.tolist()
    return positive - negative


def in_a_longer_sentence(phrases):
    """The same phrases, and further words behind every sentence."""
    return replace(phrases, sentences=tuple((*sentence, "dull", "bore", "dull") for sentence in phrases.sentences))


@pytest.mark.parametrize("expansion", ["zero", "path", "gates", "mean(operating, path)"])
def test_an_expansions_scores_are_those_of_explain(reader, expansion):
    phrase, ngram = expansion_scores(reader, PHRASES, expansion)
    for number, (sentence, start, stop) in enumerate(PLACES.tolist()):
        tokens = torch.tensor([reader.vocabulary.encode(SENTENCES[sentence])])
        account = unrolled.explain(
            reader.model, tokens, target=lambda logits: logits[:, 1] - logits[:, 0], expansion=expansion
        )
        assert phrase[number].item() == pytest.approx(account.phrase_score(start, stop), abs=1e-9)
        assert ngram[number].item() == pytest.approx(account.score(start, stop), abs=1e-9)


def test_exact_scores_of_beginnings_are_the_networks_own_and_zeros_are_not(reader):
    begins = replace(PHRASES, places=torch.tensor([[0, 0, 4], [0, 0, 11], [2, 0, 2]]), labels=torch.zeros(3))
    own = reader.polarities([SENTENCES[0][:4], SENTENCES[0], SENTENCES[2][:2]]) - bias(reader)
    torch.testing.assert_close(expansion_scores(reader, begins, "operating")[0], own, atol=1e-10, rtol=0)
    assert (expansion_scores(reader, begins, "zero")[0] - own).abs().max() > 0.01
    assert expansion_error(reader, SENTENCES, "operating").max() < 1e-10
    assert expansion_error(reader, SENTENCES, "zero").min() > 0.01


def test_a_phrase_alone_is_a_run_of_its_words_and_local_terms_say_so_of_their_own(reader):
    single = [reader.polarities([text]).item() for text in PHRASES.texts]
    assert isolated_scores(reader, PHRASES).tolist() == pytest.approx(single, abs=1e-12)
    moved = replace(PHRASES, places=PLACES + torch.tensor([0, 2, 2]), sentences=tuple(
        ("dull", "bore", *sentence) for sentence in SENTENCES
    ))  # fmt: skip
    for expansion, local in (("zero", True), ("activation", True), ("operating", False)):
        before, after = expansion_scores(reader, PHRASES, expansion)[1], expansion_scores(reader, moved, expansion)[1]
        assert torch.allclose(before, after, atol=1e-9) is local


@pytest.mark.parametrize("to_the_end", [True, False])
def test_integrated_gradients_of_a_beginning_make_up_the_rise_from_zero_vectors(reader, to_the_end):
    begins = replace(PHRASES, places=torch.tensor([[1, 0, 6], [0, 0, 5]]), labels=torch.zeros(2))
    found = attribution_scores(reader, begins, integrated_gradients(60), to_the_end=to_the_end, size=2)
    rises = []
    for text in (SENTENCES[1], SENTENCES[0][:5]):
        nothing = torch.zeros(1, len(text), 4, dtype=torch.float64)
        rises.append(reader.polarities([text]).item() - reader.polarity(nothing, torch.tensor([len(text)])).item())
    assert found[0].item() == pytest.approx(rises[0], abs=1e-4)
    assert (abs(found[1].item() - rises[1]) < 1e-4) is not to_the_end  # the other six words had their say


def test_gradients_in_batches_are_those_of_each_sentence(reader):
    found = attribution_scores(reader, PHRASES, gradient_times_input, to_the_end=True, size=3)
    for number, (sentence, start, stop) in enumerate(PLACES.tolist()):
        tokens = torch.tensor([reader.vocabulary.encode(SENTENCES[sentence])])
        vectors = reader.model.embedding(tokens).detach().requires_grad_()
        logits = reader.model.head(reader.model.encoder(vectors)[0][:, -1])[0]
        (logits[1] - logits[0]).backward()
        expected = (vectors.grad * vectors)[0, start:stop].sum().item()
        assert found[number].item() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("expansion", ["secant", "shares"])
def test_the_words_of_a_phrase_have_its_score_where_a_network_has_no_biases(expansion):
    reader = reader_of(partial(nn.GRU, bias=False))
    words = word_sum_scores(reader, PHRASES, f"account, {expansion}", to_the_end=False)
    assert torch.allclose(words, expansion_scores(reader, PHRASES, expansion)[0], atol=1e-10)
    at_the_end = word_sum_scores(reader, PHRASES, f"account, {expansion}", to_the_end=True)
    assert not torch.allclose(words, at_the_end, atol=1e-3)  # later words changed what the phrase contributes


@pytest.mark.parametrize("method", ["account, secant", "LRP"])
def test_words_have_another_score_than_their_phrase_where_a_network_has_biases(method):
    reader = reader_of(nn.LSTM)
    words = word_sum_scores(reader, PHRASES, method, to_the_end=False)
    assert not torch.allclose(words, expansion_scores(reader, PHRASES, "secant")[0], atol=1e-3)


@pytest.mark.parametrize(
    "score",
    [
        lambda reader, phrases, end: attribution_scores(reader, phrases, gradient_times_input, to_the_end=end, size=4),
        lambda reader, phrases, end: contextual_decomposition_scores(reader, phrases, to_the_end=end),
        lambda reader, phrases, end: word_sum_scores(reader, phrases, "LRP", to_the_end=end),
    ],
    ids=["gradients", "contextual decomposition", "relevance"],
)
def test_what_is_read_at_the_phrases_end_knows_nothing_of_what_follows(score):
    reader = reader_of(nn.LSTM)
    for end in (True, False):
        same = torch.allclose(
            score(reader, PHRASES, end), score(reader, in_a_longer_sentence(PHRASES), end), atol=1e-10
        )
        assert same is not end


def test_contextual_decomposition_of_a_whole_sentence_is_its_polarity():
    reader = reader_of(nn.LSTM)
    whole = replace(PHRASES, places=torch.tensor([[0, 0, 11], [2, 0, 5]]), labels=torch.zeros(2))
    own = reader.polarities([SENTENCES[0], SENTENCES[2]]) - bias(reader)
    torch.testing.assert_close(contextual_decomposition_scores(reader, whole, to_the_end=True), own, atol=1e-10, rtol=0)
    with pytest.raises(UsageError, match=r"needs an nn\.LSTM; the encoder is a GRU"):
        contextual_decomposition_scores(reader_of(nn.GRU), PHRASES, to_the_end=True)


def test_without_captum_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    with pytest.raises(UsageError, match=r'pip install "unrolled\[compare\]"'):
        integrated_gradients(4)
