"""Networks that learn labelled phrases, shared by several items."""

from __future__ import annotations

import torch
from torch import nn

from unrolled.lab.papers.analyses.sentiment_networks import learn_phrases, phrase_trials
from unrolled.lab.papers.framework.experiment import TrialSetup


def test_each_encoder_is_listed_once_a_seed_and_the_paper_learns_every_phrase():
    trials = phrase_trials("cpu", ["gru", "approx_lstm"], 2)
    assert [trial.label for trial in trials[:3]] == ["gru, seed 0", "approx lstm, seed 0", "gru, seed 1"]
    assert phrase_trials("paper", ["gru"], 1)[0].settings["phrases"] == 98_794


def test_the_same_trial_gives_the_network_from_the_shelf_and_another_architecture_gives_its_own(tmp_path):
    def weights(trial, **model):
        setup = TrialSetup(tmp_path / "room", None, tmp_path / "networks")
        return nn.utils.parameters_to_vector(learn_phrases(trial, setup, **model).model.parameters())

    (trial,) = phrase_trials("smoke", ["gru"], 1)
    first = weights(trial)
    assert torch.equal(weights(trial), first)
    assert len(weights(trial, bidirectional=True)) > len(first)
    assert len(list((tmp_path / "networks").iterdir())) == 2
