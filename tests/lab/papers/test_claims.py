"""Claims of the papers on made-up results: each holds where the results say so, and fails where they do not."""

import pytest

from unrolled.lab.papers.analyses.sentences.text_properties import PROSE, PYTHON
from unrolled.lab.papers.cs224d_notes_4.gradients import Gradients
from unrolled.lab.papers.cs577_lecture_5.cells import InterpretableUnits
from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.implicit_ngrams.triangle import TriangleOfScores
from unrolled.lab.papers.implicit_ngrams.tsne import MapOfContexts
from unrolled.lab.papers.second_order_rnns.dyck import DyckBrackets
from unrolled.lab.papers.sequence_level_features.ngrams import NgramScores


def holds(experiment, values, named):
    """Whether the claims that contain ``named`` hold, for results whose values are made of a trial's settings."""
    results = [Result(trial, values(trial.settings), 1.0, "", "", "", {}) for trial in experiment.trials("cpu")]
    return {kept for claim, kept in experiment.claims(results).items() if named in f" {claim}"}


def sentence(never, loses, begun):
    """The triangle of the first sentence, whose third word is "never": scores[end][begin]."""
    scores = [[0.0] * 6 for _ in range(6)]
    scores[2][2], scores[3][3] = never, loses
    for end, score in zip((3, 4, 5), begun, strict=True):
        scores[end][2] = score
    return {"sentences": [{"scores": scores}], "accuracy": 0.8}


@pytest.mark.parametrize(
    ("named", "like", "unlike"),
    [
        ('"never" alone', sentence(-1, 1, (1, 1, 1)), sentence(1, 1, (1, 1, 1))),
        ('"loses" alone', sentence(-1, 1, (1, 1, 1)), sentence(-1, -1, (1, 1, 1))),
        ("most longer", sentence(-1, 1, (1, -1, 1)), sentence(-1, 1, (-1, -1, 1))),
    ],
)
def test_the_triangle_is_compared_with_what_the_paper_says_of_never_and_loses(named, like, unlike):
    assert holds(TriangleOfScores(), lambda _: like, named) == {True}
    assert holds(TriangleOfScores(), lambda _: unlike, named) == {False}
    assert holds(TriangleOfScores(), lambda _: {**like, "accuracy": 0.55}, named) == {None}


def test_networks_that_the_paper_does_not_show_are_not_compared():
    triangle = {"sentences": [{"scores": [[0.0] * 6 for _ in range(6)]}], "accuracy": 0.8}
    assert holds(TriangleOfScores(), lambda _: triangle, "MVMA-G") == {False}
    assert holds(TriangleOfScores(), lambda _: triangle, "GRU") == set()
    assert holds(NgramScores(), scored(9, 5, 4, 5), "GRU") == {True}
    assert holds(NgramScores(), scored(9, 5, 4, 5), "LSTM") == set()


def test_one_training_whose_map_does_not_separate_topics_is_enough_to_differ():
    def maps(last, right=0.9):
        return lambda settings: {
            "map": {"neighbours": last if settings["training"]["seed"] == 2 else 0.99},
            "test_accuracy": right if settings["training"]["seed"] == 2 else 0.9,
            "topics": ["world", "sports", "business", "science"],
        }

    assert holds(MapOfContexts(), maps(0.6), "neighbours") == {True}
    assert holds(MapOfContexts(), maps(0.3), "neighbours") == {False}
    assert holds(MapOfContexts(), maps(0.3, right=0.3), "neighbours") == {True}  # it has learned no topic


def brackets(wcpa):
    return lambda settings: {"dev_wcpa": wcpa[settings["model"]] if settings["depth"] == 4 else 0.0}


AS_PUBLISHED = {"Dyck-RNN": 1.0, "embeddings learned, e = 2": 1.0, "embeddings learned, e = 1": 0.3} | dict.fromkeys(
    ("LSTM", "RNN", "mmLSTM", "mmRNN"), 0.5
)


def test_brackets_are_compared_with_every_statement_of_the_paper():
    assert holds(DyckBrackets(), brackets(AS_PUBLISHED), "m = 4") == {True}
    for model, wcpa in AS_PUBLISHED.items():
        other = {"Dyck-RNN": 0.99, "embeddings learned, e = 2": 0.99, "embeddings learned, e = 1": 1.0}.get(model, 0.51)
        assert holds(DyckBrackets(), brackets({**AS_PUBLISHED, model: other}), f" {model}, m = 4:") == {False}, wcpa


def scored(*right, accuracy=0.8):
    """Ten n-grams of each label for every order; so many of the positive ones have the right sign."""
    by_order = [{"positive": [1.0] * n + [-1.0] * (10 - n), "negative": [-1.0] * 10} for n in right]
    return lambda _: {"scores": {"activation": by_order}, "test_accuracy": accuracy}


@pytest.mark.parametrize(("named", "right"), [("single words", (4, 9, 5, 5)), ("bigrams", (9, 4, 3, 5))])
def test_words_and_bigrams_are_each_compared_with_the_better_of_longer_ngrams(named, right):
    assert holds(NgramScores(), scored(9, 5, 4, 5), named) == {True}
    assert holds(NgramScores(), scored(*right), named) == {False}
    assert holds(NgramScores(), scored(*right, accuracy=0.55), named) == {None}


def norms(of):
    """Norms of the Jacobian before training, by cell; all keep their bounds, and none diverges."""
    return lambda settings: {
        "before": {"jacobian": [1.0, of.get(settings["cell"], 1e-9)], "kept": True},
        "after": None,
        "diverged": None,
    }


def test_both_remedies_against_vanishing_are_checked_the_identity_and_the_rectifier():
    like = {"tanh, identity": 1e-2, "relu, identity": 1.0, "relu": 0.2}
    assert holds(Gradients(), norms(like), "larger norm") == {True}
    assert holds(Gradients(), norms(like), "relu attenuates") == {True}
    assert holds(Gradients(), norms({**like, "relu": 0.05}), "relu attenuates") == {False}


def units(clear):
    """Units of trained networks have a correlation of .9 with the properties that are ``clear``, the others of .4."""

    def values(settings):
        names = PYTHON if settings["text"] == "python" else PROSE
        found = {
            name: {"correlation": (0.9 if name in clear else 0.4) if settings["trained"] else 0.3} for name in names
        }
        return {"found": found, "clear": 0.1}

    return values


def test_a_unit_is_asked_for_where_the_lecture_shows_one_and_either_depth_is_a_depth():
    """The lecture shows no unit for strings alone, and none for the position in a line of code."""
    ours = {"inside a string", "inside a comment"}
    assert holds(InterpretableUnits(), units(ours), "a unit detects") == {False}
    shown = {"inside a string or comment", "inside an if", "position in line", "inside quotes"}
    for depth in ("bracket depth", "block depth"):
        assert holds(InterpretableUnits(), units({*shown, depth}), "a unit detects") == {True}
    assert holds(InterpretableUnits(), units(shown), "depth") == {False}
