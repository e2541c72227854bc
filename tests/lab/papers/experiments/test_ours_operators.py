"""Operators: where negation is all there is to learn, "not" is found, and it is not where nothing was learned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unrolled.lab.papers.analyses.word_operators import SIDES
from unrolled.lab.papers.framework.experiment import Bench, Result
from unrolled.lab.papers.framework.synthetic_corpora import negation
from unrolled.lab.papers.ours import operators as module
from unrolled.lab.papers.ours.operators import Operators, _ranked

LEARNED = {"training": {"epochs": 6, "batch": 16, "lr": 0.01}, "hidden": 32, "embedding": 32}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operators")
    corpus = negation((1500, 100, 100))

    def run(network):
        trials = Operators().trials("smoke")
        (trial,) = (
            each for each in trials if each.settings["network"] == network and each.settings["encoder"] == "gru"
        )
        trial = replace(trial, settings={**trial.settings, **LEARNED})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "negation", lambda: corpus)
            values = Operators().run(trial, Bench(folder / "room", None, folder / "shelf"))
        return Result(trial, values, 0.0, "", "", "", {})

    return run


def slope(result, word, side, expansion="zero"):
    return next(each for each in _ranked(result, expansion, side).words if each.word == word)


def test_not_is_found_to_turn_both_of_its_neighbours_once_that_was_learned(run):
    trained, untrained = run("trained"), run("untrained")
    assert trained["accuracy"] > 0.9
    assert untrained["accuracy"] is None
    for side in SIDES:
        assert "not" in [each.word for each in _ranked(trained, "zero", side).reversing]
        assert not any(_ranked(untrained, expansion, side).reversing for expansion in ("path", "operating", "zero"))
        assert slope(untrained, "not", side).slope > 0.3
    lowest = [each.word for each in _ranked(trained, "path", "after").words[:5]]
    assert "not" in lowest  # of 34
    low, high = trained["zero, after"]["chance"]
    assert slope(trained, "not", "after").slope < low < high


def test_words_that_read_with_the_vectors_of_others_do_something_else(run):
    trained, shuffled = run("trained"), run("vectors shuffled")
    assert trained["words"] == shuffled["words"]
    assert trained["path, after"]["slopes"] != shuffled["path, after"]["slopes"]
    assert shuffled["accuracy"] is None
