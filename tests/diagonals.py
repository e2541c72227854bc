"""Markers `quick_diagonal(n)` and `slow_diagonal(n)`: of a grid of parameters, which cases run when.

`quick_diagonal(n)`: every n-th diagonal is quick, the rest are long hunts. `slow_diagonal(n)`: of what is not quick CI
runs every n-th diagonal. The diagonals of a grid hold every member of each of its parameters; a step that leaves one
out is an error. A member that is slow by itself stays so, and is on no quick diagonal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

OneCase = type(pytest.param())
Members = Callable[[pytest.Mark, Sequence[str]], list[OneCase]]


def on_a_diagonal(places: Sequence[int], sizes: Sequence[int], step: int) -> bool:
    """Say whether the places of a case, one in each parameter, sum to a multiple of `step`."""
    for size in sizes:
        if sum(sizes) - len(sizes) - (size - 1) < step - 1:  # the largest sum of the places in the other parameters
            raise pytest.UsageError(f"diagonals {step} apart leave out members of a parameter; sizes: {[*sizes]}")
    return sum(places) % step == 0


def all_members(mark: pytest.Mark, names: Sequence[str]) -> list[OneCase]:
    """List what a `parametrize` gives."""
    return [
        each if isinstance(each, OneCase) else pytest.param(*(each if names[1:] else [each])) for each in mark.args[1]
    ]


def quick_members(mark: pytest.Mark, names: Sequence[str]) -> list[OneCase]:
    """List what a `parametrize` gives, without what is slow by itself."""
    return [each for each in all_members(mark, names) if not any(own.name == "slow" for own in each.marks)]


def place(item: pytest.Function, mark: pytest.Mark, members: Members) -> tuple[int, int]:
    """Find the place of a test among the members of a parameter, and their number."""
    names = mark.args[0].replace(",", " ").split() if isinstance(mark.args[0], str) else mark.args[0]
    given, values = [each.values for each in members(mark, names)], [item.callspec.params[name] for name in names]
    same = [all(one is other for one, other in zip(each, values, strict=True)) for each in given]
    return same.index(True), len(given)


def is_on_a_diagonal(item: pytest.Function, mark: pytest.Mark, members: Members) -> bool:
    """Say whether a test is on a diagonal of its grid of parameters."""
    found = [place(item, each, members) for each in item.iter_markers("parametrize")]
    return on_a_diagonal(*zip(*found, strict=True), *mark.args)


def is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        quick, slow = (item.get_closest_marker(f"{kind}_diagonal") for kind in ("quick", "slow"))
        if quick and not is_slow(item) and not is_on_a_diagonal(item, quick, quick_members):
            item.add_marker(pytest.mark.slow)
            if not slow:
                item.add_marker(pytest.mark.fuzz)
        if slow and is_slow(item) and not is_on_a_diagonal(item, slow, all_members):
            item.add_marker(pytest.mark.fuzz)
