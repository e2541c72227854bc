"""CS 577, lecture 5: what its two experiments measure, with controls that must fail."""

from __future__ import annotations

from statistics import fmean

import pytest

from unrolled.lab.papers.cs577_lecture_5.agreement import Agreement
from unrolled.lab.papers.cs577_lecture_5.memorising import MemorisingRecall
from unrolled.lab.papers.framework.experiment import Bench, Trial


def run(experiment, tmp_path, **settings):
    return experiment.run(Trial("a test", settings), Bench(tmp_path, None, tmp_path / "shelf"))


@pytest.mark.parametrize(("length", "words"), [(1, 1), (2, 2), (7, 3), (16, 100)])
def test_the_memorising_network_recalls_every_number_to_the_last_bit(length, words, tmp_path):
    found = run(MemorisingRecall(), tmp_path, length=length, words=words, factor=1.0, texts=20, seed=1)
    assert found["exact"] == found["recalled"] == found["whole"] == 1
    assert found["by_age"] == [1] * length


def test_one_weight_disturbed_and_what_passes_it_is_lost(tmp_path):
    settings = {"length": 8, "words": 9, "texts": 20, "seed": 1}
    little, turned = (run(MemorisingRecall(), tmp_path, factor=factor, **settings) for factor in (0.999, -1.0))
    assert little["exact"] == turned["exact"] == 0.5  # the words that have not reached the weight yet
    assert little["recalled"] == 1  # though not a number for number
    assert turned["by_age"] == [1] * 4 + [0] * 4
    assert turned["whole"] == 0


SETTINGS = {
    "sentences": 1500, "epochs": 5, "longest": 4, "tested": 100, "hidden": 32, "batch": 32, "rate": 0.01,
    "clip": 1.0, "seed": 0,
}  # fmt: skip


def test_counts_know_the_number_beside_the_subject_and_guess_beyond_their_window(tmp_path):
    found = run(Agreement(), tmp_path, model="3-gram counts", **{**SETTINGS, "sentences": 5000})
    assert found["right"][0] > 0.95
    assert 0.3 < fmean(found["right"][3:]) < 0.7
    assert fmean(share for share in found["misled"][3:] if share is not None) < 0.4  # they follow the nearest noun
    assert all(asked <= 100 for asked in found["asked"])


def test_a_gated_network_learns_agreement_where_counts_are_misled(tmp_path):
    trained = run(Agreement(), tmp_path, model="GRU", **SETTINGS)
    assert fmean(trained["right"][:5]) > 0.9
    untrained = run(Agreement(), tmp_path, model="GRU", **{**SETTINGS, "epochs": 0})
    assert 0.3 < fmean(untrained["right"][:5]) < 0.7
