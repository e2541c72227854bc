from __future__ import annotations

import pytest
import torch

from unrolled.errors import DataError
from unrolled.lab.data.batches.base import EncodedSequences

SEQUENCES = [([1, 2, 3], [7, 8, 9]), ([4], [5]), ([6, 6], [1, 0])]


def test_every_sequence_is_laid_out_with_all_that_is_said_of_it():
    values, lengths = EncodedSequences.from_rows(SEQUENCES).gather(torch.tensor([2, 0, 1]), (0, -100))
    assert lengths.tolist() == [2, 3, 1]
    assert values[0].tolist() == [[6, 6, 0], [1, 2, 3], [4, 0, 0]]
    assert values[1].tolist() == [[1, 0, -100], [7, 8, 9], [5, -100, -100]]


def test_a_plan_has_every_sequence_once_and_another_generator_another_order():
    split = EncodedSequences.from_rows([([1] * (1 + i % 3),) for i in range(40)])
    assert len(split) == 40
    plans = [split.plan(7, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    for plan in (*plans, split.plan(7)):
        assert sorted(torch.cat(plan).tolist()) == list(range(40))
        assert max(map(len, plan)) <= 7
    orders = [torch.cat(plan).tolist() for plan in plans]
    assert orders[0] == orders[1] != orders[2]


@pytest.mark.parametrize(
    ("rows", "message"),
    [([], "a split has no examples"), ([([1], [2]), ([], [])], "example 2 of 2 is empty")],
)
def test_nothing_is_refused(rows, message):
    with pytest.raises(DataError, match=message):
        EncodedSequences.from_rows(rows)
