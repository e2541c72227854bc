"""Strings of brackets: well nested, bounded, as long as asked, and drawn as the automaton says."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from unrolled.errors import UsageError
from unrolled.lab.data.datasets.dyck import DyckStrings


def depths(string, kinds):
    """How deep it is after each bracket; fails where one is closed that was not opened last."""
    opened, found = [], []
    for bracket in string:
        if bracket < kinds:
            opened.append(bracket)
        else:
            assert opened.pop() == bracket - kinds
        found.append(len(opened))
    return found


def stacks(strings, kinds):
    """Every stack that occurs."""
    seen = {()}
    for string in strings:
        opened: tuple[int, ...] = ()
        for bracket in string:
            opened = (*opened, bracket) if bracket < kinds else opened[:-1]
            seen.add(opened)
    return seen


def mean_length(strings):
    """With the end."""
    return sum(len(string) + 1 for string in strings) / len(strings)


@pytest.mark.parametrize(("kinds", "depth"), [(1, 1), (2, 4), (3, 2), (128, 5)])
def test_strings_are_balanced_bounded_and_as_long_as_asked(kinds, depth):
    corpus = DyckStrings(kinds, depth, symbols=(20_000, 3_000, 20_000)).read()
    longest = 8 * depth * max(0, depth - 2) + 60
    for split, (least, most), symbols in (
        (corpus.train, (1, longest), 20_000),
        (corpus.dev, (1, longest), 3_000),
        (corpus.test, (longest + 1, 2 * longest), 20_000),
    ):
        for string in split:
            assert least <= len(string)
            assert len(string) + 1 <= most
            assert depths(string, kinds)[-1] == 0
        total = sum(len(string) + 1 for string in split)
        assert symbols <= total < symbols + most
    assert max(max(depths(string, kinds)) for string in corpus.train) == depth
    assert {bracket for string in corpus.train for bracket in string} == set(range(2 * kinds))
    assert (corpus.kinds, corpus.depth) == (kinds, depth)


def test_the_automaton_tosses_fair_coins_and_all_kinds_are_alike():
    corpus = DyckStrings(3, 3, symbols=(100_000, 1, 1), short=(1, 10_000)).read()
    after: Counter[tuple[int, str]] = Counter()
    opened: Counter[int] = Counter()
    for string in corpus.train:
        depth = [0, *depths(string, 3)]
        for (before, now), bracket in zip(pairwise(depth), string, strict=True):
            after[before, "open" if now > before else "close"] += 1
            opened.update([bracket] if bracket < 3 else [])
        after[0, "end"] += 1
        after[0, "open"] -= 1  # the first opens: an end before anything is drawn again
    assert after[3, "open"] == after[0, "close"] == 0
    for level, this in ((0, "end"), (1, "close"), (2, "close")):
        assert after[level, this] / (after[level, this] + after[level, "open"]) == pytest.approx(0.5, abs=0.01)
    for kind in range(3):
        assert opened[kind] / opened.total() == pytest.approx(1 / 3, abs=0.01)


@pytest.mark.parametrize(("depth", "short", "long"), [(3, 12.9, 98), (5, 20.9, 209)])
def test_mean_lengths_are_those_of_the_source(depth, short, long):
    corpus = DyckStrings(2, depth, symbols=(1_000_000, 300_000, 300_000)).read()
    assert mean_length(corpus.train) == pytest.approx(short, abs=0.15)
    assert mean_length(corpus.dev) == pytest.approx(short, rel=0.04)
    assert mean_length(corpus.test) == pytest.approx(long, abs=1.5)


@pytest.mark.parametrize(("kinds", "number"), [(2, 15), (8, 585)])
def test_all_stacks_occur_and_no_other(kinds, number):
    assert len(stacks(DyckStrings(kinds, 3, symbols=(200_000, 1, 1)).read().train, kinds)) == number
    assert number == (kinds**4 - 1) // (kinds - 1)


@pytest.mark.slow
def test_a_set_of_two_million_symbols_is_whole():
    corpus = DyckStrings(symbols=(2_000_000, 20_000, 300_000)).read()
    assert 2_000_000 <= sum(len(string) + 1 for string in corpus.train) < 2_000_200


def test_the_seed_decides_the_strings_and_splits_are_drawn_apart():
    one = DyckStrings(symbols=(2_000, 2_000, 2_000)).read()
    assert one == DyckStrings(symbols=(2_000, 2_000, 2_000)).read()
    assert one != DyckStrings(symbols=(2_000, 2_000, 2_000), seed=1).read()
    assert one.train != one.dev
    # a larger set begins with the smaller one
    assert DyckStrings(symbols=(4_000, 2_000, 2_000)).read().train[: len(one.train)] == one.train


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kinds": 0}, "kinds is 0; expected 1 or more"),
        ({"depth": 0}, "depth is 0; expected 1 or more"),
        ({"symbols": (10, 0, 10)}, "symbols is 0; expected 1 or more"),
        ({"short": (1, 2)}, "lengths from 1 to 2 contain no string; expected a maximum of 3 or more, with the end"),
        ({"long": (7, 8)}, "lengths from 7 to 8 contain no string; expected a maximum of 9 or more, with the end"),
    ],
)
def test_a_language_without_strings_is_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        DyckStrings(**arguments)


def test_the_shortest_lengths_that_leave_a_string_do():
    assert set(DyckStrings(1, 1, short=(1, 3), symbols=(30, 3, 1)).read().train) == {(0, 1)}
    assert {len(string) for string in DyckStrings(2, 2, long=(7, 9), symbols=(3, 3, 90)).read().test} == {8}
