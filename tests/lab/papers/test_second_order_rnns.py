"""Second-order RNNs: the printed numbers, and what each item measures."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from unrolled.cells import recurrent
from unrolled.cells.parameter_budget import count_parameters
from unrolled.lab.data.datasets.dyck import DyckStrings
from unrolled.lab.models.brackets import dyck_rnn, fixed_brackets, learned_brackets
from unrolled.lab.papers.analyses.bracket_figures import pooled
from unrolled.lab.papers.analyses.equal_size_networks import UNITS
from unrolled.lab.papers.framework.experiment import Result, Trial, TrialSetup
from unrolled.lab.papers.framework.synthetic_corpora import words
from unrolled.lab.papers.second_order_rnns.choice_matrices import units_of_budget
from unrolled.lab.papers.second_order_rnns.dyck import DyckBrackets, gates
from unrolled.lab.papers.second_order_rnns.dyck_language_models import DyckLanguageModels
from unrolled.lab.papers.second_order_rnns.language import EqualParameters
from unrolled.lab.papers.second_order_rnns.partial import PUBLISHED, PartialSentences
from unrolled.lab.tasks.lm import LanguageModelling, WordModelSettings


def a_setup(tmp_path):
    return TrialSetup(tmp_path, None, tmp_path / "networks")


def a_result(trial, values):
    return Result(trial, values, 1.0, "2026-01-01", "a test", "a machine", {})


@pytest.mark.slow
def test_a_learned_stack_closes_every_bracket_and_one_that_has_not_learned_does_not(tmp_path):
    settings = {
        "model": "embeddings learned, e = 2",
        "depth": 3,
        "data": {"short": [1, 20], "long": [21, 40], "symbols": [3000, 600, 1200]},
        "architecture": {"embedding": 2},
    }
    learned, not_yet = (
        DyckBrackets().run(
            Trial("a test", {**settings, "training": {"batch": 16, "lr": rate, "epochs": 6, "seed": 0}}),
            replace(a_setup(tmp_path), folder=tmp_path / name),
        )
        for name, rate in (("one", 0.3), ("two", 1e-9))
    )
    assert learned["dev_wcpa"] == learned["test_wcpa"] == 1
    assert learned["converged"] <= 6
    assert set(learned["right"]) == {1.0}
    assert min(learned["gates"][:2]) > 0.5 > max(learned["gates"][2:])
    assert not_yet["dev_wcpa"] == 0
    assert not_yet["converged"] is None
    assert min(learned["distances"]) == 1
    assert learned["trained"] == 4 * 2 + 2 + (2 * 2 + 2)
    assert learned["distances"][-1] <= max(map(len, DyckStrings(2, 3, short=(1, 20), long=(21, 40)).read().test))


def test_the_gate_is_the_logistic_function_of_the_embeddings_product_with_w():
    model = dyck_rnn(learned_brackets(2, 3), 4)
    (weight,) = model.encoder.parameters()
    expected = [1 / (1 + torch.exp(-(weight[0] * vector).sum()).item()) for vector in model.embedding.weight]
    assert gates(model) == pytest.approx(expected, abs=2e-6)
    fixed = gates(dyck_rnn(fixed_brackets(2), 4))
    assert fixed[0] + fixed[2] == pytest.approx(1, abs=2e-6)  # 1 and -1
    model.encoder = torch.nn.LSTM(3, 4)
    assert gates(model) is None


def test_the_published_rows_are_those_of_tables_1_and_2():
    characters, text = (UNITS[unit].rows for unit in ("characters", "words"))
    assert (len(characters), len(text)) == (10, 6)
    assert sum(row.score for row in characters) == pytest.approx(13.572)
    assert sum(row.score for row in text) == pytest.approx(28.867)
    assert (sum(row.minutes for row in characters), sum(row.minutes for row in text)) == (1035, 125)
    assert (sum(row.epochs for row in characters), sum(row.epochs for row in text)) == (192, 216)
    assert (sum(row.hidden for row in characters), sum(row.hidden for row in text)) == (10346, 710)
    assert min(characters, key=lambda row: row.score).title == "LSTM, 2 layers"
    assert min(text, key=lambda row: row.score).title == "LSTM, 2 layers"


def test_all_but_two_published_sizes_have_the_stated_number_of_parameters():
    for known in UNITS.values():
        for row in known.rows:
            size = count_parameters(row.cell, known.embedding, row.hidden, row.layers, vocabulary=known.types)
            agrees = abs(size.parameters / known.budget - 1) < 0.01
            assert agrees == (row.title not in {"mRNN", "mLSTM"}), row


@pytest.mark.parametrize("encoder", ["rnn", "lstm", "mmlstm"])
def test_the_count_of_parameters_is_that_of_the_model_that_is_trained(encoder):
    architecture = WordModelSettings(encoder=encoder, hidden=7, embedding=5, layers=2, tied=False)
    task = LanguageModelling.from_corpus(words((20, 5, 5)), architecture)
    cell = "elman" if encoder == "rnn" else encoder
    size = count_parameters(cell, 5, 7, 2, vocabulary=len(task.vocabulary))
    assert sum(parameter.numel() for parameter in task.build().parameters()) == size.parameters


def test_networks_of_related_work_have_our_numbers_alone():
    values = {"parameters": 4e6, "seconds": 10.0, "epochs": 2, "best_epoch": 2, "hidden": 9}
    values |= {"test_bpc": 2.0, "test_loss": 5.0}
    trials = EqualParameters().trials("day")
    report = EqualParameters().report([a_result(trial, values) for trial in trials], "day")
    rows = {row[0]: row[1:] for row in report.tables[0].cells()}
    assert rows["characters, MI-LSTM"][1:] == ["5.00", "2", "2.000"]
    assert rows["characters, LSTM"][1:] == ["5.00 (143.33)", "2 (18)", "2.000 (1.308)"]
    assert rows["words, LSTM"][1:] == ["5.00 (18.18)", "2 (33)", "5.000 (4.816)"]
    assert not any("MI-" in row[0] for row in report.tables[-1].cells())  # no published sizes to count
    for scale in EqualParameters.scales:
        assert sum("MI-LSTM, seed 0" in trial.label for trial in EqualParameters().trials(scale)) == 2
    for draw in report.figures.values():
        labels = [label.get_text() for panel in draw().axes for label in panel.get_yticklabels()]
        assert labels.count("tensor RNN") == 2


def test_table_3_is_transcribed_and_its_best_is_the_deep_multi_matrix_network():
    assert sum(score for scores in PUBLISHED.values() for score in scores.values()) == pytest.approx(17.451)
    assert all(min(scores, key=scores.get) == "mmLSTM, 2 layers" for scores in PUBLISHED.values())


def test_a_cut_leaves_less_to_learn_from(tmp_path):
    experiment = PartialSentences()
    trials = [trial for trial in experiment.trials("smoke") if trial.settings["model"] == "LSTM"]
    read = [
        experiment.run(trial, replace(a_setup(tmp_path), folder=tmp_path / f"{trial.settings['cut']}"))["characters"]
        for trial in (trials[0], trials[-1])
    ]
    assert read[0] < read[1]
    assert read[0] <= 25 * trials[0].settings["lines"][0]
    again = experiment.run(trials[0], replace(a_setup(tmp_path), folder=tmp_path / "25"))  # it is found where it ended
    assert again["characters"] == read[0]


@pytest.mark.parametrize("cell", ["mmlstm", "mmrnn"])
def test_more_choice_matrices_leave_fewer_units_in_networks_of_equal_size(cell):
    def parameters(units, choices):
        network = recurrent(cell, 8, units, choices=choices)
        return sum(each.numel() for each in network.parameters()) + 20 * (8 + units + 1)

    found = {choices: units_of_budget(cell, choices, 8, 20, budget=4000) for choices in (1, 2, 4, 8)}
    for choices, units in found.items():
        best = min(range(1, 80), key=lambda each: abs(parameters(each, choices) - 4000))
        assert units == best
    assert sorted(found.values(), reverse=True) == list(found.values())


def test_by_all_symbols_even_the_automaton_is_right_only_where_no_bracket_may_open(tmp_path):
    """Where one may, strings go on with an opening bracket as often as with the closing one."""
    experiment = DyckLanguageModels()
    (trial, *_) = (each for each in experiment.trials("smoke") if each.settings["model"] == "the automaton")
    trial = replace(trial, settings={**trial.settings, "data": {"symbols": [600, 20_000, 300]}})
    found = experiment.run(trial, a_setup(tmp_path))

    strings = DyckStrings(2, 4, symbols=(600, 20_000, 300)).read().dev
    forced, closed, opened = {}, 0, 0
    for string in strings:
        open_places = []
        for place, bracket in enumerate(string):
            if bracket < 2:
                opened += 0 < len(open_places) < 4
                open_places.append(place)
            else:
                closed += len(open_places) < 4
                forced.setdefault(place - open_places[-1], []).append(len(open_places) == 4)
                open_places.pop()
    assert closed / (closed + opened) == pytest.approx(0.5, abs=0.02)
    shares = [sum(each) / len(each) for each in forced.values()]
    assert found["all_wcpa"] == min(shares) == 0.0
    assert found["all_by_distance"] == pytest.approx(sum(shares) / len(shares))
    assert found["all_by_distance"] > 0
    assert found["closing_wcpa"] == found["closing_by_distance"] == 1.0


def test_a_language_model_of_brackets_is_measured_by_both_probabilities(tmp_path):
    experiment = DyckLanguageModels()
    trial = experiment.trials("smoke")[0]
    architecture = {"embedding": 8, "hidden": 24, "predict": "next"}
    training = {"batch": 16, "lr": 0.02, "epochs": 6, "seed": 0}
    data = {"short": [1, 20], "long": [21, 40], "symbols": [6000, 600, 300]}
    settings = {**trial.settings, "depth": 2, "data": data, "architecture": architecture, "training": training}
    found = experiment.run(replace(trial, settings=settings), a_setup(tmp_path))
    assert found["closing_wcpa"] == found["dev_wcpa"] > 0.5  # it has learned which bracket closes
    assert found["all_by_distance"] < 0.5 < found["closing_by_distance"]
    claims = experiment.claims([a_result(experiment.trials("smoke")[0], found)])
    assert list(claims.values()) == [False, True]


def test_bins_of_distances_keep_their_worst_and_leave_out_those_of_few_brackets() -> None:
    (trial, *_) = DyckBrackets().trials("smoke")
    distances = [*range(1, 38, 2), 41, 57, 133]  # 39 to 57 has 10 odd distances, of which 2 occur
    right = [1.0] * len(distances)
    right[distances.index(31)] = 0.25
    bins, means, worst = pooled(a_result(trial, {"distances": distances, "right": right}))
    assert bins == [1, 3, 5, 7, 10, 15, 22, 32]
    assert worst == [100] * 7 + [25]
    assert means == [100] * 7 + [pytest.approx(87.5)]
    every = [*range(1, 58, 2)]
    assert pooled(a_result(trial, {"distances": every, "right": [1.0] * len(every)}))[0][-1] == 48
