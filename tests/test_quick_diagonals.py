"""Which cases of a grid are quick: every member of each parameter, the same ones at each run."""

from __future__ import annotations

import itertools

import pytest

from quick_diagonals import members, on_a_diagonal

SIZES = (3, 2, 4)
GRID = list(itertools.product(*map(range, SIZES)))


@pytest.mark.parametrize("step", [2, 3, 4])
def test_every_member_of_each_parameter_stays_quick(step):
    quick = [places for places in GRID if on_a_diagonal(places, SIZES, step)]
    assert [set(places) for places in zip(*quick, strict=True)] == [set(range(size)) for size in SIZES]
    assert len(quick) <= len(GRID) // step


def test_a_step_that_leaves_out_a_member_is_an_error():
    """Two parameters: a member of the longer one meets as many diagonals as the shorter one has members."""
    quick = [on_a_diagonal(places, (3, 2), 2) for places in itertools.product(range(3), range(2))]
    assert quick == [True, False, False, True, True, False]
    with pytest.raises(pytest.UsageError, match="leaves out members"):
        on_a_diagonal((0, 0), (3, 2), 3)


def test_members_that_are_slow_by_themselves_are_not_counted():
    given = [("a", 1), pytest.param("b", 2, marks=pytest.mark.slow), pytest.param("c", 3, id="third")]
    assert members(pytest.mark.parametrize(("name", "number"), given).mark, ["name", "number"]) == [("a", 1), ("c", 3)]
