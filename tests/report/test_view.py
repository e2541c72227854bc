from __future__ import annotations

import pytest
import torch

from banded import banded
from unrolled.decomposition.attribution.triangle import Triangle
from unrolled.errors import UsageError
from unrolled.report.page_data import PageExample, examples_data, longest_shown
from unrolled.report.page_view import panel_labels, waterfall_of_ledger
from unrolled.report.spans import by_span, largest_phrases, rows_by_order, values_of


@pytest.mark.parametrize("bidirectional", [False, True])
def test_rows_hold_every_ngram_once_at_its_place(build, bidirectional):
    attribution = build(bidirectional=bidirectional)
    for d, direction in enumerate(attribution.directions):
        laid = rows_by_order(attribution.triangle.score_band[d], direction, len(attribution))
        assert [len(row) for row in laid] == [4, 3, 2, 1]
        for order, row in enumerate(laid, start=1):
            for start, value in enumerate(row):
                assert value == attribution.score(start, start + order, direction)


def test_each_bar_starts_where_the_one_before_it_ended(build):
    attribution = build()
    bars = waterfall_of_ledger(attribution.ledger)
    assert [bar.name for bar in bars] == ["n-grams", "initial state", "bias", "remainder", "logit"]
    reached = bars[0].zero
    for bar in bars[:-1]:
        moved = bar.width if bar.value > 0 else -bar.width
        assert min(reached, reached + moved) == pytest.approx(bar.left, abs=0.05)
        reached += moved
    total = bars[-1]
    assert reached == pytest.approx(total.left + (total.width if total.value > 0 else 0.0), abs=0.05)
    assert all(bar.left >= 0 and bar.left + bar.width <= 1000.01 for bar in bars)


def test_a_ledger_of_zeros_has_no_bars(build):
    ledger = type(build().ledger)(0.0, 0.0, 0.0, 0.0, 0.0)
    assert {bar.width for bar in waterfall_of_ledger(ledger)} == {0.0}


def test_no_two_labels_are_alike(build):
    assert panel_labels([build(), build(expansion="zero")]) == ["path", "zero"]
    assert panel_labels([build(), build(target="class 2")]) == ["path, class 1", "path, class 2"]
    assert panel_labels([build(), build(), build(expansion="zero")]) == ["path (1)", "path (2)", "zero"]


@pytest.mark.parametrize(("time", "longest"), [(1, 1), (109, 109), (110, 54), (2000, 3), (7000, 1)])
def test_a_long_sentence_keeps_its_shorter_ngrams(time, longest):
    class OfLength:
        longest = time
        directions = ("forward",)
        by_class = ()

        def __len__(self) -> int:
            return time

    assert longest_shown(OfLength(), budget=12_000) == longest
    assert 2 * time * longest <= max(24_000, 2 * time)


def test_the_payload_shows_tokens_and_cuts_endless_ones(build):
    (data,) = examples_data([PageExample((build(["\x1b", "x" * 5000]),))])
    assert data["tokens"] == ["␛", "x" * 79 + "…"]


def test_an_empty_sentence_is_refused(build):
    with pytest.raises(UsageError, match="no tokens"):
        examples_data([PageExample((build([]),))])


@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_values_of_phrases_are_their_scores(build, bidirectional):
    attribution = build(bidirectional=bidirectional, mean=True)
    count = len(attribution)
    both, summed = values_of(attribution, "phrase"), by_span(attribution, "phrase")
    for start in range(count):
        for stop in range(start + 1, count + 1):
            assert float(summed[start, stop - start - 1]) == pytest.approx(attribution.phrase_score(start, stop))
            for d, direction in enumerate(attribution.directions):
                rows = rows_by_order(both[d], direction, count)
                value = attribution.phrase_score(start, stop, direction)
                assert rows[stop - start - 1][start] == pytest.approx(value)


def test_nested_near_copies_of_a_phrase_are_one_row(build):
    tokens = [f"w{k}" for k in range(8)]
    contributions = torch.zeros(1, 8, 8, dtype=torch.float64)
    for start, value in ((3, 1.0), (2, 0.75), (1, 0.5), (0, -0.5), (6, 0.25), (7, 0.125)):
        contributions[0, 7, start] = value
    attribution = build(tokens, triangle=Triangle(banded(contributions), banded(contributions)))
    rows = [(row.start, row.stop, row.copies, row.contribution) for row in largest_phrases(attribution, 9)]
    # [2, 8) and [1, 8) hold [3, 8); [0, 8) has the other sign; [7, 8) is half of [6, 8)
    assert rows == [(3, 8, 2, 2.25), (0, 8, 0, -0.5), (6, 8, 0, 0.25), (7, 8, 0, 0.125)]
    assert sum(row[3] for row in rows) == pytest.approx(float(contributions.sum()))
    assert [row.start for row in largest_phrases(attribution, 1)] == [3]


def test_rows_add_up_both_directions(build):
    attribution = build(bidirectional=True, mean=True)
    for row in largest_phrases(attribution, 20):
        if not row.copies:
            assert row.contribution == pytest.approx(attribution.contribution(row.start, row.stop))
        assert row.score == pytest.approx(attribution.phrase_score(row.start, row.stop))
    assert largest_phrases(build(scale=0.0), 5) == []
