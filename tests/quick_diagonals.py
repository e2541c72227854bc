"""Marker `quick_diagonal(n)`: of a grid of parameters the quick tests take every n-th diagonal, the slow ones the rest.

The diagonals of a grid hold every member of each of its parameters; a step that leaves one out is an error.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

import pytest


def on_diagonals(grid: Sequence[Sequence[Hashable]], step: int) -> list[bool]:
    """Say of each case, one member for each parameter, whether its places sum to a multiple of `step`."""
    parameters = [list(dict.fromkeys(members)) for members in zip(*grid, strict=True)]
    chosen = [
        sum(members.index(member) for members, member in zip(parameters, case, strict=True)) % step == 0
        for case in grid
    ]
    for number, members in enumerate(parameters):
        left_out = set(members) - {case[number] for case, quick in zip(grid, chosen, strict=True) if quick}
        if left_out:
            raise pytest.UsageError(f"quick_diagonal({step}) leaves out {len(left_out)} members of a parameter")
    return chosen


def members_of(item: pytest.Function) -> tuple[tuple[int, ...], ...]:
    """List, for each `parametrize` of a test, which of its values this one has."""
    values = item.callspec.params
    names = [mark.args[0] for mark in item.iter_markers("parametrize")]
    names = [each.split(",") if isinstance(each, str) else each for each in names]
    return tuple(tuple(id(values[name.strip()]) for name in together) for together in names)


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    grids = defaultdict(list)
    for item in items:
        if item.get_closest_marker("quick_diagonal") and not item.get_closest_marker("slow"):
            grids[item.nodeid.partition("[")[0]].append(item)
    for cases in grids.values():
        (step,) = cases[0].get_closest_marker("quick_diagonal").args
        for case, quick in zip(cases, on_diagonals([members_of(each) for each in cases], step), strict=True):
            if not quick:
                case.add_marker(pytest.mark.slow)
