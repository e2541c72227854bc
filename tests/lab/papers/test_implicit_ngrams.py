"""Implicit n-grams: the printed numbers, what the tables measure, and the networks that items share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unrolled.lab.papers.analyses.sentences import polar_adjectives
from unrolled.lab.papers.framework import trial_corpora
from unrolled.lab.papers.framework.experiment import Result, TrialSetup
from unrolled.lab.papers.framework.synthetic_corpora import negation as negation_corpus
from unrolled.lab.papers.framework.trial_training import full_settings
from unrolled.lab.papers.implicit_ngrams import (
    approximation,
    intensification,
    negation,
    table3,
    table4,
    table5,
    triangle,
    tsne,
)
from unrolled.lab.papers.implicit_ngrams.negation import Negation
from unrolled.lab.papers.implicit_ngrams.triangle import TriangleOfScores
from unrolled.lab.papers.ours.negation_rates import NegationRates
from unrolled.lab.papers.ours.phrases import PhraseAgreement
from unrolled.lab.training.settings import TrainingSettings

EXPERIMENTS = [
    table3.SentimentAndTopics,
    table4.RelationsAndNames,
    table5.PerplexityByEncoder,
    approximation.Approximation,
]


def pretend(experiment, scale, values):
    """Results that no training gave: ``values`` makes them of a trial's settings, or None for one that has not run."""
    made = [(trial, values(trial.settings)) for trial in experiment.trials(scale)]
    return [Result(trial, found, 1.0, "", "", "", {}) for trial, found in made if found is not None]


def as_printed(published, columns, measure, scale=1.0):
    """Values that are the published ones, of models that were published as having learned."""

    def values(settings):
        place = 2 * columns.index(settings.get("column", settings.get("corpus")))
        dev, test = published[settings["model"]][place : place + 2]
        if test is None:
            return {"diverged": "the loss is nan", "examples": [1, 1, 1], "largest": 0.25}
        found = {f"dev_{measure}": (dev or test) / scale, f"test_{measure}": test / scale}
        return {**found, "examples": [1, 1, 1], "largest": 0.25 if settings.get("column") == "AG News" else 0.5}

    return values


@pytest.mark.parametrize(
    ("published", "models", "missing", "total"),
    [
        (table3.PUBLISHED, 14, 16, 5121.0 + 523.3),
        (table4.PUBLISHED, 13, 4, 2494.7),
        (table5.PUBLISHED, 7, 5, 4934.7),
    ],
    ids=["tables 3 and 8", "table 4", "table 5"],
)
def test_the_tables_have_as_many_figures_as_are_printed_and_add_up(published, models, missing, total):
    figures = [figure for row in published.values() for figure in row]
    assert len(published) == models
    assert {len(row) for row in published.values()} == {len(figures) // models}
    assert figures.count(None) == missing
    assert sum(figure for figure in figures if figure is not None) == pytest.approx(total, abs=0.05)


def test_the_rows_of_table_5_are_read_so_that_dev_is_the_harder_text():
    for dev_ptb, test_ptb, dev_wiki, test_wiki, *_ in table5.PUBLISHED.values():
        assert dev_ptb > test_ptb
        assert dev_wiki > test_wiki


@pytest.mark.parametrize("kind", EXPERIMENTS, ids=lambda kind: kind.name)
def test_every_model_is_listed_in_the_first_seed_before_a_second_begins(kind):
    for scale in ("cpu", "paper"):
        seeds = [
            trial.settings["seed"] for trial in kind().trials(scale) if "wikitext103" not in trial.settings.values()
        ]
        assert seeds == sorted(seeds)
    assert kind is approximation.Approximation or {trial.settings["model"] for trial in kind().trials("smoke")} == {
        trial.settings["model"] for trial in kind().trials("cpu")
    }


def test_table_3_shows_published_figures_and_failed_trainings():
    experiment = table3.SentimentAndTopics()
    values = as_printed(table3.PUBLISHED, table3.CORPORA, "accuracy", 100)
    report = experiment.report(pretend(experiment, "cpu", values), "cpu")
    rows = {row[0]: row for row in report.tables[0].cells()}
    assert rows["MM"] == ["MM", "86.0 (86.0)", "85.6 (85.6)", *["diverged (–)"] * 4]
    assert rows["Transformer"][1:3] == ["83.4 (83.4)", "82.0 (82.0)"]


def test_reviews_that_are_too_long_are_left_out_and_the_sizes_kept(tmp_path):
    (first, *_) = table3.SentimentAndTopics().trials("smoke")
    whole, short = (
        table3.read_corpus("made-up negation", None, None, tmp_path),
        table3.without_long(table3.read_corpus("made-up negation", None, None, tmp_path), 6),
    )
    assert {len(example.tokens) for example in whole.train} > {len(example.tokens) for example in short.train}
    assert max(len(example.tokens) for split in (short.train, short.dev, short.test) for example in split) <= 6
    found = table3.SentimentAndTopics().run(first, TrialSetup(tmp_path, None, tmp_path / "networks"))
    assert found["examples"] == [len(whole.train), len(whole.dev), len(whole.test)]
    assert found["largest"] >= 0.5


def test_table_4_shows_each_model_at_the_rate_that_is_best_on_dev():
    experiment = table4.RelationsAndNames()

    def values(settings):
        if settings["lr"] == 0.01 and settings["model"] == "MM":
            return {"diverged": "the loss is nan"}
        dev = settings["lr"] if settings["model"] == "GRU" else 0.5 - settings["lr"] / 10
        return {"dev_f1": dev, "test_f1": 0.6 - dev if settings["model"] == "GRU" else dev}

    report = experiment.report(pretend(experiment, "day", values), "day")
    numbers, relations_by_rate, names_by_rate = report.tables
    shown = {row[0]: row[1:] for row in numbers.cells()}
    assert shown["GRU"][:2] == ["5.0 (67.2)", "55.0 (62.2)"]  # dev chooses 0.05, though 0.01 is better on test
    assert shown["MM"][0] == "49.8 (–)"
    by_rate = {row[0]: row[1:] for row in relations_by_rate.cells()}
    assert relations_by_rate.columns == ("model", "lr 0.01", "lr 0.02", "lr 0.05")
    assert by_rate["MM"] == ["diverged", "49.8", "49.5"]
    assert len(names_by_rate.columns) == 5
    assert len(experiment.report(pretend(experiment, "cpu", values), "cpu").tables) == 1


def test_table_4_gives_every_model_a_number_before_it_tries_other_rates():
    experiment = table4.RelationsAndNames()
    trials = experiment.trials("day")
    worth = [experiment.worth(trial) for trial in trials if trial.settings["column"] == "relations"]
    assert worth == [1.0] * 13 + [1 / 3] * 26
    for column, count in (("relations", 3), ("names", 4)):
        settings = [trial.settings for trial in trials if trial.settings["column"] == column]
        assert len({(each["lr"], each.get("momentum")) for each in settings}) == count
    assert any(trial.settings.get("momentum") == 0.0 for trial in trials)


def test_table_5_lays_perplexities_beside_the_published_ones():
    experiment = table5.PerplexityByEncoder()
    values = as_printed(table5.PUBLISHED, tuple(table5.CORPORA), "perplexity", 0.5)  # twice the published ones
    paper = experiment.report(pretend(experiment, "paper", values), "paper")
    assert paper.tables[0].cells()[0][-2:] == ["226.6 ± 0.0 (–)", "226.6 ± 0.0 (113.3)"]


def test_table_5_keeps_trainings_without_dropout_apart():
    experiment = table5.PerplexityByEncoder()

    def values(settings):
        perplexity = 100.0 if settings["dropout"] else 120.0 if settings["lr"] > 0.001 else 110.0
        return {"dev_perplexity": perplexity, "test_perplexity": perplexity}

    main, compared = experiment.report(pretend(experiment, "day", values), "day").tables
    assert main.cells()[0][1:3] == ["100.0 (118.4)", "100.0 (110.1)"]
    assert [row[0] for row in compared.cells()] == ["GRU", "MVMA-G"]
    assert compared.cells()[0][1::2] == ["100.0 (118.4)", "120.0 (118.4)", "110.0 (118.4)"]
    assert compared.cells()[0][2::2] == ["100.0 (110.1)", "120.0 (110.1)", "110.0 (110.1)"]
    assert len(experiment.report(pretend(experiment, "paper", values), "paper").tables) == 1


def test_table_5_draws_the_curves_of_the_corpora_whose_trainings_kept_them():
    experiment = table5.PerplexityByEncoder()

    def values(settings):
        dev = 3.0 if settings["model"] == "GRU" else 4.0
        curves = {"steps": [1, 2], "losses": [5.0, 4.0], "epochs": [2], "training": [4.5], "dev": [dev]}
        measured = {"dev_perplexity": 100.0, "test_perplexity": 100.0}
        return {**measured, "curves": curves} if settings["corpus"] == "wikitext2" else measured

    drawn = experiment.report(pretend(experiment, "day", values), "day").figures
    assert list(drawn) == ["implicit-ngrams-curves-wikitext2"]
    (panel,) = drawn["implicit-ngrams-curves-wikitext2"]().axes
    assert [line.get_label() for line in panel.lines[1::2]] == list(table5.PUBLISHED)
    assert panel.get_title() == "WikiText-2"


def test_networks_with_a_normalised_spectrum_have_rows_of_their_own():
    experiment = approximation.Approximation()

    def values(settings):
        spectral = settings.get("spectral", False)
        names = {f"{what}_{name}": 0.0 for what in ("step", "sum") for name in ("operating", "path", "activation")}
        step, later = (0.1, 0.2) if spectral else (0.4, 0.5)
        return {**names, "step_zero": step, "later_zero": later, "sum_zero": 1.0, "state": 1.0, "dev_accuracy": 0.8}

    report = experiment.report(pretend(experiment, "day", values), "day")
    rows = {tuple(row[:2]): row[2:] for row in report.tables[0].cells()}
    assert len(rows) == 12
    assert rows["GRU", "1e-05"][0] == "40.0 ± 0.0 (21.7)"
    assert rows["GRU, normalised", "1e-05"][0] == "10.0 ± 0.0 (21.7)"
    assert rows["GRU, normalised", "0.0003"][4] == "20.0 ± 0.0 (15.1)"


@pytest.mark.parametrize("more", [{}, {"spectral": True, "patience": 1}], ids=["as it is", "normalised"])
def test_the_exact_expansions_make_no_error_on_a_trained_network_and_the_others_do(tmp_path, more):
    trial = next(each for each in approximation.Approximation().trials("smoke") if each.settings["kind"] == "GRU")
    trial = replace(trial, settings={**trial.settings, **more})
    found = approximation.Approximation().run(trial, TrialSetup(tmp_path, None, tmp_path / "shelf"))
    for name in ("operating", "path"):
        assert found[f"step_{name}"] < 1e-5
        assert found[f"sum_{name}"] < 1e-5
    assert found["step_zero"] > 1e-3
    assert found["sum_zero"] > found["step_zero"]
    assert found["later_zero"] > found["step_zero"]  # the first state of a sentence has no error


def settings(experiment, scale, which):
    """Give what a network is trained with, by its name; of the first seed."""
    first = {}
    for trial in experiment.trials(scale):
        first.setdefault(trial.settings[which], {key: trial.settings[key] for key in ("data", "model", "training")})
    return first


@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_networks_that_several_experiments_open_are_trained_once(scale):
    negations = settings(Negation(), scale, "name")
    mine = settings(NegationRates(), scale, "network")
    assert all(mine[name] == negations[name] for name in ("MVMA-G", "MVMA-L", "Elman"))
    triangle = settings(TriangleOfScores(), scale, "name")
    assert all(triangle[name] == negations[name] for name in ("MVMA-G", "GRU"))
    phrases = PhraseAgreement().trials(scale)
    shared = {trial.settings["model"]["encoder"]: trial.settings for trial in reversed(phrases)}
    for name in ("GRU", "LSTM"):
        assert all(mine[name][key] == shared[name.lower()][key] for key in ("data", "model", "training"))


@pytest.mark.slow
def test_at_scale_day_figures_open_the_networks_of_table_3(tmp_path, monkeypatch):
    """The task, architecture and training are the same, so each network is trained once."""
    asked = {}

    class EnoughError(Exception):
        pass

    def record(_setup, task, corpus, model, training):
        asked[current].append((task, corpus.name, full_settings(task, model, training)))
        raise EnoughError

    for module in (table3, negation, triangle, tsne):
        monkeypatch.setattr(module, "train_once", record)
    for module in (table3, polar_adjectives, trial_corpora, tsne):
        monkeypatch.setattr(module, "load_cached", lambda name, *_: replace(negation_corpus((8, 4, 4)), name=name))
    monkeypatch.setattr(polar_adjectives, "sst2_adjectives", lambda _: None)
    figures = (negation.Negation(), triangle.TriangleOfScores(), tsne.MapOfContexts())
    for current, experiment in (("table 3", table3.SentimentAndTopics()), *(("figures", each) for each in figures)):
        asked.setdefault(current, [])
        for trial in experiment.trials("day"):
            if trial.settings.get("column") != "IMDB":
                with pytest.raises(EnoughError):
                    experiment.run(trial, TrialSetup(tmp_path, None, tmp_path / "shelf"))
    assert len(asked["table 3"]) == 3 * 2 * 14
    assert len(asked["figures"]) == 3 * 13 + 2 + 3 * 2
    assert all(each in asked["table 3"] for each in asked["figures"])


def test_from_scale_day_up_word_vectors_are_fixed_as_published(tmp_path, monkeypatch):
    frozen = []

    def record(_setup, _task, _corpus, _model, training):
        frozen.append(TrainingSettings(**training).freeze_vectors)
        raise KeyboardInterrupt

    monkeypatch.setattr(intensification, "train_once", record)
    monkeypatch.setattr(intensification, "load_cached", lambda *_: None)
    monkeypatch.setattr(intensification, "sst2_adjectives", lambda _: None)
    monkeypatch.setattr(intensification, "find_file", lambda name, _: tmp_path / name)
    experiment = intensification.Intensification()
    for scale in ("cpu", "day", "paper"):
        with pytest.raises(KeyboardInterrupt):
            experiment.run(experiment.trials(scale)[0], TrialSetup(tmp_path, None, tmp_path / "shelf"))
    assert frozen == [False, True, True]
