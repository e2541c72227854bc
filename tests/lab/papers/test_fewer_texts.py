"""Networks that learn from a part of the texts of another item: nothing else differs, and the parts are nested."""

from __future__ import annotations

import pytest

from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.framework.synthetic_corpora import topics
from unrolled.lab.papers.implicit_ngrams.fewer_texts import FewerTexts, errors_at, with_fewer
from unrolled.lab.papers.implicit_ngrams.table3 import SentimentAndTopics


@pytest.mark.parametrize("scale", ["smoke", "cpu", "day", "paper"])
def test_a_trial_is_one_of_the_other_item_with_a_part_of_its_texts(scale):
    others = [dict(trial.settings) for trial in SentimentAndTopics().trials(scale)]
    parts = set()
    for trial in FewerTexts().trials(scale):
        chosen = dict(trial.settings)
        assert chosen not in others  # the control
        parts.add((chosen["corpus"], chosen.pop("part")))
        if chosen["corpus"] == "ag_news" and scale != "cpu":
            chosen["corpus"] = "ag_news_extended"  # the drawn rows are a part of it
        assert chosen in others
    expected = {
        "smoke": {("made-up topics", 1), ("made-up topics", 2)},
        "cpu": {("ag_news", part) for part in (1, 2, 4, 8)},
    }
    large = {("ag_news_extended", part) for part in (1, 2, 4, 8)} | {("ag_news", 1), ("ag_news", 2)}
    assert parts == expected.get(scale, large)


def test_a_smaller_part_is_a_part_of_the_larger_and_the_other_splits_are_whole():
    corpus = topics((64, 16, 16))
    kept = [set(with_fewer(corpus, part, seed=0).train) for part in (1, 2, 4, 8)]
    assert [len(part) for part in kept] == [64, 32, 16, 8]
    assert kept[0] > kept[1] > kept[2] > kept[3]
    fewer = with_fewer(corpus, 8, seed=0)
    assert (fewer.dev, fewer.test, fewer.labels) == (corpus.dev, corpus.test, corpus.labels)
    assert set(with_fewer(corpus, 8, seed=1).train) != kept[3]  # drawn anew
    places = [corpus.train.index(example) for example in fewer.train]
    assert places == sorted(places) != list(range(8))  # not the first eight


def test_a_power_law_is_found_and_continued():
    sizes = [1000, 2000, 4000, 8000]
    factor, error = errors_at(sizes, [3.0 * size**-0.5 for size in sizes], 32000)
    assert factor == pytest.approx(2**0.5)
    assert error == pytest.approx(3.0 * 32000**-0.5)
    factor, error = errors_at(sizes, [0.25] * 4, 32000)  # the control: more texts gain nothing
    assert (factor, error) == (pytest.approx(1.0), pytest.approx(0.25))


def test_the_extrapolation_stands_beside_the_published_accuracy():
    experiment = FewerTexts()

    def measured(trial):
        whole = 18_550 if trial.settings["corpus"] == "ag_news_extended" else 9_000
        texts = whole // trial.settings["part"]
        error = 0.1 * (texts / 110_000) ** -0.25
        test = 0.7 if trial.settings["part"] == 8 else 0.8  # the fewest texts are too few
        return {"examples": [texts, 1000, 7600], "dev_accuracy": 1 - error, "test_accuracy": test, "best_epoch": 4.0}

    results = [Result(trial, measured(trial), 1.0, "", "", "", {}) for trial in experiment.trials("day")]
    accuracies, laws = experiment.report(results, "day").tables
    assert len(accuracies.rows) == 4 * (4 + 2)
    assert accuracies.cells()[3][:3] == ["GRU", "all", "2,318"]
    through_all = laws.cells()[2]
    assert through_all[:3] == ["GRU", "test", "4 sizes"]
    assert float(through_all[4]) > 85  # the steep beginning is continued
    del laws.rows[14], laws.rows[10], laws.rows[6], laws.rows[2]
    assert laws.cells() == [
        ["GRU", "dev", "4 sizes", "× 1.19", "90.0", "92.1"],
        ["GRU", "dev", "2 sizes", "× 1.19", "90.0", "92.1"],
        ["GRU", "test", "2 sizes", "× 1.00", "80.0", "91.6"],
        ["LSTM", "dev", "4 sizes", "× 1.19", "90.0", "91.9"],
        ["LSTM", "dev", "2 sizes", "× 1.19", "90.0", "91.9"],
        ["LSTM", "test", "2 sizes", "× 1.00", "80.0", "91.5"],
        ["MVMA-ME", "dev", "4 sizes", "× 1.19", "90.0", "90.6"],
        ["MVMA-ME", "dev", "2 sizes", "× 1.19", "90.0", "90.6"],
        ["MVMA-ME", "test", "2 sizes", "× 1.00", "80.0", "90.2"],
        ["MVMA-G", "dev", "4 sizes", "× 1.19", "90.0", "91.6"],
        ["MVMA-G", "dev", "2 sizes", "× 1.19", "90.0", "91.6"],
        ["MVMA-G", "test", "2 sizes", "× 1.00", "80.0", "91.3"],
    ]
    assert len(experiment.report(results[:2], "day").tables) == 1  # two sizes give no law
