"""Signals and a full disk: the training goes on where it was, and ends as if nothing had been."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from stopped_runs import SETTINGS, Recording, outcome, send, stopped
from toy_tasks import DATA, Carry, carry, classify, told
from unrolled.errors import DataError, FileError, StoppedError
from unrolled.lab.training import trainer
from unrolled.lab.training.engine import resume, train
from unrolled.lab.training.run_creation import finish_run_folder
from unrolled.lab.training.run_folder import load_run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGTERM, StoppedError), (signal.SIGINT, KeyboardInterrupt)], ids=["SIGTERM", "SIGINT"]
)
@pytest.mark.parametrize("at", [1, 8, 30])
def test_a_signal_ends_the_training_after_the_step_under_way_and_it_can_be_resumed(
    text, whole, tmp_path, number, error, at
):
    watching = Recording(at, send(number))
    before = signal.getsignal(number)
    with pytest.raises(
        error, match=rf"stopped and saved after step {at + 1}; go on with: unrolled resume .*run"
    ) as caught:
        train(carry(), text, SETTINGS, tmp_path / "run", data=DATA, callback=watching)
    # it came after step `at` had been made, so the next one is under way: that one is finished, and no other
    assert watching.steps == list(range(1, at + 2))
    assert getattr(caught.value, "exit_code", 143) == 143
    assert signal.getsignal(number) == before
    resume(tmp_path / "run", text, task_class=Carry)
    assert outcome(tmp_path / "run") == outcome(whole.folder)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_the_process_was_started_to_ignore_stops_no_training(text, whole, tmp_path, number):
    before = signal.signal(number, signal.SIG_IGN)
    try:
        run = train(carry(), text, SETTINGS, tmp_path / "run", data=DATA, callback=Recording(1, send(number)))
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)
    assert outcome(run.folder) == outcome(whole.folder)


@pytest.mark.slow
def test_the_last_step_of_an_epoch_is_a_step_like_others(text, whole, tmp_path):
    last = whole.history[0].step
    for at in (last - 1, last):
        folder = tmp_path / str(at)
        with pytest.raises(StoppedError):
            train(carry(), text, SETTINGS, folder, data=DATA, callback=Recording(at, send(signal.SIGTERM)))
        resume(folder, text, task_class=Carry)
        assert outcome(folder) == outcome(whole.folder)


@pytest.mark.parametrize("look", [1, 2, 4])
def test_a_signal_while_dev_or_test_is_looked_at_ends_the_look(text, whole, tmp_path, look):
    class Interrupted(Carry):
        looks = 0

        def compute_metrics(self, model, batches):
            self.looks += 1
            seen = []
            for batch in batches:
                seen.append(batch)
                if self.looks == look and len(seen) == 2:
                    os.kill(os.getpid(), signal.SIGTERM)
                assert self.looks != look or len(seen) < 3
            return super().compute_metrics(model, seen)

    task = Interrupted(carry().architecture)
    with pytest.raises(StoppedError):
        train(task, text, SETTINGS, tmp_path / "run", data=DATA)
    resume(tmp_path / "run", text, task_class=Carry)
    assert outcome(tmp_path / "run") == outcome(whole.folder)


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGTERM, StoppedError), (signal.SIGINT, KeyboardInterrupt)], ids=["SIGTERM", "SIGINT"]
)
def test_a_signal_while_the_results_are_written_is_obeyed_once_they_are(
    text, whole, tmp_path, monkeypatch, number, error
):
    def finish(*results):
        os.kill(os.getpid(), number)
        finish_run_folder(*results)

    monkeypatch.setattr(trainer, "finish_run_folder", finish)
    with pytest.raises(error, match=r"the training of .*run had ended"):
        train(carry(), text, SETTINGS, tmp_path / "run", data=DATA)
    assert outcome(tmp_path / "run") == outcome(whole.folder)
    assert not load_run(tmp_path / "run", Carry).unfinished


def test_a_second_ctrl_c_is_not_waited_for(text, tmp_path):
    def twice():
        send(signal.SIGINT)()
        send(signal.SIGINT)()

    watching = Recording(3, twice)
    with pytest.raises(KeyboardInterrupt):
        train(carry(), text, SETTINGS, tmp_path / "run", data=DATA, callback=watching)
    assert watching.steps == [1, 2, 3]


def test_a_training_in_another_thread_does_without_signals(text, whole, tmp_path):
    def work():
        train(carry(), text, SETTINGS, tmp_path / "run", data=DATA)

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) == before
    assert outcome(tmp_path / "run")["log.jsonl"] == outcome(whole.folder)["log.jsonl"]


class FullDisk:
    """Takes half of what is written to some file, and then no more."""

    def __init__(self, name, times):
        self.name, self.left, self.open, self.write = name, times, os.open, os.write
        self.files = {}

    def opening(self, path, *rest, **options):
        found = self.open(path, *rest, **options)
        self.files[found] = Path(path).name
        return found

    def writing(self, descriptor, content):
        if self.name in self.files.get(descriptor, ""):
            self.left -= 1
            if self.left == 0:
                return self.write(descriptor, bytes(content)[: len(content) // 2])
            if self.left < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.write(descriptor, content)


@pytest.mark.parametrize(
    ("name", "times"),
    [("step-", 2), ("step-", 6), ("best-", 1), ("log.jsonl", 4), ("log.csv", 4), ("weights.", 1), ("metrics.", 1)],
)
def test_a_full_disk_costs_nothing_but_the_steps_since_the_last_checkpoint(
    text, whole, tmp_path, monkeypatch, name, times
):
    disk = FullDisk(name, times)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", disk.opening)
        patch.setattr(os, "write", disk.writing)
        with pytest.raises(FileError, match=r"cannot write .*: No space left on device") as caught:
            train(carry(), text, SETTINGS, tmp_path / "run", data=DATA)
    assert caught.value.exit_code == 74
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.rglob("*.tmp"))
    resume(tmp_path / "run", text, task_class=Carry)
    assert outcome(tmp_path / "run") == outcome(whole.folder)


def test_a_disk_that_is_full_at_the_beginning_is_left_as_it_was(text, tmp_path, monkeypatch):
    disk = FullDisk("step-", 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", disk.opening)
        patch.setattr(os, "write", disk.writing)
        with pytest.raises(FileError, match="No space left"):
            train(carry(), text, SETTINGS, tmp_path / "run", data=DATA)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def tiny_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs leave to mount a tmpfs")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_disk_that_is_full_for_real(text, whole, tiny_disk):
    ballast = tiny_disk / "ballast"

    def fill():
        with pytest.raises(OSError, match="No space left"):
            ballast.write_bytes(bytes(160_000))

    with pytest.raises(FileError, match="No space left on device"):
        train(carry(), text, SETTINGS, tiny_disk / "run", data=DATA, callback=Recording(7, fill))
    assert not list(tiny_disk.rglob("*.tmp"))
    ballast.unlink()
    resume(tiny_disk / "run", text, task_class=Carry)
    assert outcome(tiny_disk / "run") == outcome(whole.folder)


def test_a_run_whose_training_is_not_over_is_read_as_it_stood_at_its_best_epoch(text, whole, tmp_path):
    stopped(text, tmp_path / "early", 3)
    with pytest.raises(DataError, match=r"no epoch has ended yet \(step 4\)"):
        load_run(tmp_path / "early", Carry)
    stopped(text, tmp_path / "run", whole.history[0].step + 2)
    found = load_run(tmp_path / "run", Carry)
    assert found.history == whole.history[:1]
    assert found.metrics == {f"dev_{name}": value for name, value in whole.history[0].dev.items()}
    task, encoded = carry(), carry().encode(text.dev)
    measured = task.compute_metrics(found.model, [encoded.select(which) for which in encoded.plan(2)])
    assert measured["perplexity"] == pytest.approx(found.metrics["dev_perplexity"])


def test_classifiers_resume_from_a_folder_that_has_moved(tmp_path):
    text = told()
    settings = SETTINGS.model_copy(update={"batch": 16})
    with pytest.raises(StoppedError):
        train(classify(text), text, settings, tmp_path / "a", data=DATA, callback=Recording(9, send(signal.SIGTERM)))
    (tmp_path / "a").rename(tmp_path / "b")
    resume(tmp_path / "b", text)
    train(classify(text), text, settings, tmp_path / "whole", data=DATA)
    assert outcome(tmp_path / "b") == outcome(tmp_path / "whole")
