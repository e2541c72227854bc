"""Marker `quick_diagonal(n)`: of a grid of parameters the quick tests take every n-th diagonal, the slow ones the rest.

The diagonals of a grid hold every member of each of its parameters; a step that leaves one out is an error.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

OneCase = type(pytest.param())


def on_a_diagonal(places: Sequence[int], sizes: Sequence[int], step: int) -> bool:
    """Say whether the places of a case, one in each parameter, sum to a multiple of `step`."""
    for size in sizes:
        if sum(sizes) - len(sizes) - (size - 1) < step - 1:  # the largest sum of the places in the other parameters
            raise pytest.UsageError(f"quick_diagonal({step}) leaves out members of a parameter; sizes: {[*sizes]}")
    return sum(places) % step == 0


def members(mark: pytest.Mark, names: Sequence[str]) -> list[tuple[object, ...]]:
    """List what a `parametrize` gives, without what is slow by itself."""
    given = [
        each if isinstance(each, OneCase) else pytest.param(*(each if names[1:] else [each])) for each in mark.args[1]
    ]
    return [each.values for each in given if not any(own.name == "slow" for own in each.marks)]


def place(item: pytest.Function, mark: pytest.Mark) -> tuple[int, int]:
    """Find the place of a test among the members of a parameter, and their number."""
    names = mark.args[0].replace(",", " ").split() if isinstance(mark.args[0], str) else mark.args[0]
    given, values = members(mark, names), [item.callspec.params[name] for name in names]
    same = [all(one is other for one, other in zip(each, values, strict=True)) for each in given]
    return same.index(True), len(given)


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        mark = item.get_closest_marker("quick_diagonal")
        if mark is not None and not item.get_closest_marker("slow"):
            found = [place(item, each) for each in item.iter_markers("parametrize")]
            if not on_a_diagonal(*zip(*found, strict=True), *mark.args):
                item.add_marker(pytest.mark.slow)
