from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from unrolled.cells.elman import Elman
from unrolled.cells.lstm import LSTM
from unrolled.lab.papers.framework.training_loop import WordScorer, train_steps


def steep(model, slope):
    return slope * model.weight.sum()


def test_a_long_gradient_is_shortened_to_the_threshold_and_a_short_one_is_left():
    for slope, moved in ((3.0, 0.5), (0.1, 0.1)):
        model = nn.Linear(1, 1, bias=False)
        before = model.weight.item()
        went = train_steps(model, [slope], steep, torch.optim.SGD(model.parameters(), lr=1.0), clip=0.5)
        assert before - model.weight.item() == pytest.approx(moved, rel=1e-4)
        assert went.norms == pytest.approx((slope,))  # as it was before
        assert not went.diverged


def test_without_a_threshold_the_whole_gradient_is_followed():
    model = nn.Linear(1, 1, bias=False)
    before = model.weight.item()
    train_steps(model, [3.0, 3.0], steep, torch.optim.SGD(model.parameters(), lr=1.0))
    assert before - model.weight.item() == pytest.approx(6.0)


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_a_training_that_diverges_ends_there_and_nothing_is_learned_of_it(bad):
    model = nn.Linear(1, 1, bias=False)
    went = train_steps(model, [1.0, bad, 1.0], steep, torch.optim.SGD(model.parameters(), lr=1.0))
    assert went.diverged
    assert len(went.losses) == len(went.norms) == 1
    assert math.isfinite(model.weight.item())


@pytest.mark.parametrize("cell", [Elman, LSTM], ids=lambda cell: cell.name)
def test_scores_after_a_word_depend_on_the_words_before_it_alone(cell):
    torch.manual_seed(0)
    model, words = WordScorer(6, cell(3, 4), 2), torch.tensor([[0], [1], [2], [3]])
    scores = model(words)
    assert scores.shape == (4, 1, 2)
    other = words.clone()
    other[2] = 5
    changed = (model(other) != scores).any(dim=2).flatten().tolist()
    assert changed == [False, False, True, True]
