"""Shapley interaction indices: the definition, sums of pairs, and the texts that are run for them."""

from __future__ import annotations

from itertools import combinations
from math import factorial

import pytest
import torch
from torch import nn

from unrolled.errors import ShapeError
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.models.pooling import LastState
from unrolled.lab.papers.analyses.attribution_methods.explained_texts import Explained
from unrolled.lab.papers.analyses.attribution_methods.interaction_index import (
    shapley_interactions,
    subset_outputs,
    without_words,
)


def number(members):
    return sum(1 << member for member in members)


def by_definition(values, n, i, j):
    others = [member for member in range(n) if member not in (i, j)]
    total = 0.0
    for size in range(n - 1):
        weight = factorial(size) * factorial(n - size - 2) / factorial(n - 1)
        for some in combinations(others, size):
            at = [values[number((*some, *more))].item() for more in ((i, j), (i,), (j,), ())]
            total += weight * (at[0] - at[1] - at[2] + at[3])
    return total


@pytest.mark.parametrize("n", [2, 3, 5, 6])
def test_the_index_is_that_of_the_definition(n):
    values = torch.randn(2, 2**n, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    found = shapley_interactions(values)
    for row, i, j in [(row, *pair) for row in (0, 1) for pair in combinations(range(n), 2)]:
        assert found[row, i, j].item() == pytest.approx(by_definition(values[row], n, i, j), abs=1e-12)
    assert torch.equal(found, found.mT)
    assert not found.diagonal(dim1=1, dim2=2).any()


def test_the_index_is_that_of_shapiq():
    exact = pytest.importorskip("shapiq.game_theory.exact", reason="shapiq is a second implementation, no dependency")
    n = 6
    values = torch.randn(2**n, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    members = 2 ** torch.arange(n)
    computer = exact.ExactComputer(n_players=n, game=lambda some: values[torch.tensor(some).long() @ members].numpy())
    theirs, ours = computer(index="SII", order=2), shapley_interactions(values)
    for i, j in combinations(range(n), 2):
        assert ours[i, j].item() == pytest.approx(theirs[i, j], abs=1e-12)


def test_of_a_sum_of_pairs_it_is_their_coefficients_and_a_triple_is_shared_among_its_pairs():
    n = 5
    generator = torch.Generator().manual_seed(0)
    pairs = torch.randn(n, n, dtype=torch.float64, generator=generator).triu(1)
    singles = torch.randn(n, dtype=torch.float64, generator=generator)
    present = torch.tensor([[b >> i & 1 for i in range(n)] for b in range(2**n)], dtype=torch.float64)
    values = 3 + present @ singles + torch.einsum("bi,ij,bj->b", present, pairs, present)
    assert torch.allclose(shapley_interactions(values).triu(), pairs, atol=1e-12)
    triple = shapley_interactions(values + present[:, 0] * present[:, 1] * present[:, 4]).triu() - pairs
    assert [triple[0, 1].item(), triple[1, 4].item(), triple[1, 2].item()] == pytest.approx([0.5, 0.5, 0], abs=1e-12)


def test_other_numbers_of_values_are_refused_and_one_member_has_no_pair():
    with pytest.raises(ShapeError, match="power of two"):
        shapley_interactions(torch.zeros(6))
    assert shapley_interactions(torch.zeros(2)).tolist() == [[0.0]]


@pytest.mark.parametrize("blank", [False, True])
def test_subsets_are_runs_of_the_texts_that_are_left(blank):
    torch.manual_seed(0)
    model = Classifier(nn.Embedding(9, 4), nn.GRU(4, 6, batch_first=True), LastState(), nn.Linear(6, 2)).eval()
    text = torch.tensor([[5, 8, 3, 2], [4, 4, 7, 6]])
    explained = Explained(model, text, torch.tensor([4, 4]), torch.tensor([1, 1]))
    found = subset_outputs(explained, blank=blank)
    assert torch.allclose(found[:, -1], explained.margins().double(), atol=1e-6)
    left = [[1, 8, 1, 2], [1, 4, 1, 6]] if blank else [[8, 2], [4, 6]]
    logits = model(torch.tensor(left), torch.tensor([len(left[0])] * 2)).detach().double()
    assert torch.allclose(found[:, 0b1010], logits[:, 1] - logits[:, 0], atol=1e-6)
    nothing = (model.head.bias[1] - model.head.bias[0]).item()
    assert without_words(explained).tolist() == pytest.approx([nothing] * 2)
    assert (abs(found[0, 0].item() - nothing) < 1e-6) is not blank  # four blank words are a text
