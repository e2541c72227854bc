"""A run says where it was trained, and a resumed one computes as before or says that it does not."""

from __future__ import annotations

import json
import subprocess

import pytest
import torch

import unrolled
from toy_tasks import DATA, classify, settings, told
from unrolled.errors import DataError
from unrolled.lab.training import environment, versions
from unrolled.lab.training.callbacks import Callback
from unrolled.lab.training.engine import resume, train
from unrolled.lab.training.environment import Environment
from unrolled.lab.training.run_config import load_config
from unrolled.lab.training.versions import find_commit, package_version

CORPUS = told()


class Watch(Callback):
    def __init__(self, stop=None):
        self.stop, self.threads, self.lines = stop, set(), []

    def on_step(self, step):
        self.threads.add(torch.get_num_threads())
        if step.number == self.stop:
            raise InterruptedError

    def on_message(self, text):
        self.lines.append(text)


@pytest.fixture
def stopped(tmp_path):
    with pytest.raises(InterruptedError):
        train(classify(CORPUS), CORPUS, settings(epochs=1), tmp_path / "run", data=DATA, callback=Watch(2))
    return tmp_path / "run"


def edit(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "checksum": None, **changes}))


def test_a_run_names_threads_processor_versions_and_the_commit(stopped):
    config = json.loads((stopped / "config.json").read_text())
    assert config["threads"] == torch.get_num_threads()
    assert config["processor"]
    assert config["versions"]["torch"]
    assert config["versions"]["unrolled"] == package_version()
    assert Environment.from_record(config) == Environment.of_this_process()


def test_a_development_version_comes_from_git(monkeypatch):
    commit = find_commit()
    if commit is None:
        assert package_version() == unrolled.__version__
        return
    done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    assert done.stdout.startswith(commit.rstrip("+"))
    assert package_version().startswith(f"{unrolled.__version__}+g{commit.rstrip('+')}")
    monkeypatch.setattr(versions, "find_commit", lambda: None)
    assert package_version() == unrolled.__version__


def test_the_same_environment_is_resumed_in_silence(stopped):
    watch = Watch()
    resume(stopped, CORPUS, callback=watch)
    assert watch.lines == []
    assert "resumed" not in json.loads((stopped / "config.json").read_text())


def test_a_resumed_training_computes_with_as_many_threads_as_before(stopped, monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.setattr(environment, "_processors", lambda: before + 1)
    edit(stopped, threads=before + 1)
    watch = Watch()
    resume(stopped, CORPUS, callback=watch)
    assert watch.threads == {before + 1}
    assert torch.get_num_threads() == before
    assert watch.lines == [f"computing with {before + 1} thread(s), as before, so that the result is the same"]


def test_more_threads_than_the_machine_has_are_not_taken_and_that_is_said(stopped):
    edit(stopped, threads=10_000)
    watch = Watch()
    resume(stopped, CORPUS, callback=watch)
    assert watch.threads == {torch.get_num_threads()}
    (line,) = watch.lines
    assert line.startswith("the last bits of the weights may differ: 10000 threads before, ")


def test_another_library_or_processor_is_said_and_recorded(stopped):
    config = json.loads((stopped / "config.json").read_text())
    edit(stopped, processor="an abacus", versions={**config["versions"], "torch": "1.0"})
    watch = Watch()
    resume(stopped, CORPUS, callback=watch)
    (line,) = watch.lines
    assert "processor an abacus before" in line
    assert "torch 1.0 before, " in line
    (resumed,) = json.loads((stopped / "config.json").read_text())["resumed"]
    assert Environment.from_record(resumed) == Environment.of_this_process()
    assert load_config(stopped).environment.processor == "an abacus"


@pytest.mark.parametrize("changes", [{"threads": 0}, {"threads": "two"}, {"threads": True}, {"versions": [1]}])
def test_an_environment_of_nonsense_is_refused(stopped, changes):
    edit(stopped, **changes)
    with pytest.raises(DataError, match=r"config\.json: the environment is wrong"):
        resume(stopped, CORPUS)
