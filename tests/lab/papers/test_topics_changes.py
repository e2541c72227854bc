"""Topics with one setting changed: nothing else differs from the other item, and the published numbers are its own."""

from __future__ import annotations

import pytest
import torch

from unrolled.lab.papers.analyses.open_gates import OpenClassify
from unrolled.lab.papers.framework.experiment import Result, TrialSetup
from unrolled.lab.papers.framework.synthetic_corpora import topics
from unrolled.lab.papers.implicit_ngrams.table3 import SentimentAndTopics
from unrolled.lab.papers.implicit_ngrams.topics_changes import TopicsChanges
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.training.run_folder import load_run

CHANGED = {
    "word vectors from N(0, 1)": {"vectors": "N(0, 1)"},
    "rate 0.002": {"lr": 0.002},
    "no biases": {"bias": False},
    "no dropout": {"dropout": 0.0, "word_dropout": 0.0},
    "20 epochs, no early stopping": {"epochs": 20, "patience": 20},
    "forget gates that begin open": {"forget_bias": 2.0},
}


@pytest.mark.parametrize("scale", ["smoke", "cpu", "day", "paper"])
def test_a_trial_is_one_of_the_other_item_with_one_setting_changed(scale):
    others = [dict(trial.settings) for trial in SentimentAndTopics().trials(scale)]
    trials = TopicsChanges().trials(scale)
    assert len({trial.label for trial in trials}) == (2 if scale == "smoke" else 8)
    for trial in trials:
        chosen = dict(trial.settings)
        assert trial.label == f"{chosen.pop('network')}, {chosen['changed']}"
        change = CHANGED[chosen.pop("changed")]
        assert change.items() <= chosen.items()
        assert chosen not in others  # the control
        rest = {name: value for name, value in chosen.items() if name not in change}
        assert rest in [{name: value for name, value in each.items() if name not in change} for each in others]
        assert (chosen["column"], chosen["seed"]) == ("AG News", 0)


def test_wide_word_vectors_are_drawn_so_and_the_others_as_in_the_other_item(tmp_path):
    """A rate of almost zero leaves the vectors as they were drawn."""
    widths = {}
    for trial in TopicsChanges().trials("smoke"):
        still = type(trial)(trial.label, {**trial.settings, "hidden": 64, "lr": 1e-12})
        setup = TrialSetup(tmp_path / trial.label, None, tmp_path / "networks")
        TopicsChanges().run(still, setup)
        model = load_run(next(setup.folder.glob("*/weights.safetensors")).parent).model
        widths[trial.settings["changed"]] = float(model.embedding.weight[2:].detach().std())
    assert widths["word vectors from N(0, 1)"] == pytest.approx(1.0, rel=0.1)
    assert widths["rate 0.002"] == pytest.approx(0.1, rel=0.1)


def test_open_forget_gates_keep_the_contexts_of_long_texts_from_vanishing():
    """The trial trains with them; drawn without them, a context of 40 words is a billionth of that of one word."""
    lengths = {}
    for kind in (OpenClassify, Classify):
        torch.manual_seed(0)
        settings = kind.Architecture(encoder="mvm_l", hidden=300, embedding=300, pooling="last")
        encoder = kind.from_corpus(topics((32, 16, 16)), settings).build().encoder
        texts = 0.1 * torch.randn(8, 40, 300)
        with torch.no_grad():
            lengths[kind] = [float(encoder(texts[:, :words])[0][:, -1].norm(dim=-1).mean()) for words in (1, 40)]
    assert 0.3 < lengths[OpenClassify][1] / lengths[OpenClassify][0] < 3
    assert lengths[Classify][1] / lengths[Classify][0] < 1e-7  # the control


def test_accuracies_stand_beside_the_published_ones_of_ag_news():
    experiment = TopicsChanges()
    values = {"dev_accuracy": 0.25, "test_accuracy": 0.26, "best_epoch": 1, "epochs": 4}
    results = [Result(trial, values, 1.0, "", "", "", {}) for trial in experiment.trials("day")[-4:]]
    (table,) = experiment.report(results, "day").tables
    assert table.cells() == [
        ["MVM-L", "20 epochs, no early stopping", "25.0 (86.9)", "26.0 (86.5)", "1", "4"],
        ["MVM-L", "forget gates that begin open", "25.0 (86.9)", "26.0 (86.5)", "1", "4"],
        ["MVMA-G", "word vectors from N(0, 1)", "25.0 (91.6)", "26.0 (91.3)", "1", "4"],
        ["MVMA-G", "rate 0.002", "25.0 (91.6)", "26.0 (91.3)", "1", "4"],
    ]
