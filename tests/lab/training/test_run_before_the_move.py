"""A run folder that version 0.1.0 wrote before the package was split is read as it was then.

The old code printed the ledger below for this run and this sentence.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unrolled.lab.training.run_folder import load_run

RUN = Path(__file__).parent / "run_before_the_move"
SENTENCE = "the film is not good"
LEDGER = {"ngrams": -0.237, "initial": 0.0, "bias": 0.246, "remainder": 0.0, "logit": 0.009}


def test_it_loads() -> None:
    run = load_run(RUN)
    assert (run.task.name, run.task.architecture.encoder, run.settings.epochs) == ("classify", "gru", 3)
    assert len(run.history) == run.metrics["epochs"] == 3


def test_the_command_line_explains_it_as_before(unrolled, tmp_path: Path) -> None:
    predicted = load_run(RUN).predict([SENTENCE])[0]
    done = unrolled("explain", RUN, SENTENCE, "--target", predicted, "--json", tmp_path / "x.json")
    assert (done.status, done.err) == (0, "")
    (record,) = json.loads((tmp_path / "x.json").read_text())["accounts"]
    assert record["ledger"] == pytest.approx(LEDGER, abs=5e-4)
