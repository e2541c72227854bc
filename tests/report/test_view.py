from __future__ import annotations

import pytest

from unrolled.errors import UsageError
from unrolled.report.page_view import CELLS, longest_shown, panel_data, panel_labels, rows_by_order, waterfall_of_ledger


@pytest.mark.parametrize("bidirectional", [False, True])
def test_rows_hold_every_ngram_once_at_its_place(build, bidirectional):
    attribution = build(bidirectional=bidirectional)
    for d, direction in enumerate(attribution.directions):
        laid = rows_by_order(attribution.triangle.scores[d], direction, len(attribution))
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

        def __len__(self) -> int:
            return time

    assert longest_shown(OfLength()) == longest
    assert time * longest <= max(2 * CELLS, time)


def test_the_payload_shows_tokens_and_cuts_endless_ones(build):
    data = panel_data(build(["\x1b", "x" * 5000]), "path")
    assert data["tokens"] == ["␛", "x" * 79 + "…"]


def test_an_empty_sentence_is_refused(build):
    with pytest.raises(UsageError, match="no tokens"):
        panel_data(build([]), "path")
