"""Accuracies on SST with settings that a paper does not state: one change at a time, and smaller word vectors."""

from __future__ import annotations

from dataclasses import replace

import torch

from unrolled.lab.data.corpus import Classification, Example
from unrolled.lab.papers.analyses.published_code.new_optimisers import NarrowContinuingClassify
from unrolled.lab.papers.framework.experiment import Result, TrialSetup
from unrolled.lab.papers.framework.synthetic_corpora import negation
from unrolled.lab.papers.sequence_level_features.sentiment_settings import SentimentSettings, write_components
from unrolled.lab.papers.sequence_level_features.table2 import SentimentByCell


def test_one_setting_at_a_time_differs_from_those_of_table_2():
    base = {
        (trial.settings["encoder"], trial.settings["seed"]): dict(trial.settings)
        for trial in SentimentByCell().trials("day")
    }
    changed = {
        "300 units": {"hidden"},
        "300 units, both directions": {"hidden", "bidirectional"},
        "mean of all states": {"pooling"},
        "Adagrad": {"optimiser", "lr"},
        "vectors of 100 numbers": {"vectors", "embedding"},
        "vectors of 300 numbers, of spaCy": {"vectors", "embedding"},
        "vectors of 25 numbers": {"components", "embedding"},
        "vectors of 12 numbers": {"components", "embedding"},
        "random vectors of 50 numbers": {"components"},
        "fixed vectors": {"freeze_vectors"},
        "no dropout": {"dropout", "word_dropout"},
        "weight decay 1e-05": {"weight_decay"},
        "weight decay 0.001": {"weight_decay"},
        "batches of 512": {"batch"},
        "batches of 16": {"batch"},
    }
    for trial in SentimentSettings().trials("day"):
        settings = dict(trial.settings)
        title = settings.pop("changed")
        if "optimisers" in settings:  # those of the later notebook
            continue
        reference = base[settings["encoder"], settings["seed"]]
        assert {name for name in settings if settings[name] != reference.get(name)} == changed.get(title, set())


def test_networks_of_the_later_notebook_learn_with_and_without_biases(tmp_path):
    """The two rows differ in the biases and the start alone, and the networks without biases have fewer parameters."""
    item, base = SentimentSettings(), next(iter(SentimentSettings().trials("smoke")))
    changed = {
        each.settings["changed"]: {name: value for name, value in each.settings.items() if name != "changed"}
        for each in item.trials("day")
        if "optimisers" in each.settings and each.settings["seed"] == 0 and each.settings["encoder"] == "gru"
    }
    with_biases, without = changed.values()
    assert without == {**with_biases, "options": {"bias": False}, "orthogonal": True}
    small = {"hidden": 8, "embedding": 8, "epochs": 2, "vectors": base.settings["vectors"]}
    parameters = []
    for number, settings in enumerate((with_biases, without)):
        trial = replace(base, settings={**base.settings, **settings, **small})
        values = item.run(trial, TrialSetup(tmp_path / str(number), None, tmp_path))
        assert values["epochs"] == 2
        parameters.append(values["parameters"])
    assert parameters[0] - parameters[1] == 2 * 3 * 8


def test_the_vectors_of_the_later_notebook_are_narrow():
    task = NarrowContinuingClassify.from_corpus(negation((64, 8, 8)), NarrowContinuingClassify.Architecture())
    weight = task.build().embedding.weight.detach()
    assert weight.abs().max() <= 0.1
    assert float(weight.std()) > 0.05


def test_accuracies_of_each_setting_stand_above_the_published_ones():
    experiment = SentimentSettings()
    results = [
        Result(
            trial,
            {"dev_accuracy": 0.85, "test_accuracy": 0.86 if trial.settings["encoder"] == "gru" else 0.84},
            1.0,
            "",
            "",
            "",
            {},
        )
        for trial in experiment.trials("day")
        if trial.settings["changed"] != "Adagrad"
    ]
    (table,) = experiment.report(results, "day").tables
    rows = {row[0]: row[1:] for row in table.cells()}
    assert rows["300 units"] == ["85.0 ± 0.0", "86.0 ± 0.0", "85.0 ± 0.0", "84.0 ± 0.0"]
    assert [*rows][-1] == "published"
    assert rows["published"] == ["85.9", "88.1", "85.8", "87.9"]
    assert "Adagrad" not in rows


def test_components_keep_what_vectors_of_fewer_numbers_can_keep(tmp_path):
    """Vectors that lie in a plane keep their inner products in two numbers, and not in one."""
    words = {"good": (3.0, 0.0, 4.0), "bad": (-3.0, 1.0, -4.0), "film": (0.0, 2.0, 0.0), "unread": (9.0, 9.0, 9.0)}
    source = tmp_path / "source.txt"
    source.write_text("".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in words.items()))
    text = Example(("good", "Bad", "film", "odd"), 0)
    read = Classification(name="a corpus", train=(text,), dev=(), test=(), labels=("no", "yes"))
    expected = torch.tensor([words[word] for word in ("good", "bad", "film")])
    for size, keeps in ((2, True), (1, False)):
        path = tmp_path / "new folder" / f"{size}.txt"
        write_components(source, read, size, path)
        lines = [line.split(" ") for line in path.read_text().splitlines()]
        assert sorted(line[0] for line in lines) == ["bad", "film", "good"]
        found = {line[0]: [float(number) for number in line[1:]] for line in lines}
        ours = torch.tensor([found[word] for word in ("good", "bad", "film")])
        assert ours.shape == (3, size)
        assert torch.allclose(ours @ ours.T, expected @ expected.T, atol=1e-4) == keeps
