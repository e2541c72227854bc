"""Trials that change one setting of another item, and leave all others as that item has them."""

from __future__ import annotations

import pytest
import torch

from unrolled.lab.papers.analyses.published_code import all_classes, new_optimisers
from unrolled.lab.papers.analyses.published_code.block_weights import BlockWeights
from unrolled.lab.papers.analyses.published_code.wide_vectors import WideClassify
from unrolled.lab.papers.framework.experiment import Result, TrialSetup
from unrolled.lab.papers.framework.synthetic_corpora import negation, relations
from unrolled.lab.papers.framework.trial_training import train_task
from unrolled.lab.papers.framework.verdict import compare
from unrolled.lab.papers.implicit_ngrams.approximation import Approximation
from unrolled.lab.papers.implicit_ngrams.intensification import Intensification
from unrolled.lab.papers.implicit_ngrams.relations_of_code import RelationsOfCode
from unrolled.lab.papers.implicit_ngrams.single_changes import SingleChanges
from unrolled.lab.papers.implicit_ngrams.table3 import SentimentAndTopics
from unrolled.lab.papers.implicit_ngrams.table4 import RelationsAndNames
from unrolled.lab.papers.sequence_level_features.negation import NegationScores
from unrolled.lab.papers.sequence_level_features.negation_settings import NegationSettings
from unrolled.lab.tasks.classify import Classify

NOTEBOOK = {"vectors", "lr", "batch", "epochs", "clip", "word_dropout", "optimisers"}
SETTINGS = {
    "nothing": set(),
    "rate 0.002": {"lr"},
    "vectors from N(0, 1)": {"vectors"},
    "batches of 128": {"batch"},
    "no dropout of words": {"word_dropout"},
    "weight decay 1e-05": {"weight_decay"},
    "40 epochs, no early stopping": {"epochs", "patience"},
    "relations in both directions": {"directed"},
    "a new optimiser in each epoch": {"optimisers"},
    "the last context": {"pooling"},
    "the first and the last context": {"pooling"},
    "vectors from U(-0.1, 0.1)": {"vectors"},
    "vectors from U(-0.1, 0.1), a new optimiser in each epoch": {"vectors", "optimisers"},
    "rate 0.002, a new optimiser in each epoch": {"lr", "optimisers"},
    "rate 0.002, 30 epochs, a new optimiser in each": {"lr", "epochs", "optimisers"},
    "30 epochs, a new optimiser in each": {"epochs", "optimisers"},
    "dropout of 0.5": {"dropout"},
    "all settings of the notebook": NOTEBOOK,
    "all settings of the notebook, spectra not normalised": NOTEBOOK | {"spectral"},
    "nothing, three seeds": set(),
    "a new optimiser in each epoch, three seeds": {"optimisers"},
    "the network of the notebook": {"block"},
    "the network of the notebook, a new optimiser in each epoch": {"block", "optimisers"},
}
NAMED = {"part", "network", "changed", "data", "embedding"}
"""What a trial of this item says beside the settings of the other one."""
OTHERS = {
    "relations": (RelationsAndNames, {"column": "relations", "lr": 0.01}, "model"),
    "errors": (Approximation, {"weight_decay": 1e-5, "spectral": True}, "kind"),
    "sentiment": (SentimentAndTopics, {"column": "SST-2"}, "model"),
    "optimisers": (SentimentAndTopics, {"column": "SST-2"}, "model"),
    "longer": (SentimentAndTopics, {"column": "SST-2"}, "model"),
    "dropout": (SentimentAndTopics, {"column": "SST-2"}, "model"),
    "reading": (SentimentAndTopics, {"column": "SST-2"}, "model"),
    "all classes": (RelationsOfCode, {}, "model"),
    "narrow vectors": (RelationsOfCode, {}, "model"),
    "rates": (RelationsOfCode, {}, "model"),
    "seeds": (RelationsOfCode, {}, "model"),
    "places": (RelationsOfCode, {}, "model"),
}


def other_settings(part, network):
    """The settings of the trial that a part changes."""
    kind, chosen, named = OTHERS[part]
    wanted = {**chosen, named: network, "seed": 0}
    (found,) = (
        trial.settings for trial in kind().trials("day") if wanted.items() <= dict(trial.settings).items()
    )  # fmt: skip
    return found


@pytest.mark.parametrize("part", OTHERS)
def test_one_setting_of_another_item_differs(part):
    trials = [trial.settings for trial in SingleChanges().trials("day") if trial.settings["part"] == part]
    assert trials
    for settings in trials:
        other = other_settings(part, settings["network"])
        size = other["side"] ** 2 if settings["network"] == "MM" else other["hidden"]
        assert settings["embedding"] == settings["hidden"] == size
        own = NAMED | ({"seed"} if part == "seeds" else set())
        differing = {name for name in settings.keys() - own if settings[name] != other.get(name)}
        differing -= {"hidden"} if settings["network"] == "MM" else set()
        differing -= {"pooling"} if part == "longer" else set()  # the mean, which table3 does not name as a setting
        assert differing == SETTINGS[settings["changed"]]
        left_out = {"kind", "model", "column", "corpus", "side", "window"}  # names, and the sizes of MM and VA-W
        assert other.keys() - settings.keys() <= left_out


def test_the_word_vectors_of_the_ratings_are_trained_and_nothing_else_differs():
    (settings,) = (trial.settings for trial in SingleChanges().trials("day") if trial.settings["part"] == "ratings")
    other = next(trial.settings for trial in Intensification().trials("day") if trial.settings["name"] == "GRU")
    assert other["fixed"]
    assert {**settings, "fixed": True} == {**other, "part": "ratings"}


def test_published_numbers_stand_beside_ours_and_decide_nothing():
    experiment = SingleChanges()
    values = {"dev_f1": 0.2, "test_f1": 0.1, "best_epoch": 3.0, "epochs": 6.0, "dev_accuracy": 0.8}
    values |= {"test_accuracy": 0.7, "step_zero": 0.25, "sum_zero": 0.5, "state": 2.0}
    values |= {"dev_all_f1": 0.4, "test_all_f1": 0.3}
    results = [
        Result(trial, values, 1.0, "", "", "", {})
        for trial in experiment.trials("day")
        if trial.settings["part"] != "ratings"
    ]
    report = experiment.report(results, "day")
    relations, errors, sentiment, classes = ({tuple(row[:2]): row for row in table.cells()} for table in report.tables)
    assert relations["batches of 128", "20.0"][2:] == ["10.0", "3", "6"]
    assert errors["GRU", "vectors from N(0, 1)"][2:] == ["25.0 (21.7)", "50.0", "2.00", "80.0"]
    assert sentiment["MVM-E", "rate 0.002"][2:] == ["80.0 (59.6)", "70.0 (59.5)"]
    assert sentiment["GRU", "a new optimiser in each epoch"][2:] == ["80.0 (84.9)", "70.0 (84.9)"]
    assert sentiment["Transformer", "the first and the last context"][2:] == ["80.0 (83.4)", "70.0 (82.0)"]
    assert classes["VA-EW", "a new optimiser in each epoch"][2:] == ["40.0 (39.7)", "30.0 (38.3)", "3"]
    assert classes["VA-W", "the network of the notebook"][2:] == ["40.0 (41.2)", "30.0 (37.9)", "3"]
    assert not compare(experiment, results, report)


def test_a_word_has_the_matrix_of_its_place_in_a_block():
    torch.manual_seed(0)
    encoder = BlockWeights(3, 4, 2).double()
    words = torch.randn(1, 5, 3, dtype=torch.float64)
    contexts, final = encoder(words)
    terms = [encoder.weight[place % 2] @ word for place, word in enumerate(words[0])]
    for end in range(5):
        assert torch.allclose(contexts[0, end], sum(terms[: end + 1]))
    assert torch.equal(final[0, 0], contexts[0, -1])
    padded, finals = encoder(torch.cat((words, words)), torch.tensor([3, 5]))
    assert torch.allclose(finals[0, 0], contexts[0, 2], rtol=0, atol=1e-14)
    assert not padded[0, 3:].any()


def test_a_classifier_of_two_contexts_has_weights_for_both(tmp_path):
    last, ends = (each for each in SingleChanges().trials("smoke") if each.settings["part"] == "reading")
    found = [
        SingleChanges().run(trial, TrialSetup(tmp_path / trial.label, None, tmp_path))["parameters"]
        for trial in (last, ends)
    ]
    assert found[1] - found[0] == 2 * last.settings["hidden"]  # two classes


def test_the_network_of_the_notebook_learns_from_narrow_vectors(tmp_path):
    trials = [each for each in SingleChanges().trials("smoke") if each.settings["part"] == "places"]
    for number, trial in enumerate(trials):
        values = SingleChanges().run(trial, TrialSetup(tmp_path / str(number), None, tmp_path))
        assert 0 <= values["test_all_f1"] <= 1
    assert trials
    task = all_classes.ByPlaces.from_corpus(
        relations((32, 16, 16)),
        all_classes.ByPlaces.Architecture(encoder="va_w", bidirectional=False, options={"window": 20}),
    )
    model = task.build()
    assert len(model.encoder.weight) == 20
    assert model.embedding.weight.abs().max() <= 0.1


def test_narrow_vectors_differ_from_wide_ones_in_their_width_only(tmp_path):
    built = {}
    for kind in (all_classes.AllClasses, all_classes.NarrowVectors):
        task = kind.from_corpus(relations((32, 16, 16)), kind.Architecture(encoder="va_ew", bidirectional=False))
        torch.manual_seed(0)
        built[kind] = task.build()
    wide, narrow = built.values()
    assert wide.embedding.weight.std() > 0.9
    assert narrow.embedding.weight.abs().max() <= 0.1
    assert narrow.embedding.weight.std() > 0.05
    assert torch.equal(wide.encoder.weight_hh, narrow.encoder.weight_hh)
    trial = next(each for each in SingleChanges().trials("smoke") if each.settings["part"] == "narrow vectors")
    values = SingleChanges().run(trial, TrialSetup(tmp_path, None, tmp_path))
    assert 0 <= values["test_all_f1"] <= 1


@pytest.mark.slow
@pytest.mark.parametrize("part", ["all classes", "errors", "sentiment"])
def test_each_epoch_has_an_optimiser_of_its_own_and_starts_from_the_weights_of_the_one_before(
    tmp_path, monkeypatch, part
):
    begun = []

    def observed(setup, task, corpus, training, *, name):
        torch.manual_seed(0)
        weight = task.build().embedding.weight.detach().clone()
        run = train_task(setup, task, corpus, training, name=name)
        begun.append((weight, run.model.embedding.weight.detach().clone(), len(run.history)))
        return run

    monkeypatch.setattr(new_optimisers, "train_task", observed)
    trials = (each for each in SingleChanges().trials("smoke") if each.settings["part"] == part)
    trial = next(each for each in trials if "optimisers" in each.settings)
    values = SingleChanges().run(trial, TrialSetup(tmp_path, None, tmp_path))
    (first, ended, epochs), (second, _, _), *_ = begun
    assert epochs == 1
    assert torch.equal(second, ended)
    assert not torch.equal(second, first)
    assert values["epochs"] == trial.settings["epochs"] == len(begun)
    assert 1 <= values["best_epoch"] <= len(begun)


def test_word_vectors_of_a_classifier_are_ten_times_as_wide():
    corpus, deviations = negation((64, 8, 8)), []
    for kind in (WideClassify, Classify):
        torch.manual_seed(0)
        weight = kind.from_corpus(corpus, kind.Architecture(embedding=300)).build().embedding.weight.detach()
        assert weight[0].abs().max() == 0  # padding
        deviations.append(float(weight[1:].std()))
    assert deviations == pytest.approx([1.0, 0.1], rel=0.05)


def test_one_setting_of_the_negation_networks_differs_or_all_of_the_file():
    changed = {
        "1 epoch": {"epochs"},
        "2 epochs": {"epochs"},
        "vectors from N(0, 1)": {"vectors"},
        "300 units": {"size"},
        "batches of 256": {"batch"},
        "rate 0.05": {"lr"},
        "dropout 0.5": {"dropout"},
        "weight decay 0.001": {"weight_decay"},
        "all settings of the file": {"size", "batch", "lr", "dropout", "weight_decay"},
    }
    trials = {(trial.settings["cell"], trial.settings["changed"]): trial for trial in NegationSettings().trials("cpu")}
    for (cell, title), trial in trials.items():
        usual = trials[cell, "nothing"].settings
        differing = {name for name in trial.settings if trial.settings[name] != usual.get(name)} - {"changed"}
        assert differing == changed.get(title, set())
    other = NegationScores().trials("cpu")[0].settings
    assert all(trials["gru", "nothing"].settings[name] == other[name] for name in ("train", "size", "epochs", "seed"))


def test_mean_scores_of_each_setting_stand_above_the_published_ones():
    experiment = NegationSettings()
    groups = [f"{polarity}, {name}" for polarity in ("positive", "negative")
              for name in ("tokens", "negations", "double negations")]  # fmt: skip
    values = {"test_accuracy": 1.0, "scores": {group: [float(number), 2.0] for number, group in enumerate(groups)}}
    results = [Result(trial, values, 1.0, "", "", "", {}) for trial in experiment.trials("cpu")]
    gru, lstm = ({row[0]: row[1:] for row in table.cells()} for table in experiment.report(results, "cpu").tables)
    assert gru["2 epochs"] == ["1.00", "1.50", "2.00", "2.50", "3.00", "3.50", "100.0"]
    assert [*gru][-1] == "published"
    assert gru["published"] == ["4.25", "-6.13", "12.45", "-3.72", "4.82", "-11.29", "–"]
    assert lstm["published"][0] == "4.79"
