from __future__ import annotations

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import NonFiniteError, ShapeError, UsageError
from unrolled.lab.models.pooling import AttentionPooling, LastState, MaxPooling, MeanPooling
from unrolled.lab.models.ranker import FixedQuestionScorer, Ranker, make_comparison

WORDS, E, H = 20, 4, 5
POOLINGS = {
    "last": lambda: LastState(2),
    "mean": MeanPooling,
    "max": MaxPooling,
    "attention": lambda: AttentionPooling(2 * H),
}
LENGTHS = torch.tensor([3, 5])
SIZES = torch.tensor([[4, 0, 6], [1, 2, 0]])


def made(kind=nn.GRU, pooling="max", counts=3, scale=1.0, **dropout):
    torch.manual_seed(0)
    encoder = kind(E, H, bidirectional=True, batch_first=True)
    ranker = Ranker(nn.Embedding(WORDS, E), encoder, POOLINGS[pooling](), make_comparison(2 * H), counts, **dropout)
    with torch.no_grad():
        for weight in ranker.parameters():
            weight.mul_(scale)
        ranker.match[-1].bias.add_(1)
    return ranker.double().eval()


def drawn(*shape, seed=1):
    return torch.randint(2, WORDS, shape, generator=torch.Generator().manual_seed(seed))


QUESTIONS, CANDIDATES = drawn(2, 5), drawn(2, 3, 6, seed=2)
SHARED = torch.rand(2, 3, 3, generator=torch.Generator().manual_seed(3)).double()
EVERY = pytest.mark.parametrize("pooling", POOLINGS)


@EVERY
@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_the_score_of_a_pair_is_its_own_and_there_is_none_where_there_is_no_candidate(kind, pooling):
    model = made(kind, pooling)
    scores = model(QUESTIONS, LENGTHS, CANDIDATES, SIZES, SHARED)
    for i, j in torch.cartesian_prod(torch.arange(2), torch.arange(3)).tolist():
        if not SIZES[i, j]:
            assert scores[i, j] == -torch.inf
            continue
        question, sentence = QUESTIONS[i, : LENGTHS[i]], CANDIDATES[i, j, : SIZES[i, j]]
        alone = model(question[None], None, sentence[None, None], SIZES[i, j][None, None], SHARED[i, j][None, None])
        torch.testing.assert_close(scores[i, j], alone[0, 0], rtol=0, atol=1e-12)


@EVERY
def test_what_stands_in_the_padding_changes_nothing_and_with_other_lengths_it_does(pooling):
    model = made(pooling=pooling)
    questions = QUESTIONS.masked_fill(torch.arange(5) >= LENGTHS[:, None], 7)
    candidates = CANDIDATES.masked_fill(torch.arange(6) >= SIZES[..., None], 7)
    before = model(QUESTIONS, LENGTHS, CANDIDATES, SIZES, SHARED)
    assert torch.equal(model(questions, LENGTHS, candidates, SIZES, SHARED), before)
    assert not torch.allclose(model(questions, None, CANDIDATES, SIZES, SHARED), before)
    full = torch.where(SIZES > 0, 6, 0)
    assert not torch.allclose(model(QUESTIONS, LENGTHS, candidates, full, SHARED), before)


def test_it_is_the_formula():
    model = made(pooling="mean")
    there = SIZES > 0
    scores = model(QUESTIONS, LENGTHS, CANDIDATES, SIZES, SHARED)
    hidden, _, _, out = model.match
    for i, j in there.nonzero().tolist():
        q, a = (
            model.encoder(model.embedding(tokens[None]))[0][0].mean(0)
            for tokens in (QUESTIONS[i, : LENGTHS[i]], CANDIDATES[i, j, : SIZES[i, j]])
        )
        units = torch.tanh(hidden.weight @ torch.cat((q * a, (q - a) ** 2)) + hidden.bias)
        expected = out.weight[0] @ units + out.bias[0] + model.overlap.weight[0] @ SHARED[i, j]
        torch.testing.assert_close(scores[i, j], expected, rtol=0, atol=1e-12)


def test_every_weight_learns_and_no_gradient_is_lost():
    model = made()
    scores = model(QUESTIONS, LENGTHS, CANDIDATES, SIZES, SHARED)
    scores[SIZES > 0].square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def test_it_may_do_without_counts_and_says_when_they_are_missing():
    model = made(counts=0)
    assert model.overlap is None
    assert model(QUESTIONS, LENGTHS, CANDIDATES, SIZES).shape == (2, 3)
    with pytest.raises(ShapeError, match="counts of shared words are passed; this ranker expects them to be omitted"):
        model(QUESTIONS, LENGTHS, CANDIDATES, SIZES, SHARED)
    with pytest.raises(ShapeError, match="counts of shared words are missing; this ranker expects them to be passed"):
        made()(QUESTIONS, LENGTHS, CANDIDATES, SIZES)


@pytest.mark.parametrize("dropout", [{"dropout": 0.5}, {"word_dropout": 0.5}])
def test_dropout_acts_in_training_only(dropout):
    model = made(**dropout)
    inputs = QUESTIONS, LENGTHS, CANDIDATES, SIZES, SHARED
    assert torch.equal(model(*inputs), model(*inputs))
    model.train()
    assert not torch.equal(model(*inputs), model(*inputs))


# Explanations


@EVERY
@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_a_sentence_opens_for_a_fixed_question(kind, pooling):
    model = made(kind, pooling, scale=2.0)
    question, sentence, shared = QUESTIONS[:1, :3], CANDIDATES[0, 2:], SHARED[0, 2:]
    score = model(question, None, sentence[None], SIZES[:1, 2:], shared[None]).item()
    found = unrolled.explain(FixedQuestionScorer(model, question, shared), sentence)
    ledger = found.ledger
    assert ledger.logit == pytest.approx(score, abs=1e-12)
    assert ledger.ngrams + ledger.initial + ledger.bias + ledger.remainder == pytest.approx(score, abs=1e-12)
    assert abs(ledger.remainder) < 1e-6 < 1e-3 < abs(ledger.ngrams)
    assert found.tokens == tuple(map(str, sentence[0].tolist()))


def test_an_expansion_that_is_not_exact_leaves_a_remainder():
    """Control of the ledgers above."""
    model = made(scale=2.0)
    found = unrolled.explain(
        FixedQuestionScorer(model, QUESTIONS[:1], SHARED[0, :1]), CANDIDATES[0, :1], expansion="zero"
    )
    assert abs(found.ledger.remainder) > 1e-6


def test_the_ranker_opens_as_a_whole_but_for_candidates_that_are_padding():
    model, inputs = made(), (QUESTIONS, LENGTHS, CANDIDATES, SIZES, SHARED)
    found = unrolled.explain_batch(model, *inputs, target=0)
    for each, score in zip(found, model(*inputs)[:, 0].tolist(), strict=True):
        assert each.ledger.logit == pytest.approx(score, abs=1e-12)
        assert abs(each.ledger.remainder) < 1e-9 < 1e-3 < abs(each.ledger.ngrams)
    with pytest.raises(NonFiniteError, match=r"the logit is \[-inf, "):
        unrolled.explain_batch(model, *inputs, target=1)


def test_a_fixed_question_leaves_the_ranker_as_it_was():
    model = made(dropout=0.5).train()
    before = torch.get_rng_state()
    one, other = (FixedQuestionScorer(model, QUESTIONS[:1], SHARED[0, :1]) for _ in range(2))
    assert model.training
    assert model.dropout.training
    assert torch.equal(one.question, other.question)
    assert torch.equal(before, torch.get_rng_state())


# Invalid input


@pytest.mark.parametrize(
    ("candidates", "sizes"),
    [(CANDIDATES[0], SIZES), (CANDIDATES, SIZES[:, :2]), (CANDIDATES[:1], SIZES[:1])],
)
def test_shapes_that_do_not_fit_are_refused(candidates, sizes):
    with pytest.raises(ShapeError, match="a row for each question"):
        made()(QUESTIONS, LENGTHS, candidates, sizes, SHARED)


def test_an_encoder_that_is_not_batch_first_is_refused():
    with pytest.raises(UsageError, match="batch_first=False; expected True"):
        Ranker(nn.Embedding(WORDS, E), nn.GRU(E, H), MeanPooling(), make_comparison(H))
