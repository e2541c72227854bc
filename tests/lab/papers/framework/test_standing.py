"""Orders and gaps of models, ours beside theirs."""

from __future__ import annotations

import pytest

from unrolled.lab.papers.framework.rank_agreement import cell, gaps, order_agreement, order_sentence
from unrolled.lab.papers.framework.table import Number


def column(ours, theirs):
    return {
        name: Number([one] if one is not None else [], other)
        for name, one, other in zip("abcdef", ours, theirs, strict=False)
    }


@pytest.mark.parametrize(
    ("ours", "theirs", "rho"),
    [
        ([1, 2, 3, 4], [10, 20, 30, 45], 1.0),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1.0),
        ([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], 0.8),  # 1 - 6 Σ d² / (n (n² - 1)), d = (1, 1, 1, 1, 0)
        ([1, 1, 2], [1, 1, 5], 1.0),  # ties share their rank
        ([1, 1, 1], [1, 2, 3], None),
        ([1, 2], [1, 2], None),
        ([1, 2, None, 3, 4], [1, 2, 9, None, 3], 1.0),  # what lacks one of the two is left out
    ],
)
def test_ranks_are_correlated(ours, theirs, rho):
    found = order_agreement(column(ours, theirs))
    assert found == (None if rho is None else pytest.approx(rho))


def test_the_sentence_of_orders_names_the_columns_that_have_one():
    good, bad = column([1, 2, 3], [1, 2, 3]), column([1, 2], [1, 2])
    assert order_sentence({"here": good, "there": bad}) == (
        "The order of the models against the published order, Spearman's ρ: here +1.00."
    )
    assert order_sentence({"there": bad}) is None


def test_gaps_turn_with_the_figures():
    here = {"x": Number([0.8, 0.9], 0.7, percent=True), "y": Number([0.8], 0.6, percent=True)}
    there = {"x": Number([0.5], 0.7, percent=True), "y": Number([0.8], 0.6, percent=True)}
    missing = {"x": Number([0.5], None, percent=True), "y": Number([0.4], 0.6, percent=True)}
    assert gaps("x", "y", {"here": here, "there": there, "elsewhere": missing}) == (
        "x less y, published in brackets: here +5.0 (+10.0), there -30.0 (+10.0), elsewhere +10.0 (–); "
        "the published sign in 1 of 2."
    )
    assert gaps("x", "y", {"missing": missing}) == "x less y, published in brackets: missing +10.0 (–)."
    assert gaps("x", "z", {"here": here}) is None
    alike = {"x": Number([0.5], 0.5), "y": Number([0.5], 0.5), "z": Number([0.5], 0.4)}
    assert gaps("x", "y", {"here": alike}) == "x less y, published in brackets: here +0.0 (+0.0)."
    assert (gaps("x", "z", {"here": alike}) or "").endswith("the published sign in 0 of 1.")


def test_a_cell_says_what_failed():
    assert str(cell(Number([0.8], 0.9, digits=1, percent=True), ran=True)) == "80.0 (90.0)"
    assert cell(Number((), 0.9, digits=1, percent=True), ran=True) == "diverged (90.0)"
    assert cell(Number(), ran=True) == "diverged (–)"
    assert str(cell(Number((), 0.9, digits=1), ran=False)) == "– (0.9)"
    assert cell(Number([0.8], digits=1), ran=True) == "0.8 (–)"
