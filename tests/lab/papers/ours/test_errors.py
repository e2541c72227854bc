"""How errors of expansions accumulate: trials, and what the tables say."""

from __future__ import annotations

from unrolled.lab.papers.framework.experiment import Result
from unrolled.lab.papers.ours.errors import CELL_NAMES, AccumulatedErrors


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
