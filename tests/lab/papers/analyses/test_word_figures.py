"""Names of words in a scatter plot cover neither each other nor the points of the groups."""

from __future__ import annotations

from itertools import combinations
from random import Random

from matplotlib.figure import Figure

from unrolled.lab.papers.analyses.word_figures import name_words, scatter_words
from unrolled.lab.papers.analyses.word_operators import WordSlope

GROUPS = {"negators": frozenset({"not", "never", "no"}), "intensifiers": frozenset({"very", "so"})}


def drawn(words: list[WordSlope], extremes: int) -> tuple[list[str], int, int]:
    """The names, the pairs of names that overlap, and the names outside the panel."""
    figure = Figure(figsize=(4.6, 3.6), layout="constrained")
    panel = figure.subplots()
    panel.set(xscale="log")
    scatter_words(panel, words, GROUPS)
    figure.draw_without_rendering()
    name_words(panel, words, GROUPS, extremes)
    places = [text.get_window_extent() for text in panel.texts]
    outside = sum(place.x0 < panel.bbox.x0 or place.x1 > panel.bbox.x1 for place in places)
    return [text.get_text() for text in panel.texts], sum(a.overlaps(b) for a, b in combinations(places, 2)), outside


def test_names_that_have_room_are_all_written_and_no_two_overlap() -> None:
    random = Random(0)
    names = ["not", "never", "no", "very", "so", *(f"word{k}" for k in range(60))]
    words = [WordSlope(name, random.randint(25, 400), random.gauss(0.8, 0.2), 0.1) for name in names]
    words.sort(key=lambda word: word.slope)
    shown, overlapping, outside = drawn(words, 8)
    assert overlapping == outside == 0
    assert {words[0].word, words[-1].word} <= set(shown)
    assert len(shown) >= 12


def test_of_words_at_one_place_few_are_named() -> None:
    same = [WordSlope(f"word{k}", 100, 0.5, 0.1) for k in range(20)]
    shown, overlapping, _ = drawn(same, 20)
    assert overlapping == 0
    assert 1 <= len(shown) <= 4  # one at each corner of the point
    apart = [WordSlope(f"word{k}", 100, 0.1 * k, 0.1) for k in range(20)]
    assert len(drawn(apart, 20)[0]) == 20
