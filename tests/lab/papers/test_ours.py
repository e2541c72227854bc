"""Our own questions: trials, measurements and reports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unrolled.lab.papers.analyses.faithfulness_tables import difference
from unrolled.lab.papers.analyses.word_operators import SIDES
from unrolled.lab.papers.framework.experiment import Result, TrialSetup
from unrolled.lab.papers.framework.synthetic_corpora import negation
from unrolled.lab.papers.implicit_ngrams import table4
from unrolled.lab.papers.ours import operators as operators
from unrolled.lab.papers.ours.errors import CELL_NAMES, AccumulatedErrors
from unrolled.lab.papers.ours.faithfulness import Faithfulness
from unrolled.lab.papers.ours.known_truth import KnownTruth
from unrolled.lab.papers.ours.operators import Operators, ranked_words
from unrolled.lab.papers.ours.phrases import FIRST, PhraseAgreement
from unrolled.lab.papers.ours.relation_markers import PUBLISHED, RelationMarkers
from unrolled.lab.papers.ours.tasks import TaskFigures
from unrolled.lab.tasks import TASKS


def test_every_listed_cell_has_a_trial_for_every_weight_decay():
    assert set(CELL_NAMES) == {
        "elman", "gru", "lstm", "gru_before", "mrnn", "mlstm", "mi_rnn", "mi_gru", "mi_lstm", "mmrnn", "mmlstm",
        "tensor_rnn",
    }  # fmt: skip
    asked = {(trial.settings["cell"], trial.settings["weight_decay"]) for trial in AccumulatedErrors().trials("cpu")}
    assert asked == {(cell, decay) for cell in CELL_NAMES for decay in (0.0, 1e-5, 1e-4, 3e-4)}


def error_results(**curves):
    """Results of three cells; each of the curves is what it says, the others are small and flat."""
    found = []
    for trial in AccumulatedErrors().trials("cpu"):
        cell, decay = trial.settings["cell"], trial.settings["weight_decay"]
        if cell not in ("lstm", "gru", "mlstm"):
            continue
        errors = {}
        for name in trial.settings["expansions"]:
            if cell == "mlstm" and name in ("gates", "activation"):
                continue
            values = curves.get(f"{cell}_{name}" if decay == 0 else f"{cell}_{name}_decayed", [0.5] * 25)
            errors[name] = {"median": values, "ninetieth": values}
        found.append(Result(trial, {"accuracy": 0.8, "errors": errors}, 1.0, "2026-01-01", "a test", "a machine", {}))
    return found


def test_what_is_past_all_bounds_and_what_a_cell_has_not_are_told_apart():
    table, *_ = AccumulatedErrors().report(error_results(lstm_zero=[0.1] * 4 + [None] * 21), "cpu").tables
    rows = {row[0]: row for row in table.cells()}
    assert rows["lstm"][1] == "infinite / infinite"
    assert rows["mlstm"][table.columns.index("gates")] == "–"
    assert rows["gru"][1] == "50 / 50"


def test_shorter_sentences_shorten_what_is_compared():
    report = AccumulatedErrors().report(error_results(gru_zero=[0.2] * 12), "cpu")
    assert "after 12 words" in report.tables[0].title
    assert report.tables[1].columns == ("cell", "2 words", "5 words", "10 words")


def test_the_earlier_figures_are_all_there():
    assert {encoder: len(figures) for encoder, figures in FIRST.items()} == {"lstm": 8, "gru": 7}
    assert sum(FIRST["lstm"].values()) == pytest.approx(4.045)
    assert sum(FIRST["gru"].values()) == pytest.approx(3.852)


def test_what_needs_an_optional_library_comes_last_and_networks_are_shared_with_other_items():
    trials = PhraseAgreement().trials("cpu")
    groups = [trial.settings["group"] for trial in trials]
    assert groups.count("integrated gradients") == 2
    assert set(groups[-2:]) == {"integrated gradients"}
    assert groups[:2] == ["expansions"] * 2
    by_encoder = {trial.settings["model"]["encoder"]: trial.settings for trial in trials}
    for settings in by_encoder.values():
        assert settings["model"]["hidden"] == 128
        assert (settings["training"]["epochs"], settings["training"]["seed"]) == (3, 0)
    assert [trial.settings["model"]["encoder"] for trial in trials if "decomposition" in trial.label] == ["lstm"]


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


def test_words_that_read_with_the_vectors_of_others_do_something_else(operators_run):
    trained, shuffled = operators_run("trained"), operators_run("vectors shuffled")
    assert trained["words"] == shuffled["words"]
    assert trained["path, after"]["slopes"] != shuffled["path, after"]["slopes"]
    assert shuffled["accuracy"] is None


GOOD = {
    "accuracy": 0.9,
    "f1": 0.9,
    "mrr": 0.9,
    "bleu": 30.0,
    "perplexity": 90.0,
    "bpc": 1.4,
    "pearson": 0.5,
    "wcpa": 1.0,
}


def missed(seconds=60.0, **changes):
    values = {f"test_{name}": value for name, value in {**GOOD, **changes}.items()}
    results = [
        Result(trial, {**values, "seconds": seconds, "parameters": 5.0}, 1.0, "2026-01-01", "a test", "a machine", {})
        for trial in TaskFigures().trials("cpu")
    ]
    return [claim for claim, holds in TaskFigures().claims(results).items() if not holds]


def test_every_task_has_a_row():
    commands = {trial.label.split()[2] for trial in TaskFigures().trials("cpu")}
    assert commands == set(TASKS.names())


def test_every_goal_that_is_reached_holds():
    assert missed() == missed(pearson=-1.0) == []  # no goal is set for the correlation


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"perplexity": 116.0}, "--dropout 0.3 --epochs 6`: test perplexity at most 115"),
        ({"bleu": 19.9}, "--data multi30k`: test bleu at least 20"),
        ({"wcpa": 0.99}, "--data dyck`: test wcpa at least 1"),
    ],
)
def test_a_figure_that_is_missed_is_named(changes, said):
    (found,) = missed(**changes)
    assert found.endswith(said)


def test_a_time_that_is_missed_is_named_where_one_was_set():
    late = missed(seconds=60.0 * 31)
    assert [each.rpartition(": ")[2] for each in late] == [
        f"at most {minutes} minutes of training" for minutes in (15, 15, 30)
    ]


def test_what_an_account_leaves_over_is_held_against_what_it_may():
    trial = TaskFigures().trials("cpu")[0]
    values = {"test_accuracy": 0.9, "seconds": 60.0, "parameters": 5.0}
    for left, holds in ((3e-7, True), (2e-4, False)):
        result = Result(trial, {**values, "remainder": left}, 1.0, "2026-01-01", "a test", "a machine", {})
        report = TaskFigures().report([result], "cpu")
        assert report.tables[0].cells()[0][-1] == f"{left:.1e}"
        claims = TaskFigures().claims([result])
        assert [kept for claim, kept in claims.items() if "remainder of the logit" in claim] == [holds]


MEASURES = {
    "comprehensiveness": 0.5, "sufficiency": 0.1, "blank_score": 0.4, "insertion": 0.8, "remainder": 1e-6,
    "cancellation": 2.0, "stability": 0.9, "cost": 3.0,
}  # fmt: skip


def faithful(scores, of_seed=lambda *_: 0.0):
    """Results at scale cpu; ``scores`` gives the score of a network, a method and a split, None for 0.5.

    ``of_seed`` is added to it.
    """
    found = []
    for trial in Faithfulness().trials("cpu"):
        chosen = trial.settings
        methods = {}
        for method in chosen["methods"]:
            value = scores(chosen["network"], method, chosen["split"])
            score = (0.5 if value is None else value) + of_seed(chosen["seed"], method)
            values = [round(1000 * score) + text % 7 for text in range(chosen["texts"])]
            methods[method] = {"scores": values, **MEASURES}
        values = {"accuracy": 0.9, "texts": chosen["texts"], "words": 20.0, "methods": methods, "missing": {}}
        found.append(Result(trial, values, 1.0, "2026-01-01", "a test", "a machine", {}))
    return found


COMPARED = list(dict.fromkeys(trial.settings["network"] for trial in Faithfulness().trials("cpu")))[:8]


@pytest.mark.parametrize(("below", "kept"), [(2, True), (3, False)])
def test_the_default_is_to_be_above_integrated_gradients_on_six_of_eight_networks(below, kept):
    def scores(network, method, _):
        return (
            0.6
            if method.startswith("integrated") and network in COMPARED[:below]
            else 0.4
            if method.startswith("integrated")
            else None
        )

    claims = Faithfulness().claims(faithful(scores))
    assert [holds for claim, holds in claims.items() if "integrated gradients" in claim] == [kept]


@pytest.mark.parametrize(("score", "kept"), [(0.5, True), (0.52, False)])
def test_the_default_is_not_to_be_below_path_on_any_network(score, kept):
    claims = Faithfulness().claims(
        faithful(lambda n, method, _: score if (n, method) == (COMPARED[3], "path") else None)
    )
    assert [holds for claim, holds in claims.items() if "path" in claim] == [kept]


def test_no_claim_is_made_before_all_eight_networks_are_measured():
    results = [each for each in faithful(lambda *_: None) if each.trial.settings["network"] != COMPARED[7]]
    assert Faithfulness().claims(results) == {}


def test_a_difference_is_that_of_the_texts_that_both_methods_explain():
    results = faithful(lambda _, method, __: 0.7 if method == "LIME, 200" else None)
    mean, low, high = difference(results, COMPARED[0], "LIME, 200", "secant")
    assert mean == low == high == pytest.approx(0.2)
    assert difference(results, "no such network", "secant", "path") is None


def test_what_the_default_is_compared_on_is_trained_three_times():
    trials = Faithfulness().trials("cpu")
    for family, split in (("expansions", "test"), ("others", "test"), ("expansions", "dev"), ("sampling", "test")):
        seeds = {}
        for trial in trials:
            chosen = trial.settings
            if (chosen["family"], chosen["split"]) == (family, split):
                seeds.setdefault(chosen["network"], set()).add(chosen["seed"])
        thrice = split == "test" and family != "sampling"
        assert {name: len(each) for name, each in seeds.items()} == {
            name: 3 if thrice and name in COMPARED else 1 for name in seeds
        }


def test_methods_are_compared_on_the_trainings_that_both_have():
    """Seeds 1 and 2 score .3 more with every method: a rival of seed 0 alone is compared on seed 0."""
    results = faithful(lambda *_: None, lambda seed, _: 0.3 * (seed > 0))
    for rival in ("LIME, 200", "path"):
        assert difference(results, COMPARED[0], "secant", rival) == pytest.approx((0, 0, 0))
    better_later = faithful(lambda *_: None, lambda seed, method: 0.3 * (seed > 0 and method == "secant"))
    assert difference(better_later, COMPARED[0], "secant", "path")[0] == pytest.approx(0.2)
    assert difference(better_later, COMPARED[0], "secant", "LIME, 200")[0] == 0
    apart = [each for each in better_later if (each.trial.settings["seed"] == 1) != ("secant" in each["methods"])]
    assert difference(apart, COMPARED[0], "secant", "integrated gradients, 32") is None


def test_a_choice_by_behaviour_looks_at_dev_and_is_judged_on_test():
    def scores(_, method, split):
        return {("gates", "dev"): 0.9, ("gates", "test"): 0.3}.get((method, split))

    tables = Faithfulness().report(faithful(scores), "cpu").tables
    (choice,) = (table for table in tables if table.title.startswith("Choosing"))
    rows = choice.cells()
    assert {row[1] for row in rows[:-1]} == {"gates"}
    assert all(row[2].startswith("-0.200") for row in rows)


def test_networks_that_did_not_learn_are_left_out_and_said():
    def result(trial, right):
        shares = {"first": right, "set": right, "first by size": right, "set by size": right}
        values = {"accuracy": right, "learned": right > 0.99, "methods": {"secant": shares}, "missing": {}}
        return Result(trial, values, 1.0, "2026-01-01", "a test", "a machine", {})

    trials = [trial for trial in KnownTruth().trials("cpu") if trial.settings["task"] == "keyword"]
    assert len(trials) == 6
    report = KnownTruth().report([result(trial, 1.0 if trial is trials[0] else 0.7) for trial in trials], "cpu")
    summary, *_, learned = report.tables
    assert summary.cells() == [["secant", "1.00", "1.00", "1.00", "1.00"]]
    assert learned.cells() == [["keyword, LSTM", "1 of 3", "70.0"], ["keyword, GRU", "0 of 3", "70.0"]]


@pytest.mark.parametrize("scale", ["cpu", "day", "paper"])
def test_a_model_with_markers_and_its_pair_without_differ_in_nothing_else(scale):
    trials = [dict(trial.settings) for trial in RelationMarkers().trials(scale)]
    assert [each.pop("markers") for each in trials] == [True, False] * (len(trials) // 2)
    assert trials[::2] == trials[1::2]


def test_f1_with_and_without_markers_stands_beside_the_published_one():
    experiment = RelationMarkers()
    results = [
        Result(trial, {"dev_f1": 0.7, "test_f1": 0.8 if trial.settings["markers"] else 0.6}, 1.0, "", "", "", {})
        for trial in experiment.trials("cpu")
        if (trial.settings["model"], trial.settings["markers"]) != ("MVM-G", True)
    ]
    (table,) = experiment.report(results, "cpu").tables
    rows = {row[0]: dict(zip(table.columns[1:], row[1:], strict=True)) for row in table.cells()}
    assert rows["GRU"]["test, with"] == "80.0"
    assert rows["GRU"]["test, without"] == "60.0"
    assert rows["GRU"]["test, published"] == "62.2"
    assert rows["MVM-G"]["test, with"] == "–"


def test_the_published_f1_of_relations_is_that_of_table_4():
    assert {model: table4.PUBLISHED[model][:2] for model in PUBLISHED} == PUBLISHED
