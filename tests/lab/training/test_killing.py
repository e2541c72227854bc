"""kill -9 at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


LEAST = {"quick": {"chosen": 8, "killed": 0}, "full": {"chosen": 60, "killed": 10}}
MOMENTS = [
    "before open .step.safetensors.tmp",
    "half write .step.safetensors.tmp",
    "before fsync .step.safetensors.tmp",
    "before replace .step.safetensors.tmp",
    "after replace .step.safetensors.tmp",
    "before fsync checkpoints",
    "before unlink step.safetensors",
    "half write .best.safetensors.tmp",
    "after replace .best.safetensors.tmp",
    "half write log.jsonl",
    "half write log.csv",
    "before ftruncate log.jsonl",
    "before rename .run.partial",
    "half write .weights.safetensors.tmp",
    "half write .metrics.json.tmp",
    "after replace .metrics.json.tmp",
]


pytestmark = pytest.mark.slow


# The full extent takes minutes; CI kills at a tenth of the campaign's moments, which are drawn from the same calls.
@pytest.fixture(scope="module", params=["quick", pytest.param("full", marks=pytest.mark.fuzz)])
def report(request, tmp_path_factory):
    place = tmp_path_factory.mktemp("killed")
    found = subprocess.run(
        [sys.executable, TESTS / "lab" / "training" / "killing.py", place, request.param],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    return {"extent": request.param, **json.loads(found.stdout)}


def same(outcome):
    return all(outcome[name] for name in ("weights.safetensors", "log.jsonl", "log.csv"))


def test_killed_at_a_chosen_moment_a_training_ends_as_if_it_had_not_been(report):
    assert len(report["chosen"]) >= LEAST[report["extent"]]["chosen"]
    for outcome in report["chosen"]:
        assert outcome["killed"] == -signal.SIGKILL, outcome
        assert outcome["resumed"] == 0, outcome
        assert same(outcome), outcome
        assert outcome["left"] == [], outcome


def test_the_moments_are_of_every_kind(report):
    among = {each for each in MOMENTS if any(outcome["moment"].startswith(each) for outcome in report["chosen"])}
    assert len(among) >= 8
    if report["extent"] == "full":
        assert among == set(MOMENTS)


def test_killed_twice_at_random_a_training_ends_as_if_it_had_not_been(report):
    assert sum(outcome["killed"] for outcome in report["random"]) >= LEAST[report["extent"]]["killed"]
    assert report["random"]
    for outcome in report["random"]:
        assert outcome["resumed"] == 0, outcome
        assert same(outcome), outcome


def test_the_comparison_notices_what_a_checkpoint_must_not_forget(report):
    assert same(report["forgetful"].pop("nothing"))
    for outcome in report["forgetful"].values():
        assert outcome["killed"] == -signal.SIGKILL
        assert outcome["resumed"] == 0
        assert not outcome["weights.safetensors"]
        assert not outcome["log.jsonl"]
