"""The bench of faithfulness: trials, comparisons, the choice on dev, and claims."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from unrolled.lab.papers.analyses.faithfulness.scores import difference, mean_difference
from unrolled.lab.papers.analyses.text_classifiers import OVER_TRAINED
from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.framework.result_store import ResultStore
from unrolled.lab.papers.framework.runner import collect
from unrolled.lab.papers.framework.table import markdown_table
from unrolled.lab.papers.ours.faithfulness import Faithfulness
from unrolled.lab.papers.ours.known_truth import KnownTruth

ROOT = Path(__file__).parents[4]

MEASURES = {
    "comprehensiveness": 0.5, "sufficiency": 0.1, "blank_score": 0.4, "insertion": 0.8, "remainder": 1e-6,
    "cancellation": 2.0, "stability": 0.9, "cost": 3.0,
}  # fmt: skip


def faithful(scores, of_seed=lambda *_: 0.0, without=lambda *_: False):
    """Results at scale cpu; ``scores`` gives the score of a network, a method and a split, None for 0.5.

    ``of_seed`` is added to it. A method that is ``without`` a number on a network has a reason there.
    """
    found = []
    for trial in Faithfulness().trials("cpu"):
        chosen = trial.settings
        methods = {}
        for method in chosen["methods"]:
            if without(chosen["network"], method):
                continue
            value = scores(chosen["network"], method, chosen["split"])
            score = (0.5 if value is None else value) + of_seed(chosen["seed"], method)
            values = [round(1000 * score) + text % 7 for text in range(chosen["texts"])]
            methods[method] = {"scores": values, **MEASURES}
        missing = {name: "it needs an LSTM" for name in chosen["methods"] if name not in methods}
        values = {"accuracy": 0.9, "texts": chosen["texts"], "words": 20.0, "methods": methods, "missing": missing}
        found.append(Result(trial, values, 1.0, "2026-01-01", "a test", "a machine", {}))
    return found


LATER = ("sizes", "further expansions")
IMDB = "IMDB, LSTM, mean"
IG = "integrated gradients, 32"
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


def family(results, name):
    return [result for result in results if result.trial.settings["family"] == name]


def table_of(results, start):
    (found,) = (table for table in Faithfulness().report(results, "cpu").tables if table.title.startswith(start))
    return found


@pytest.mark.slow
def test_methods_of_a_later_family_are_compared_within_it_and_change_no_earlier_table():
    """The later training scores .2 less with every method, on fewer texts."""
    earlier = [each for each in faithful(lambda *_: None) if each.trial.settings["family"] not in LATER]
    less = faithful(lambda *_: 0.3)
    both = earlier + [each for each in less if each.trial.settings["family"] in LATER]
    before, after = (Faithfulness().report(results, "cpu").tables for results in (earlier, both))
    assert [table.markdown() for table in after[: len(before)]] == [table.markdown() for table in before]
    assert len(after) > len(before)
    assert Faithfulness().claims(both) == Faithfulness().claims(earlier)
    rows = Faithfulness().compared(both).cells()
    assert {row[2] for row in rows} == {"–", "+0.000 (+0.000 to +0.000)"}


def test_the_best_method_stands_first_and_each_is_named_where_it_is_furthest_behind():
    def scores(network, method, _):
        return {"DeepLift": 0.6, "shares": 0.4 if network == COMPARED[1] else 0.55}.get(method)

    rows = Faithfulness().compared(faithful(scores)).cells()
    assert rows[0][0] == "DeepLift"
    assert rows[0][4] == "–"
    (shares,) = (row for row in rows if row[0] == "shares")
    assert shares[4] == f"{COMPARED[1]}: -0.200 to DeepLift"
    assert rows.index(shares) == 1


@pytest.mark.slow
def test_a_method_that_some_networks_lack_is_compared_on_the_others_and_has_a_reason():
    """LRP scores .1 more where secant scores .1 less than elsewhere: its mean alone would hide that it is better."""

    def scores(network, method, _):
        if method == "LRP":
            return 0.5
        return 0.4 if "LSTM" in network else 0.6

    results = family(faithful(scores, without=lambda network, method: method == "LRP" and "GRU" in network), "sizes")
    row = Faithfulness().compared(results).cells()[-1]
    assert row[0] == "LRP"
    assert row[1] == "0.503, on 2 of 5 networks"
    assert row[2].startswith("+0.100")
    ((method, reason, networks),) = table_of(results, "Why a dash").cells()
    assert (method, reason) == ("LRP", "it needs an LSTM")
    assert networks.count("GRU") == 3
    assert "LSTM" not in networks
    assert not [table for table in Faithfulness().report(faithful(scores), "cpu").tables if "dash" in table.title]


def test_each_training_by_itself_says_where_the_default_is_below():
    """In the second training alone path scores .2 more, on every network; in the mean of the three .2 / 3 more."""
    later = faithful(lambda *_: None, lambda seed, method: 0.2 * (seed == 1 and method == "path"))
    rows = [row for row in table_of(later, "Of 8 networks").cells() if row[0] == "path"]
    assert [row[1:5] for row in rows] == [
        ["0", "0", "8", "0"], ["1", "0", "0", "8"], ["2", "0", "8", "0"], ["mean", "0", "0", "8"],
    ]  # fmt: skip
    assert rows[1][5].startswith(f"{COMPARED[0]}: -0.200; ")
    assert rows[3][5].startswith(f"{COMPARED[0]}: -0.067; ")
    assert rows[0][5] == "–"


@pytest.mark.slow
def test_an_expansion_is_chosen_on_dev_and_judged_on_test():
    """On one network dev prefers p = 1/2, on the others the default p; test says the opposite of dev."""

    def scores(network, method, split):
        at = {"shares(0.5)": 0.9 if network == COMPARED[0] else 0.2, "shares": 0.7}.get(method)
        return at if split == "dev" else {"shares(0.5)": 0.3}.get(method)

    rows = table_of(faithful(scores), "Choosing").cells()
    *single, each, one = rows
    assert [row[1] for row in single] == ["shares(0.5)"] + ["shares"] * (len(single) - 1)
    assert single[0][2] != "shares(0.5)"
    assert single[0][3] == "-0.200 (-0.200 to -0.200)"
    assert all(row[3] == "+0.000 (+0.000 to +0.000)" for row in single[1:])
    assert each[3] == "-0.050 (-0.050 to -0.050)"  # the mean over four networks
    assert one[:2] == ["one for all, by the mean", "shares"]


def test_every_choice_is_made_among_the_same_candidates():
    """What is no candidate is not chosen, however high it scores; what one network lacks is not chosen for all."""
    results = faithful(
        lambda _, method, __: {"zero": 0.95, "gates": 0.9}.get(method),
        without=lambda network, method: (network, method) == (COMPARED[0], "gates"),
    )
    chosen = [row[1] for row in table_of(results, "Choosing among").cells()]
    assert "gates" not in (chosen[0], chosen[-1])
    assert set(chosen[1:4]) == {"gates"}
    assert sum(table.title.startswith("Choosing") for table in Faithfulness().report(results, "cpu").tables) == 1


@pytest.mark.parametrize(("other", "same"), [("SST-2, GRU, last", True), ("Yelp, GRU both ways, last", False)])
def test_networks_that_explain_the_same_texts_get_the_same_resamples(other, same):
    """What one network scores more on a text the other scores less there: over both, no resample differs from 0."""
    pair, results = ("SST-2, LSTM, last", other), []
    for each in family(faithful(lambda *_: None), "sizes"):
        if (network := each.trial.settings["network"]) in pair:
            sign = 1 if network == pair[0] else -1
            methods = {name: dict(found) for name, found in each["methods"].items()}
            methods["shares"]["scores"] = [
                score + sign * (text % 11) for text, score in enumerate(methods["secant"]["scores"])
            ]
            results.append(Result(each.trial, {**each.values, "methods": methods}, 1.0, "", "", "", {}))
    mean, low, high = mean_difference(results, "shares", "secant")
    assert mean == pytest.approx(0)
    assert (high - low < 1e-9) is same
    assert all(high - low > 1e-3 for _, low, high in (difference(results, name, "shares", "secant") for name in pair))


def test_a_mean_over_networks_counts_each_network_once():
    """One network has half as many texts as the others."""
    results = family(
        faithful(lambda network, method, _: 0.6 if (network, method) == (IMDB, "shares") else None), "sizes"
    )
    counts = {result["texts"] for result in results}
    assert len(counts) == 2
    mean, low, high = mean_difference(results, "shares", "secant")
    assert mean == low == high == pytest.approx(0.1 / 5)


@pytest.fixture(scope="module")
def recorded():
    return collect(Faithfulness(), "cpu", ResultStore(ROOT / "results"))


def test_the_table_of_the_readme_is_that_of_the_results(recorded):
    table = Faithfulness().compared(recorded)
    assert markdown_table(table.columns, table.cells()) in (ROOT / "README.md").read_text()
    assert len(table.rows) <= 10


def test_the_readme_says_how_often_a_peer_ranks_words_better(recorded):
    """Of the networks of the first table: above, level and below by the intervals."""
    expected = []
    for ours in ("secant", "shares"):
        for rival in (IG, "DeepLift", "LRP"):
            first = family(recorded, "expansions") + family(recorded, "others")
            names = {each.trial.settings["network"] for each in first} - OVER_TRAINED.keys()
            known = [found for name in names if (found := difference(first, name, ours, rival))]
            better, worse = sum(high < 0 for _, _, high in known), sum(low > 0 for _, low, _ in known)
            expected.append((better, len(known), len(known) - better - worse, worse))
    section = (ROOT / "README.md").read_text().partition("## Compared")[2].partition("\n## ")[0]
    found = re.findall(r"(\d+) of (\d+) \((\d+) level, (\d+) worse\)", " ".join(section.split()))
    assert [tuple(map(int, each)) for each in found] == expected


def test_the_readme_says_what_finds_known_words():
    """The share of cases in which the highest words are those that decide, by value and by size."""
    results = collect(KnownTruth(), "cpu", ResultStore(ROOT / "results"))
    shown = {
        (name, column): number.shown_ours
        for name, column, number in KnownTruth().report(results, "cpu").tables[0].numbers()
    }
    value, size = (
        [shown[name, f"learned: {column}"] for name in ("shares", IG, "secant", "occlusion by <unk>")]
        for column in ("set", "set by size")
    )
    said = " ".join((ROOT / "README.md").read_text().split())
    assert f"in {value[0]} of the cases by `shares`, {value[1]} by integrated gradients, {value[2]} by `secant`" in said
    assert f"{value[3]} if one word at a time is replaced" in said
    assert f"without their signs, it is {size[1]} by integrated gradients and {size[0]} by `shares`" in said
