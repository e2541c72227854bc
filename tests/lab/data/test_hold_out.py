from __future__ import annotations

from collections import Counter

import pytest

from unrolled.lab.data.corpus import hold_out


def none(_):
    return ()


def test_every_example_is_left_or_set_aside_in_its_old_order():
    left, aside = hold_out(range(100), 10, none)
    assert len(aside) == 10
    assert sorted(left + aside) == list(range(100))
    assert (left, aside) == (sorted(left), sorted(aside))


def test_the_choice_is_the_same_everywhere_and_forever_and_the_seed_decides_it():
    assert hold_out(range(20), 4, none)[1] == [3, 7, 12, 15]
    assert hold_out(range(20), 4, none, seed=1)[1] != [3, 7, 12, 15]


def test_the_choice_is_fair():
    times = Counter(index for seed in range(2000) for index in hold_out(range(10), 3, none, seed=seed)[1])
    assert len(times) == 10
    assert all(abs(count - 600) < 5 * 20.5 for count in times.values())  # five standard deviations


@pytest.mark.parametrize("seed", range(5))
def test_the_last_example_with_a_label_is_never_set_aside(seed):
    examples = [("a",)] * 3 + [("b",), ("a", "c"), ("c",), ("a", "d", "d")]
    left, aside = hold_out(examples, 6, lambda example: example, seed=seed)
    assert {label for example in left for label in example} == {"a", "b", "c", "d"}
    assert len(aside) == 4  # of the a's one is free with d, so all three others go; and one of the c's
    assert len(hold_out(examples, 6, none, seed=seed)[1]) == 6


def test_none_can_be_asked_for():
    assert hold_out(["a"], 0, none) == (["a"], [])
