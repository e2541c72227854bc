"""Columns and windows: every token predicted once, after the one that stands before it in the text."""

from __future__ import annotations

import pytest
import torch

from unrolled.errors import DataError, UsageError
from unrolled.lab.data.batches.windows import RunningText
from unrolled.lab.data.vocabulary import PADDING

BEFORE = 2


def text(tokens, width=5, dtype=torch.int64):
    """Tokens are all different, so that each says where it stood."""
    return RunningText(torch.arange(10, 10 + tokens, dtype=dtype), BEFORE, width)


def pairs(running, size, generator=None):
    """(what is read, what is predicted), over all windows."""
    found = []
    for which in running.plan(size, generator):
        window = running.select(which)
        assert window.tokens.shape == window.targets.shape
        kept = window.targets != PADDING
        found += zip(window.tokens[kept].tolist(), window.targets[kept].tolist(), strict=True)
    return found


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("tokens", [1, 2, 7, 23, 24, 25, 101])
@pytest.mark.parametrize("size", [1, 3, 8])
def test_every_token_is_predicted_once_after_the_one_before_it(tokens, size, dtype):
    expected = [(BEFORE if k == 10 else k - 1, k) for k in range(10, 10 + tokens)]
    for generator in (None, torch.Generator().manual_seed(3)):
        assert sorted(pairs(text(tokens, dtype=dtype), size, generator), key=lambda pair: pair[1]) == expected


def test_one_column_is_the_text_in_its_order():
    assert [target for _, target in pairs(text(23), 1)] == list(range(10, 33))


def test_each_column_goes_on_where_its_window_before_ended():
    running = text(103)
    columns = torch.cat([running.select(which).targets for which in running.plan(4)], dim=1)
    rows = [row[row != PADDING].tolist() for row in columns]
    assert [len(row) for row in rows] == [26, 26, 26, 25]
    assert [token for row in rows for token in row] == list(range(10, 113))


def test_only_the_last_position_of_the_last_window_may_be_padding():
    running = text(103)
    *windows, last = [running.select(which).targets for which in running.plan(4)]
    assert all((targets != PADDING).all() for targets in windows)
    assert (last[:, :-1] != PADDING).all()
    assert (last[:, -1] == PADDING).tolist() == [False, False, False, True]


def test_a_plan_is_the_same_without_a_generator_and_its_cuts_move_with_one():
    running = text(400, width=20)
    assert all(torch.equal(a, b) for a, b in zip(running.plan(3), running.plan(3), strict=True))
    generator = torch.Generator().manual_seed(0)
    firsts = {running.select(running.plan(3, generator)[0]).targets.shape[1] for _ in range(20)}
    assert len(firsts) > 5
    assert firsts <= set(range(1, 21))
    again = [running.plan(3, torch.Generator().manual_seed(4))[0] for _ in range(2)]
    assert torch.equal(*again)


def test_a_plan_is_a_sequence():
    plan = text(103).plan(4)
    assert len(plan) == len(list(plan)) == 6
    assert torch.equal(plan[-1], plan[5])
    assert torch.equal(torch.stack(plan[1:3]), torch.stack([plan[1], plan[2]]))
    with pytest.raises(IndexError):
        plan[6]


def test_a_window_is_shared_out_by_columns():
    running = text(103)
    window = running.select(running.plan(4)[1])
    parts = [window.share(rank, 2) for rank in range(2)]
    assert torch.equal(parts[0].tokens, window.tokens[::2])
    assert torch.equal(parts[1].targets, window.targets[1::2])


def test_a_text_of_nothing_and_no_columns_are_refused():
    with pytest.raises(DataError, match="no tokens; expected at least one"):
        text(0)
    with pytest.raises(UsageError, match="batch size is 0; expected 1 or more"):
        text(5).plan(0)
