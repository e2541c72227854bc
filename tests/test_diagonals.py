"""Which cases of a grid are quick: every member of each parameter, the same ones at each run."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from diagonals import on_a_diagonal, quick_members

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
    with pytest.raises(pytest.UsageError, match="leave out members"):
        on_a_diagonal((0, 0), (3, 2), 3)


def test_members_that_are_slow_by_themselves_are_not_counted():
    given = [("a", 1), pytest.param("b", 2, marks=pytest.mark.slow), pytest.param("c", 3, id="third")]
    found = quick_members(pytest.mark.parametrize(("name", "number"), given).mark, ["name", "number"])
    assert [each.values for each in found] == [("a", 1), ("c", 3)]


GRID_IN_A_FILE = """
import pytest

{slow}@pytest.mark.quick_diagonal(2)
@pytest.mark.parametrize("size", [0, 1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_of_a_grid(place, size): ...
"""
PRINTED = """
def pytest_collection_finish(session):
    for item in session.items:
        kinds = [each for each in ("slow", "fuzz") if item.get_closest_marker(each)]
        print("case", *item.callspec.params.values(), *kinds)
"""


@pytest.mark.parametrize("step", [None, 3])
def test_of_a_grid_each_case_is_quick_slow_or_a_long_hunt(tmp_path, step):
    """Without `slow_diagonal` CI runs of the rest only what is slow by itself."""
    slow = f"@pytest.mark.slow_diagonal({step})\n" if step else ""
    (tmp_path / "test_grid.py").write_text(GRID_IN_A_FILE.format(slow=slow))
    (tmp_path / "conftest.py").write_text(PRINTED)
    markers = "markers=slow\nfuzz\nslow_diagonal(n)\nquick_diagonal(n)"
    command = [sys.executable, "-m", "pytest", "--collect-only", "-s", "-p", "diagonals", "-o", markers, "test_grid.py"]
    paths = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=tmp_path, env=paths, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {line.removeprefix("case ") for line in done.stdout.splitlines() if line.startswith("case ")}
    wanted = set()
    for place, size in itertools.product(range(4), range(4)):
        slow = size == 3 or (place + size) % 2
        hunt = slow and ((place + size) % step if step else size != 3)
        wanted.add(f"{place} {size}{' slow' if slow else ''}{' fuzz' if hunt else ''}")
    assert found == wanted
