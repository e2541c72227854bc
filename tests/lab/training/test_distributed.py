"""Two processes that learn one batch together learn what one process learns from it."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from toy_tasks import Carry
from unrolled.lab.training.distributed import ProcessGroup
from unrolled.lab.training.run_folder import load_run

TESTS = Path(__file__).parents[2]
SCRIPT = TESTS / "lab" / "training" / "train_distributed.py"
TORCHRUN = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone")
JOBS = ("streams:plain", "texts:plain", "streams:dropout", "streams:stopped", "streams:resumed", "texts:diverges")


def with_folders(place, jobs):
    """A training that is resumed goes on in the folder of the one that was stopped."""
    folders = [place / job.replace("resumed", "stopped").replace(":", "-") for job in jobs]
    return [f"{job}:{folder}" for job, folder in zip(jobs, folders, strict=True)]


def start(place, jobs):
    """Start two of them by torchrun."""
    run(*TORCHRUN, SCRIPT, *with_folders(place, jobs))
    return place


def fork(place, jobs):
    """Start two of them as children of one process, which is quicker."""
    run(SCRIPT, "--fork", *with_folders(place, jobs))
    return place


def run(*command):
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def start_here(place, jobs):
    """Do them in this process alone, which has loaded everything."""
    threads = torch.get_num_threads()
    try:
        runpy.run_path(str(SCRIPT))["main"](with_folders(place, jobs))
    finally:
        torch.set_num_threads(threads)
    return place


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    return (fork if hasattr(os, "fork") else start)(tmp_path_factory.mktemp("together"), JOBS)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return start_here(tmp_path_factory.mktemp("alone"), ["streams:plain", "texts:plain", "narrow:plain"])


def said(place, name, how, rank, folder=None):
    return json.loads((place / f"{name}-{folder or how}.{how}.{rank}.json").read_text())


def weights(*where):
    return torch.tensor(said(*where)["weights"], dtype=torch.float64)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["streams", "texts"])
def test_two_processes_end_where_one_does(alone, together, name):
    check_same_end(alone, together, name)


def check_same_end(alone, together, name):
    one = weights(alone, name, "plain", None)
    first, second = (weights(together, name, "plain", rank) for rank in range(2))
    assert torch.equal(first, second)
    torch.testing.assert_close(first, one, rtol=0, atol=1e-9)
    lines = [(place / f"{name}-plain" / "log.jsonl").read_text().splitlines() for place in (alone, together)]
    for ours, theirs in zip(*(map(json.loads, each) for each in lines), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)
    assert json.loads((together / f"{name}-plain" / "config.json").read_text())["processes"] == 2


@pytest.mark.slow
def test_each_process_has_dropout_of_its_own(together):
    assert torch.equal(*(weights(together, "streams", "dropout", rank) for rank in range(2)))
    assert not torch.allclose(weights(together, "streams", "dropout", 0), weights(together, "streams", "plain", 0))
    tensors = load_file(next((together / "streams-dropout" / "checkpoints").iterdir()))
    assert not torch.equal(tensors["rank.0.generator.torch"], tensors["rank.1.generator.torch"])


@pytest.mark.slow
def test_sigterm_to_one_of_them_stops_all_and_all_go_on(together):
    for rank in range(2):
        stopped = said(together, "streams", "stopped", rank)
        assert stopped["code"] == 143
        assert "stopped and saved after step 5" in stopped["text"]
        resumed = weights(together, "streams", "resumed", rank, "stopped")
        assert torch.equal(resumed, weights(together, "streams", "dropout", rank))
    logs = [(together / f"streams-{how}" / "log.jsonl").read_bytes() for how in ("stopped", "dropout")]
    assert logs[0] == logs[1]


@pytest.mark.slow
def test_what_diverges_diverges_for_all(together):
    first, second = (said(together, "texts", "diverges", rank) for rank in range(2))
    assert first["code"] == second["code"] == 70
    assert first["text"] == second["text"]


@pytest.mark.slow
def test_torchrun_is_joined_by_the_engine_itself_and_one_process_reads_the_run(tmp_path, alone):
    """In processes of their own, which have not joined a group."""
    start(tmp_path, ["narrow:plain"])
    check_same_end(alone, tmp_path, "narrow")
    found = load_run(tmp_path / "narrow-plain", Carry)
    ours = torch.cat([each.flatten() for each in found.model.state_dict().values()])
    assert torch.equal(ours, weights(tmp_path, "narrow", "plain", 0))


@pytest.mark.slow
def test_groups_that_are_left_and_joined_again_are_joined_by_all(tmp_path):
    """The store of torch keeps the addresses of a group that was left: who comes first must not take them for new."""
    run(*TORCHRUN, TESTS / "lab" / "training" / "join_again.py", tmp_path)
    for rank in range(2):
        assert json.loads((tmp_path / f"{rank}.json").read_text()) == [[3, 0], [3, 2], [3, 4]]


def test_the_shares_are_the_batch(corpus, task):
    encoded = task.encode(corpus.train)
    batch = encoded.select(torch.arange(5))
    shares = [ProcessGroup(rank, 2, torch.device("cpu")).shard(batch) for rank in range(2)]
    assert [weight for _, weight in shares] == [1, 1]
    assert [len(share) for share, _ in shares] == [3, 2]
    both = torch.cat([share.lengths for share, _ in shares])
    assert sorted(both.tolist()) == sorted(batch.lengths.tolist())
    borrowed, weight = ProcessGroup(3, 4, torch.device("cpu")).shard(encoded.select(torch.arange(2)))
    assert (len(borrowed), weight) == (1, 0)
