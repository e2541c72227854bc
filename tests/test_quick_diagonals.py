"""Which cases of a grid are quick: every member of each parameter, the same ones at each run."""

from __future__ import annotations

import itertools

import pytest

from quick_diagonals import on_diagonals

GRID = list(itertools.product("abc", ["last", "mean"], range(4)))


@pytest.mark.parametrize("step", [2, 3, 4])
def test_every_member_of_each_parameter_stays_quick(step):
    quick = [case for case, chosen in zip(GRID, on_diagonals(GRID, step), strict=True) if chosen]
    assert [set(members) for members in zip(*quick, strict=True)] == [set("abc"), {"last", "mean"}, set(range(4))]
    assert len(quick) <= len(GRID) // step


def test_a_step_that_leaves_out_a_member_is_an_error():
    """Two parameters: of the longer one, each member meets as many diagonals as the shorter one has members."""
    grid = list(itertools.product("abc", "xy"))
    assert on_diagonals(grid, 2) == [True, False, False, True, True, False]
    with pytest.raises(pytest.UsageError, match="leaves out 1 members"):
        on_diagonals(grid, 3)


def test_members_that_stand_for_slow_cases_alone_are_not_counted():
    assert on_diagonals([case for case in GRID if case[2] < 3], 3).count(True) == 6
