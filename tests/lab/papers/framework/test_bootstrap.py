"""Correlations and their intervals, against other people's and against lists of what was drawn."""

from __future__ import annotations

import pytest
import torch
from scipy import stats

from unrolled.errors import ShapeError
from unrolled.lab.metrics.pearson import pearson
from unrolled.lab.papers.framework.bootstrap import correlate, interval, mean_over_groups

N, SENTENCES = 60, 12


@pytest.fixture
def rows():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(-2, 3, (N,), generator=generator).double()  # many ties, as people's labels have
    scores = (labels + torch.randn(N, generator=generator)).round(decimals=0)
    return scores, labels, torch.arange(N) % SENTENCES


def test_the_coefficients_are_those_of_scipy(rows):
    scores, labels, sentences = rows
    assert correlate(*rows, draws=1).value == pytest.approx(stats.pearsonr(scores, labels).statistic, abs=1e-12)
    ranked = correlate(scores.exp(), labels, sentences, ranked=True, draws=1).value
    assert ranked == pytest.approx(stats.spearmanr(scores, labels).statistic, abs=1e-12)
    assert correlate(scores.exp(), labels, sentences, draws=1).value != pytest.approx(ranked, abs=1e-3)


@pytest.mark.parametrize("ranked", [False, True])
def test_a_resample_is_whole_sentences_written_out_as_often_as_they_were_drawn(rows, ranked):
    scores, labels, sentences = rows
    found = correlate(*rows, ranked=ranked, draws=3, seed=5)
    chosen = torch.randint(SENTENCES, (3, SENTENCES), generator=torch.Generator().manual_seed(5))
    for draw, value in zip(chosen.tolist(), found.draws, strict=True):
        which = torch.cat([(sentences == sentence).nonzero()[:, 0] for sentence in draw])
        one, other = scores[which], labels[which]
        expected = stats.spearmanr(one, other).statistic if ranked else pearson(one, other)
        assert value == pytest.approx(expected, abs=1e-12)
    assert len(set(found.draws)) == 3


def test_phrases_that_are_copies_of_each_other_do_not_make_it_surer(rows):
    scores, labels, sentences = rows
    widths = {}
    copied = [torch.cat([row] * 20) for row in (scores, labels)]
    for name, clusters in (("sentences", sentences.repeat(20)), ("phrases", torch.arange(20 * N))):
        low, high = correlate(*copied, clusters, draws=300).interval
        widths[name] = high - low
    low, high = correlate(*rows, draws=300).interval
    assert widths["sentences"] == pytest.approx(high - low, abs=1e-9)
    assert widths["phrases"] < 0.5 * widths["sentences"]


def test_the_same_seed_draws_the_same_sentences_so_that_two_scores_can_be_compared(rows):
    scores, labels, sentences = rows
    one, again = correlate(*rows, draws=60), correlate(2 * scores + 1, labels, sentences, draws=60)
    assert one.draws == pytest.approx(again.draws, abs=1e-12)
    assert one.draws != correlate(*rows, draws=60, seed=1).draws


def test_a_score_that_does_not_vary_says_nothing(rows):
    _, labels, sentences = rows
    flat = correlate(torch.full((N,), 0.1), labels, sentences, draws=5)
    assert (flat.value, *flat.draws) == (0.0,) * 6


def test_an_interval_is_the_middle_95_percent():
    assert interval(range(201)) == (5.0, 195.0)


def test_rows_of_different_lengths_are_refused(rows):
    with pytest.raises(ShapeError, match="three rows of one length"):
        correlate(rows[0][1:], *rows[1:])


def test_the_interval_of_small_groups_holds_the_mean_as_often_as_it_says():
    """Of four members each, drawn from distributions of mean 0; without the factor it is nearer to 90 %."""
    generator, hits, trials = torch.Generator().manual_seed(0), 0, 400
    for number in range(trials):
        groups = torch.randn(10, 4, generator=generator) * torch.arange(1, 11)[:, None]
        _, low, high = mean_over_groups(list(groups), draws=400, seed=number)
        hits += low < 0 < high
    assert 0.92 <= hits / trials <= 0.98


def test_each_group_counts_the_same_and_needs_two_members():
    mean, low, high = mean_over_groups([torch.tensor([1.0, 1.0]), torch.tensor([0.0, 0.0, 0.0, 0.0])])
    assert (mean, low, high) == (0.5, 0.5, 0.5)
    with pytest.raises(ShapeError, match="a group has 1 members; expected two or more"):
        mean_over_groups([torch.tensor([1.0])])
