from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from unrolled.errors import NonFiniteError
from unrolled.text.batching import EncodedTexts
from unrolled.text.vocabulary import UNKNOWN, Vocabulary
from unrolled.training.classify import train_classifier
from unrolled.training.loop import TrainingSettings, evaluate, fit


class Recorder(nn.Module):
    """A classifier that learns nothing and says on dev what it was told to: one logit for each epoch."""

    def __init__(self, script):
        super().__init__()
        self.script = script
        self.bias = nn.Parameter(torch.zeros(2))
        self.register_buffer("passes", torch.tensor(0))
        self.was_training = False
        self.seen = []

    def forward(self, tokens, _lengths):
        if self.training:
            self.was_training = True
            self.seen.append(tokens)
            return self.bias.expand(len(tokens), 2)
        if self.was_training:  # the first dev batch after training: a new epoch's verdict
            self.passes += 1
            self.was_training = False
        logit = self.script[int(self.passes) - 1]
        return torch.tensor([[0.0, logit]]).expand(len(tokens), 2)


class Watching:
    def __init__(self):
        self.steps, self.epochs = [], []

    def step(self, epoch, done, total):
        self.steps.append((epoch, done, total))

    def epoch(self, epoch, best):
        self.epochs.append((epoch.number, best.number))


@pytest.fixture(scope="module")
def texts(dataset):
    vocabulary = Vocabulary.from_texts([example.tokens for example in dataset.train])
    return EncodedTexts.encode(dataset.train, vocabulary)


@pytest.fixture(scope="module")
def positives(dataset):
    vocabulary = Vocabulary.from_texts([example.tokens for example in dataset.train])
    return EncodedTexts.encode([example for example in dataset.train if example.label == 1], vocabulary)


def test_a_classifier_learns_what_can_be_learned(run):
    assert run.metrics["test_accuracy"] == 1.0
    assert run.history[-1].loss < run.history[0].loss
    assert not run.model.training


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(dataset, architecture, settings, run):
    def weights(model):
        return nn.utils.parameters_to_vector(model.parameters())

    torch.manual_seed(99)  # the caller's generator is no part of it
    again = train_classifier(dataset, architecture, settings)
    assert torch.equal(weights(again.model), weights(run.model))
    assert [epoch.loss for epoch in again.history] == [epoch.loss for epoch in run.history]
    other = train_classifier(dataset, architecture, settings.model_copy(update={"seed": 1}))
    assert not torch.equal(weights(other.model), weights(run.model))


def test_the_callers_generator_is_left_as_it_was(dataset, architecture, settings):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train_classifier(dataset, architecture, settings.model_copy(update={"epochs": 1}))
    assert torch.equal(torch.rand(3), expected)


def test_training_stops_after_epochs_without_a_better_one_and_the_best_weights_stay(texts, positives):
    model = Recorder([-1.0, 1.0, 2.0, 1.5, -3.0, 9.0])
    watching = Watching()
    found = fit(model, texts, positives, TrainingSettings(epochs=6, patience=2), watching)
    assert [epoch.number for epoch in found.history] == [1, 2, 3, 4, 5]
    assert found.best.number == 3
    assert int(model.passes) == 3  # a buffer of the model's: it came back with the best weights
    assert watching.epochs == [(1, 1), (2, 2), (3, 3), (4, 3), (5, 3)]


def test_among_equally_accurate_epochs_the_smaller_loss_is_better(texts, positives):
    found = fit(Recorder([0.5, 2.0, 1.0]), texts, positives, TrainingSettings(epochs=3))
    assert [epoch.dev_accuracy for epoch in found.history] == [1.0, 1.0, 1.0]
    assert found.best.number == 2


def test_the_watcher_sees_every_text_go_by(texts, positives):
    watching = Watching()
    fit(Recorder([1.0, 2.0]), texts, positives, TrainingSettings(epochs=2, batch=16), watching)
    assert {total for _, _, total in watching.steps} == {120}
    assert [step for step in watching.steps if step[1] == 120] == [(1, 120, 120), (2, 120, 120)]


def test_word_dropout_reads_about_its_share_of_words_as_unknown(texts, positives):
    for share in (0.0, 0.3):
        model = Recorder([1.0] * 10)
        fit(model, texts, positives, TrainingSettings(epochs=10, patience=10, batch=500, word_dropout=share))
        hidden = torch.cat([(tokens == UNKNOWN).flatten() for tokens in model.seen]).double().mean()
        assert abs(hidden - share) < 0.03


def test_gradients_are_cut_to_the_norm_that_was_asked_for(texts, positives):
    class Steep(Recorder):
        def forward(self, tokens, lengths):
            logits = super().forward(tokens, lengths)
            return logits * 1e4 if self.training else logits

    settings = TrainingSettings(epochs=1, batch=120, optimiser="sgd", lr=1.0, clip=0.01)
    model = Steep([1.0])
    model.bias.data = torch.tensor([1.0, 0.0])
    before = model.bias.detach().clone()
    fit(model, texts, positives, settings)
    steps = len(model.seen)
    assert 0 < (model.bias.detach() - before).norm() <= 0.01 * steps * (1 + 1e-4)


def test_a_loss_that_is_no_number_stops_the_training(texts, positives):
    model = Recorder([1.0])
    model.bias.data.fill_(math.nan)
    with pytest.raises(NonFiniteError, match=r"nan in epoch 1 after 0 texts; .* learning rate below 0\.001"):
        fit(model, texts, positives, TrainingSettings())


def test_the_score_is_the_share_of_right_answers_and_the_mean_cross_entropy(texts):
    model = Recorder([2.0]).eval()
    model.passes += 1
    score = evaluate(model, texts)
    assert score.accuracy == 0.5
    assert score.loss == pytest.approx((math.log1p(math.exp(-2)) + math.log1p(math.exp(2))) / 2, rel=1e-6)
