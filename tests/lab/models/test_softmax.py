"""Softmax layers: full, tied, adaptive; and the block-wise loss against the reference."""

from __future__ import annotations

import pytest
import torch

from unrolled.errors import UsageError
from unrolled.lab.models import softmax_loss as module
from unrolled.lab.models.softmax import AdaptiveSoftmax, FullSoftmax, TiedSoftmax
from unrolled.lab.models.softmax_loss import softmax_loss, softmax_loss_reference

WORDS, SIZE, COUNT = 37, 6, 23


def case(dtype=torch.float64):
    torch.manual_seed(1)
    features = torch.randn(COUNT, SIZE, dtype=dtype, requires_grad=True)
    weight = torch.randn(WORDS, SIZE, dtype=dtype, requires_grad=True)
    bias = torch.randn(WORDS, dtype=dtype, requires_grad=True)
    targets = torch.randint(1, WORDS, (COUNT,))
    targets[[3, 11]] = 0
    return features, targets, weight, bias


@pytest.mark.parametrize("block", [1, 2 * WORDS, 7 * WORDS, 10**6])
def test_the_loss_in_blocks_is_the_plain_one_and_so_are_its_gradients(monkeypatch, block):
    monkeypatch.setattr(module, "_BLOCK", block)
    features, targets, weight, bias = case()
    leaves = (features, weight, bias)
    ours, plain = (f(features, targets, weight, bias) for f in (softmax_loss, softmax_loss_reference))
    torch.testing.assert_close(ours, plain, rtol=0, atol=1e-11)
    found, expected = (torch.autograd.grad(3 * loss, leaves) for loss in (ours, plain))
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)
    assert not found[0][[3, 11]].any()
    assert found[0][4].any()


def test_the_loss_is_differentiated_once_only():
    features, targets, weight, bias = case()
    loss = softmax_loss(features, targets, weight, bias)
    (gradient,) = torch.autograd.grad(loss, features, create_graph=True)
    assert not gradient.requires_grad
    (naive,) = torch.autograd.grad(softmax_loss_reference(features, targets, weight, bias), features, create_graph=True)
    assert naive.requires_grad


def test_large_logits_do_not_overflow():
    features, targets, weight, bias = case(torch.float32)
    ours, plain = (f(1e3 * features, targets, weight, bias) for f in (softmax_loss, softmax_loss_reference))
    assert torch.isfinite(ours)
    torch.testing.assert_close(ours, plain)


def test_without_gradients_it_is_the_plain_one():
    features, targets, weight, bias = case()
    with torch.no_grad():
        assert torch.equal(softmax_loss(features, targets, weight, bias), softmax_loss_reference(*case()))
    assert softmax_loss(features, targets, weight.detach(), bias).grad_fn.name() != "_SoftmaxLossBackward"


def test_a_full_layer_has_weights_of_its_own_and_a_tied_one_the_word_vectors():
    features, targets, vectors, _ = case()
    full = FullSoftmax(SIZE, WORDS).double()
    torch.testing.assert_close(full.scores(features, vectors), features @ full.output.weight.T + full.output.bias)
    tied = TiedSoftmax(SIZE, WORDS, SIZE).double()
    tied.bias.data.normal_()
    assert [name for name, _ in tied.named_parameters()] == ["bias"]
    torch.testing.assert_close(tied.scores(features, vectors), features @ vectors.T + tied.bias)
    projected = TiedSoftmax(SIZE, WORDS, 4).double()
    short = torch.randn(WORDS, 4).double()
    expected = features @ projected.project.weight.T @ short.T
    torch.testing.assert_close(projected.scores(features, short), expected)
    for layer, own in ((full, vectors), (tied, vectors), (projected, short)):
        scores = layer.scores(features, own)
        expected = torch.nn.functional.cross_entropy(scores, targets, ignore_index=0, reduction="sum")
        torch.testing.assert_close(layer.loss(features, targets, own), expected)


def test_tied_vectors_learn_from_what_they_predict():
    features, targets, vectors, _ = case()
    tied = TiedSoftmax(SIZE, WORDS, SIZE).double()
    (gradient,) = torch.autograd.grad(tied.loss(features, targets, vectors), vectors)
    assert gradient.abs().sum(dim=1).all()


@pytest.fixture
def adaptive(monkeypatch):
    monkeypatch.setattr("unrolled.lab.models.softmax._CUTOFFS", (5, 12, 30))
    torch.manual_seed(0)
    return AdaptiveSoftmax(64, WORDS).double()


def test_adaptive_scores_are_log_probabilities_and_the_loss_is_theirs(adaptive):
    assert adaptive.clusters.cutoffs == [5, 12, 30, WORDS]
    features, (_, targets, vectors, _) = torch.randn(COUNT, 64).double(), case()
    scores = adaptive.scores(features, vectors)
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(COUNT).double())
    kept = targets != 0
    expected = -scores[kept].gather(1, targets[kept, None]).sum()
    torch.testing.assert_close(adaptive.loss(features, targets, vectors), expected)
    batch = features[:20].view(4, 5, 64)
    torch.testing.assert_close(adaptive.scores(batch, vectors), scores[:20].view(4, 5, WORDS))


def test_adaptive_needs_many_words_and_some_features():
    with pytest.raises(UsageError, match="adaptive softmax of 100 words on 64 features; expected more than 2,000"):
        AdaptiveSoftmax(64, 100)
    with pytest.raises(UsageError, match=r"on 3 features; expected .* at least 4 features"):
        AdaptiveSoftmax(3, 5000)
    assert AdaptiveSoftmax(8, 100_000).clusters.cutoffs == [2_000, 100_000]
