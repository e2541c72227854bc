"""Implicit n-grams, tables 3, 4, 5 and appendix B.2: the figures as printed, and what is measured."""

from __future__ import annotations

import pytest

from unrolled.lab.papers.framework.experiment import Bench, Result
from unrolled.lab.papers.framework.synthetic_corpora import relations
from unrolled.lab.papers.implicit_ngrams import approximation as approximation
from unrolled.lab.papers.implicit_ngrams import table3 as table3
from unrolled.lab.papers.implicit_ngrams import table4 as table4
from unrolled.lab.papers.implicit_ngrams import table5 as table5

EXPERIMENTS = [table3.Sentiment, table4.RelationsAndNames, table5.Perplexities, approximation.Approximation]


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
    experiment = table3.Sentiment()
    values = as_printed(table3.PUBLISHED, table3.CORPORA, "accuracy", 100)
    report = experiment.report(pretend(experiment, "cpu", values), "cpu")
    rows = {row[0]: row for row in report.tables[0].cells()}
    assert rows["MM"] == ["MM", "86.0 (86.0)", "85.6 (85.6)", *["diverged (–)"] * 4]
    assert rows["Transformer"][1:3] == ["83.4 (83.4)", "82.0 (82.0)"]


def test_reviews_that_are_too_long_are_left_out_and_the_sizes_kept(tmp_path):
    (first, *_) = table3.Sentiment().trials("smoke")
    whole, short = (
        table3._read("made-up negation", None, None, tmp_path),
        table3.without_long(table3._read("made-up negation", None, None, tmp_path), 6),
    )
    assert {len(example.tokens) for example in whole.train} > {len(example.tokens) for example in short.train}
    assert max(len(example.tokens) for split in (short.train, short.dev, short.test) for example in split) <= 6
    found = table3.Sentiment().run(first, Bench(tmp_path, None, tmp_path / "shelf"))
    assert found["examples"] == [len(whole.train), len(whole.dev), len(whole.test)]
    assert found["largest"] >= 0.5


def test_a_relation_and_its_reverse_are_one_class():
    corpus = relations()
    merged = table4.without_directions(corpus)
    assert merged.labels == ("Cause-Effect", "Component-Whole", "Other")
    for before, after in zip(corpus.train, merged.train, strict=True):
        assert corpus.labels[before.label].startswith(merged.labels[after.label])
        assert before.tokens == after.tokens


def test_table_5_lays_perplexities_beside_the_published_ones():
    experiment = table5.Perplexities()
    values = as_printed(table5.PUBLISHED, tuple(table5.CORPORA), "perplexity", 0.5)  # twice the published ones
    paper = experiment.report(pretend(experiment, "paper", values), "paper")
    assert paper.tables[0].cells()[0][-2:] == ["226.6 ± 0.0 (–)", "226.6 ± 0.0 (113.3)"]


def test_the_exact_expansions_make_no_error_on_a_trained_network_and_the_others_do(tmp_path):
    trial = next(each for each in approximation.Approximation().trials("smoke") if each.settings["kind"] == "GRU")
    found = approximation.Approximation().run(trial, Bench(tmp_path, None, tmp_path / "shelf"))
    for name in ("operating", "path"):
        assert found[f"step_{name}"] < 1e-5
        assert found[f"sum_{name}"] < 1e-5
    assert found["step_zero"] > 1e-3
    assert found["sum_zero"] > found["step_zero"]
