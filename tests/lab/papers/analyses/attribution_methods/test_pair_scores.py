"""Scores of pairs of words: what they sum to, and methods against their definitions."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

import unrolled
from unrolled.errors import UsageError
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.pooling import LastState
from unrolled.lab.papers.analyses.attribution_methods.explained_texts import Explained
from unrolled.lab.papers.analyses.attribution_methods.pair_scores import RIVALS, expansion_pairs, rival_pairs
from unrolled.lab.papers.analyses.faithfulness.pair_agreement import of_one_length, rank_agreement, sign_agreement
from unrolled.lab.papers.analyses.sentences.negated_pairs import planted_pairs

TEXTS = torch.tensor([[5, 8, 3, 2], [4, 4, 7, 6]])


def explained_of(encoder, **options):
    torch.manual_seed(0)
    ways = 2 if options.get("bidirectional") else 1
    model = Classifier(
        nn.Embedding(9, 4), encoder(4, 6, batch_first=True, **options), LastState(), nn.Linear(6 * ways, 2)
    )
    for weight in model.parameters():
        weight.data.mul_(2)
    return Explained(model.eval(), TEXTS, torch.tensor([4, 4]), torch.tensor([1, 1]))


@pytest.mark.parametrize(("expansion", "exact"), [("secant", True), ("shares", True), ("gates", True), ("zero", False)])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2}], ids=["one layer", "two layers"])
def test_single_words_and_changes_sum_to_the_logit_by_exact_expansions_only(expansion, exact, options):
    explained = explained_of(nn.LSTM, **options)
    found = expansion_pairs(explained, expansion)
    words = found["own term"].diagonal(dim1=1, dim2=2).sum(dim=1)
    bias = explained.model.head.bias[1] - explained.model.head.bias[0]
    total = words + found["change"].triu(1).sum(dim=(1, 2)) + bias.item()
    assert torch.allclose(total, explained.margins().double(), atol=1e-5) is exact


def test_the_readings_are_those_of_explain():
    explained = explained_of(nn.GRU)
    own, change, around = expansion_pairs(explained, "secant").values()
    theirs = unrolled.explain(explained.model, TEXTS[:1], target=lambda logits: logits[:, 1] - logits[:, 0])
    assert own[0, 1, 3].item() == pytest.approx(theirs.score(1, 4), abs=1e-6)
    assert change[0, 1, 3].item() == pytest.approx(theirs.score(1, 4) - theirs.score(1, 3), abs=1e-6)
    assert around[0, 1, 2].item() == pytest.approx(
        sum(theirs.score(start, stop) for start in (0, 1) for stop in (3, 4)), abs=1e-6
    )
    phrase = theirs.phrase_score
    beyond = phrase(1, 4) - phrase(2, 4) - phrase(1, 3) + phrase(2, 3)
    assert change[0, 1, 3].item() == pytest.approx(beyond, abs=1e-6)


def test_the_phrase_alone_gives_what_two_words_have_beyond_one_each():
    explained = explained_of(nn.LSTM)

    def run(*tokens):
        logits = explained.model(torch.tensor([tokens]), torch.tensor([len(tokens)]))[0]
        return (logits[1] - logits[0]).item()

    nothing = (explained.model.head.bias[1] - explained.model.head.bias[0]).item()
    found = rival_pairs(explained, "the phrase alone")
    assert found[0, 1, 2].item() == pytest.approx(run(8, 3) - run(8) - run(3) + nothing, abs=1e-5)
    assert found[0, 0, 2].item() == pytest.approx(run(5, 8, 3) - run(8, 3) - run(5, 8) + run(8), abs=1e-5)


def test_controls_are_made_of_the_terms_of_single_words():
    explained = explained_of(nn.LSTM)
    words = expansion_pairs(explained, "secant")["own term"].diagonal(dim1=1, dim2=2)
    names = ("product of the words' terms", "minus the first word's term", "minus both words' terms")
    product, first, both = (rival_pairs(explained, name) for name in names)
    assert torch.equal(product[:, 1, 3], words[:, 1] * words[:, 3])
    assert torch.equal(first[:, 1, 3], -words[:, 1])
    assert torch.equal(both[:, 1, 3], -words[:, 1] - words[:, 3])


def test_second_derivatives_are_those_of_small_steps():
    explained = explained_of(nn.GRU)
    explained = replace(explained, model=explained.model.double())
    found, step = rival_pairs(explained, "Hessian x input"), 1e-4

    def at(one, other):
        factors = torch.ones(4, dtype=torch.float64)
        factors[1] += one
        factors[3] += other
        return explained.target_of_vectors(explained.vectors * factors[:, None], explained.lengths)

    mixed = (at(step, step) - at(step, -step) - at(-step, step) + at(-step, -step)) / (4 * step**2)
    assert torch.allclose(found[:, 1, 3], mixed, atol=1e-6)
    assert found[:, 1, 3].abs().min() > 1e-5


def test_methods_of_an_lstm_refuse_others_and_backward_networks_have_no_pairs():
    with pytest.raises(UsageError, match="LSTM"):
        rival_pairs(explained_of(nn.GRU), "contextual decomposition")
    with pytest.raises(UsageError, match="one direction"):
        expansion_pairs(explained_of(nn.GRU, bidirectional=True), "secant")
    for method in RIVALS:
        assert rival_pairs(explained_of(nn.LSTM), method).shape == (2, 4, 4)


def test_planted_pairs_are_balanced_so_that_one_sign_for_all_is_right_in_half():
    planted = planted_pairs()
    assert max(len(each.words) for each in planted) <= 10
    for negated in (True, False):
        expected = [each.expected for each in planted if each.negated is negated]
        assert sum(expected) == 0
    signs = {each.pair: each.expected for each in planted}
    assert [signs["not", "bad"], signs["not", "good"], signs["very", "good"], signs["very", "bad"]] == [1, -1, 1, -1]


def test_scores_agree_with_themselves_and_their_negatives_do_not():
    planted = planted_pairs()
    generator = torch.Generator().manual_seed(0)
    index = [torch.randn(len(each.words), len(each.words), generator=generator).double() for each in planted]
    opposite = [-each for each in index]
    assert rank_agreement(index, index, 5)["neighbours"] == [1.0, 1.0, 1.0]
    assert rank_agreement(opposite, index, 5)["all pairs"] == [-1.0, -1.0, -1.0]
    assert sign_agreement(index, index, planted, 5)["negators"] == [1.0, 1.0, 1.0]
    assert sign_agreement(opposite, index, planted, 5)["negators"] == [0.0, 0.0, 0.0]
    only_here = [torch.zeros(len(each.words), len(each.words)).double() for each in planted]
    for each, matrix in zip(planted, only_here, strict=True):
        matrix[each.place, each.place + 1] = each.expected
    found = sign_agreement(only_here, index, planted, 5)
    assert found["expected"] == found["strongest"] == [1.0, 1.0, 1.0]


def test_texts_are_batched_by_length_and_explain_the_second_class():
    model = explained_of(nn.GRU).model
    batches = of_one_length(model, [[3, 4], [5, 6, 7], [8, 2]])
    assert [which for which, _ in batches] == [[0, 2], [1]]
    assert all(explained.classes.eq(1).all() for _, explained in batches)
