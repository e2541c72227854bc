"""Implicit n-grams: what the figures measure, on scores whose answer is known."""

from __future__ import annotations

import math

import pytest
import torch

from unrolled.lab.papers.framework.experiment import Result, TrialSetup
from unrolled.lab.papers.implicit_ngrams.intensification import Intensification, strengthened
from unrolled.lab.papers.implicit_ngrams.negation import LEARNS, Negation, flipped
from unrolled.lab.papers.implicit_ngrams.triangle import SENTENCES, TriangleOfScores
from unrolled.lab.papers.implicit_ngrams.tsne import neighbours_agree
from unrolled.lab.papers.ours.negation_rates import rates


def result(experiment, number, values):
    return Result(experiment.trials("smoke")[number], values, 1.0, "2026-01-01", "a test", "a machine", {})


def test_flips_are_counted_where_the_sign_changes():
    assert flipped([1.0, -2.0, 3.0, 0.5], [-1.0, 2.0, 1.0, 0.0]) == 0.5
    assert flipped([1.0, -2.0], [2.0, -1.0]) == 0


def test_every_model_of_the_figures_has_a_claim_and_the_elman_network_has_none():
    models = {trial.settings["name"] for trial in Negation().trials("cpu")}
    assert models - LEARNS.keys() == {"Elman"}
    assert len(LEARNS) == 12
    assert sum(map(bool, LEARNS.values())) == 6


def negation_result(number, not_positive, not_negative):
    scores = {
        "positive": [1.0, 2.0, 3.0],
        "not positive": not_positive,
        "negative": [-1.0, -2.0, -3.0],
        "not negative": not_negative,
    }
    return result(Negation(), number, {"test_accuracy": 0.8, "scores": scores, "printed": [2, 1]})


def test_shares_of_negation_turn_with_the_scores():
    kept, turned = [2.0, 1.0, -1.0], [-2.0, -1.0, 1.0]
    gru, mvma_g, va_w = 0, 1, 2
    report = Negation().report(
        [
            negation_result(gru, turned, [1.0, 2.0, -1.0]),
            negation_result(mvma_g, kept, [-1.0, -2.0, 1.0]),
            negation_result(va_w, turned, [1.0, 2.0, 1.0]),
        ],
        "smoke",
    )
    (row, *_) = report.tables[1].cells()
    assert row[2:6] == ["100", "67", "100", "67"]
    assert report.tables[0].cells() == [["positive", "3 (73)", "2 of 37"], ["negative", "3 (47)", "1 of 31"]]


def test_of_models_that_do_not_learn_negation_only_the_negative_adjectives_are_compared():
    turned, gru, va_w = [-2.0, -1.0, -1.0], 0, 2
    results = [negation_result(number, turned, [1.0, 2.0, 1.0]) for number in (gru, va_w)]
    assert [each.trial.settings["name"] for each in results] == ["GRU", "VA-W"]
    assert Negation().claims(results) == {
        'GRU: most positive adjectives are negative after "not"': True,
        'GRU: most negative adjectives are positive after "not"': True,
        'VA-W: most negative adjectives are not positive after "not"': False,
    }


def test_rates_are_those_counted_by_hand_and_lie_within_their_intervals():
    sign = torch.tensor([1.0, 1.0, -1.0, -1.0])
    scores = {
        "": torch.tensor([1.0, 2.0, -1.0, 1.0]),
        "not": torch.tensor([-1.0, 1.0, 3.0, -1.0]),
        "very": torch.tensor([1.5, 1.5, -1.5, -3.0]),
    }
    found = rates(scores, sign, 500)
    assert found["right"][0] == 0.75
    assert (found["flips"][0], found["flips_positive"][0], found["flips_negative"][0]) == (0.75, 0.5, 1.0)
    assert found["shift"][0] == (2 + 1 + 4 - 2) / 4
    assert found["very"][0] == 0.5  # the last is larger, but of the other sign
    for value, low, high in found.values():
        assert low <= value <= high
    assert found["flips_negative"] == [1.0, 1.0, 1.0]
    assert found["flips"][2] - found["flips"][1] >= 0.5  # of four adjectives nothing is known exactly


def test_a_word_that_raises_every_score_strengthens_the_positive_adjectives_and_no_others():
    sign = torch.tensor([1.0, 1.0, -1.0])
    scores = {"": 3 * sign, "not": -sign, "so": 3 * sign + 1, "very": 4 * sign}
    found = {name: value for name, (value, *_) in rates(scores, sign, 10).items()}
    assert (found["so"], found["so_positive"], found["so_negative"]) == (0.6667, 1.0, 0.0)
    assert (found["very"], found["very_positive"], found["very_negative"]) == (1.0, 1.0, 1.0)  # the control


def test_the_interval_of_a_rate_is_that_of_a_binomial_share():
    sign = torch.tensor([1.0, -1.0]).repeat(200)
    turned = sign * torch.where(torch.arange(400) < 120, -1.0, 1.0)
    value, low, high = rates({"": sign, "not": turned}, sign, 2000)["flips"]
    assert value == pytest.approx(0.3)
    spread = 1.96 * math.sqrt(0.3 * 0.7 / 400)
    assert (low, high) == pytest.approx((0.3 - spread, 0.3 + spread), abs=0.01)


def test_strengthened_means_further_in_the_adjectives_own_direction():
    scores = {
        "positive": [1.0, 2.0],
        "very positive": [2.0, 1.0],
        "not positive": [-1.0, 0.0],
        "negative": [-1.0, -2.0],
        "very negative": [-3.0, -4.0],
    }
    assert strengthened(scores, "positive", "very") == 0.5
    assert strengthened(scores, "positive", "not") == 0
    assert strengthened(scores, "negative", "very") == 1


def intensification_result(very):
    scores = {
        "positive": [1.0], "not positive": [0.5], "very positive": [very],
        "negative": [-1.0], "not negative": [-0.5], "very negative": [-very],
    }  # fmt: skip
    return result(Intensification(), 0, {"mse": 1.0, "pearson": 0.5, "scores": {"context": scores, "ngram": scores}})


def test_shares_of_intensification_turn_with_the_scores():
    stronger, weaker = (Intensification().report([intensification_result(very)], "smoke") for very in (2.0, 0.5))
    assert [row[2:] for row in stronger.tables[1].cells()] == [["100", "100", "100", "100"]] * 2
    assert [row[2:] for row in weaker.tables[1].cells()] == [["0", "100", "0", "100"]] * 2


def test_neighbours_of_clusters_agree_and_those_of_shuffled_labels_do_not():
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(60, 3, generator=generator)
    labels = torch.arange(60) % 3
    apart = points + 20 * torch.nn.functional.one_hot(labels, 3)
    assert neighbours_agree(apart, labels, 5) == 1
    assert neighbours_agree(points, labels, 5) < 0.6


def test_neighbours_are_counted_without_the_point_itself():
    points = torch.tensor([[0.0], [1.0], [2.5], [10.0]])
    assert neighbours_agree(points, torch.tensor([0, 0, 1, 1]), 1) == 0.75  # 2.5 is nearest to 1.0
    assert neighbours_agree(points, torch.tensor([0, 1, 0, 1]), 1) == 0


def test_the_triangle_of_both_models_adds_up_to_what_they_say(tmp_path):
    experiment = TriangleOfScores()
    for trial in experiment.trials("smoke"):
        found = experiment.run(trial, TrialSetup(tmp_path, None, tmp_path / "networks"))
        for sentence, told in zip(SENTENCES, found["sentences"], strict=True):
            assert len(told["scores"]) == len(sentence.split())
            assert told["error"] < 1e-5
            assert told["says"] != pytest.approx(told["bias"], abs=1e-5)
