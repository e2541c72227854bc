"""Words as operators: what is found once it was learned, and what is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unrolled.lab.papers.analyses.word_operators import SIDES
from unrolled.lab.papers.framework.experiment import Result, TrialSetup
from unrolled.lab.papers.framework.synthetic_corpora import negation
from unrolled.lab.papers.ours import operators as operators
from unrolled.lab.papers.ours.operators import Operators, ranked_words

OPERATOR_SETTINGS = {"training": {"epochs": 6, "batch": 16, "lr": 0.01}, "hidden": 32, "embedding": 32}


@pytest.fixture(scope="module")
def operators_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operators")
    corpus = negation((1500, 100, 100))

    def operators_run(network):
        trials = Operators().trials("smoke")
        (trial,) = (
            each for each in trials if each.settings["network"] == network and each.settings["encoder"] == "gru"
        )
        trial = replace(trial, settings={**trial.settings, **OPERATOR_SETTINGS})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(operators, "negation", lambda: corpus)
            values = Operators().run(trial, TrialSetup(folder / "trial", None, folder / "networks"))
        return Result(trial, values, 0.0, "", "", "", {})

    return operators_run


def slope(result, word, side, expansion="zero"):
    return next(each for each in ranked_words(result, expansion, side).words if each.word == word)


@pytest.mark.slow
def test_not_is_found_to_turn_both_of_its_neighbours_once_that_was_learned(operators_run):
    trained, untrained = operators_run("trained"), operators_run("untrained")
    assert trained["accuracy"] > 0.9
    assert untrained["accuracy"] is None
    for side in SIDES:
        assert "not" in [each.word for each in ranked_words(trained, "zero", side).reversing]
        assert not any(
            ranked_words(untrained, expansion, side).reversing for expansion in ("path", "operating", "zero")
        )
        assert slope(untrained, "not", side).slope > 0.3
    lowest = [each.word for each in ranked_words(trained, "path", "after").words[:5]]
    assert "not" in lowest  # of 34
    low, high = trained["zero, after"]["chance"]
    assert slope(trained, "not", "after").slope < low < high


@pytest.mark.slow
def test_words_that_read_with_the_vectors_of_others_do_something_else(operators_run):
    trained, shuffled = operators_run("trained"), operators_run("vectors shuffled")
    assert trained["words"] == shuffled["words"]
    assert trained["path, after"]["slopes"] != shuffled["path, after"]["slopes"]
    assert shuffled["accuracy"] is None
