"""One writer a run: whoever comes second is told who writes, and readers never see half a state."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import signal
import socket
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from forked_processes import exit_code, forked
from toy_tasks import DATA, classify, settings, told
from unrolled.errors import FileError, UsageError
from unrolled.lab.training.callbacks import Callback
from unrolled.lab.training.engine import resume, train
from unrolled.lab.training.run_folder import load_run
from unrolled.lab.training.run_lock import LOCK, RunLock
from unrolled.lab.training.run_names import partial_name

CORPUS = told()
SHORT = settings(epochs=2, checkpoint_every=3)
WRITER = rf"is being written by process {os.getpid()} on {socket.gethostname()}: wait until it has ended, or stop it"


class At(Callback):
    """Does something after a step, once."""

    def __init__(self, action, step=3):
        self.action, self.step = action, step

    def on_step(self, step):
        if step.number == self.step:
            self.action()


def learn(folder, callback=None, force=False, **changes):
    chosen = SHORT.model_copy(update=changes)
    return train(classify(CORPUS), CORPUS, chosen, folder, data=DATA, callback=callback, force=force)


def stopped(folder):
    """A run that was interrupted after its fourth step."""

    def stop():
        raise InterruptedError

    with pytest.raises(InterruptedError):
        learn(folder, At(stop, 4))
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return learn(tmp_path_factory.mktemp("whole") / "run")


def files(folder):
    return {name: (folder / name).read_bytes() for name in ("weights.safetensors", "log.jsonl", "log.csv")}


@pytest.mark.parametrize("second", ["resume", "train", "force"])
def test_the_second_writer_is_refused_and_the_first_ends_as_if_alone(tmp_path, whole, second):
    refused = []

    def come_second():
        again = {
            "resume": lambda: resume(tmp_path / "run", CORPUS),
            "train": lambda: learn(tmp_path / "run"),
            "force": lambda: learn(tmp_path / "run", force=True),
        }
        with pytest.raises(UsageError) as caught:
            again[second]()
        refused.append(str(caught.value))

    learn(tmp_path / "run", At(come_second))
    (message,) = refused
    assert re.search("already exists" if second == "train" else WRITER, message)
    assert files(tmp_path / "run") == files(whole.folder)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert not (tmp_path / "run" / LOCK).exists()


def test_two_trainings_into_one_folder_at_once(tmp_path):
    """Two threads create the same run at the same moment: one trains, the other is refused, whoever is first."""
    for attempt in range(5):
        ends, gate = [], threading.Barrier(2)

        def begin(folder=tmp_path / str(attempt), ends=ends, gate=gate):
            gate.wait()
            lock = None
            try:
                folder.mkdir(exist_ok=True)
                lock = RunLock.acquire(folder)
                ends.append("writes")
            except UsageError as error:
                ends.append(str(error))
            gate.wait()
            if lock:
                lock.release()

        threads = [threading.Thread(target=begin) for _ in range(2)]
        [each.start() for each in threads]
        [each.join() for each in threads]
        assert sorted(end == "writes" for end in ends) == [False, True]
        assert re.search(WRITER, next(end for end in ends if end != "writes"))


@pytest.mark.parametrize("force", [False, True])
def test_a_run_that_another_process_is_creating_is_called_by_its_own_name(tmp_path, force):
    creating = RunLock.acquire_new(partial_name(tmp_path / "run"))
    with pytest.raises(UsageError, match=f"^{re.escape(str(tmp_path / 'run'))} {WRITER}") as caught:
        learn(tmp_path / "run", force=force)
    assert caught.value.in_use
    creating.release()
    assert not caught.value.in_use


def test_two_processes_that_resume_one_run_at_once(tmp_path, whole):
    stopped(tmp_path / "run")
    children = [forked(lambda: resume(tmp_path / "run", CORPUS) and 0) for _ in range(3)]
    codes = sorted(map(exit_code, children))
    assert codes[0] == 0
    assert set(codes) <= {0, 3}  # who comes after the end finds the run finished
    assert files(tmp_path / "run") == files(whole.folder)


def test_the_lock_dies_with_its_process_and_a_stale_file_locks_nothing(tmp_path, whole):
    stopped(tmp_path / "run")

    def die():
        RunLock.acquire(tmp_path / "run")
        os.kill(os.getpid(), signal.SIGKILL)

    assert exit_code(forked(die)) == -signal.SIGKILL
    assert (tmp_path / "run" / LOCK).exists()
    resume(tmp_path / "run", CORPUS)
    assert files(tmp_path / "run") == files(whole.folder)


def test_a_forked_child_does_not_keep_the_lock_of_its_parent(tmp_path):
    reading, writing = os.pipe()
    ready, is_ready = os.pipe()

    def hold():
        _lock = RunLock.acquire(tmp_path)
        forked(lambda: os.write(is_ready, b".") and os.read(reading, 1) and 0)  # lives on when its parent is killed
        signal.pause()

    parent = forked(hold)
    os.read(ready, 1)
    try:
        with pytest.raises(UsageError):
            RunLock.acquire(tmp_path)
        os.kill(parent, signal.SIGKILL)
        assert exit_code(parent) == -signal.SIGKILL
        RunLock.acquire(tmp_path).release()
    finally:
        os.write(writing, b".")


def test_the_lock_is_released_however_a_training_ends(tmp_path):
    stopped(tmp_path / "run")
    RunLock.acquire(tmp_path / "run").release()
    resume(tmp_path / "run", CORPUS)
    RunLock.acquire(tmp_path / "run").release()


def test_a_copy_of_a_run_that_is_being_written_is_a_run_of_its_own(tmp_path, whole):
    copies = []
    learn(tmp_path / "run", At(lambda: copies.append(shutil.copytree(tmp_path / "run", tmp_path / "copy"))))
    resume(tmp_path / "copy", CORPUS)
    assert files(tmp_path / "copy") == files(whole.folder)


@pytest.mark.parametrize("how", ["moved", "deleted", "replaced"])
def test_a_folder_that_goes_away_while_it_is_trained_stops_the_training(tmp_path, whole, how):
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"

    def act():
        run.rename(elsewhere) if how == "moved" else shutil.rmtree(run)
        if how == "replaced":
            stopped(run)

    with pytest.raises(FileError, match="was replaced by another" if how == "replaced" else "was moved or deleted"):
        learn(run, At(act, 4))
    if how != "deleted":
        place = elsewhere if how == "moved" else run
        resume(place, CORPUS)
        assert files(place) == files(whole.folder)


def test_a_symbolic_link_is_the_folder_that_it_names(tmp_path):
    stopped(tmp_path / "run")
    (tmp_path / "link").symlink_to("run")
    lock = RunLock.acquire(tmp_path / "run")
    with pytest.raises(UsageError, match="is being written by"):
        resume(tmp_path / "link", CORPUS)
    lock.release()


def test_a_dangling_link_is_no_place_for_a_run(tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(FileError, match="already exists and is not a run folder"):
        learn(tmp_path / "link")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission_is_refused_and_read(tmp_path):
    stopped(tmp_path / "run")
    (tmp_path / "run").chmod(0o555)
    with pytest.raises(FileError, match="cannot be written"):
        resume(tmp_path / "run", CORPUS)


class TestWithoutLocks:
    """A file system that has no locks: the note decides."""

    @pytest.fixture(autouse=True)
    def no_locks(self, monkeypatch):
        def missing(*_):
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

        monkeypatch.setattr(fcntl, "flock", missing)

    def test_a_process_that_runs_is_the_writer(self, tmp_path):
        lock = RunLock.acquire(tmp_path)
        with pytest.raises(UsageError, match=WRITER + "; if it does not, remove .*lock"):
            RunLock.acquire(tmp_path)
        lock.release()
        RunLock.acquire(tmp_path).release()

    def test_a_process_that_was_killed_is_not(self, tmp_path):
        assert exit_code(forked(lambda: RunLock.acquire(tmp_path) and os.kill(os.getpid(), signal.SIGKILL))) < 0
        assert (tmp_path / LOCK).exists()
        RunLock.acquire(tmp_path).release()

    def test_a_process_on_another_machine_counts_as_running(self, tmp_path):
        (tmp_path / LOCK).write_text('{"host": "elsewhere\\u001b[2J", "process": 1, "started": 5}')
        with pytest.raises(UsageError, match=r"process 1 on elsewhere\[2J: wait"):
            RunLock.acquire(tmp_path)

    def test_a_later_process_with_the_same_number_is_another(self, tmp_path):
        (tmp_path / LOCK).write_text(f'{{"host": "{socket.gethostname()}", "process": {os.getpid()}, "started": 1}}')
        RunLock.acquire(tmp_path).release()


def test_a_note_of_nonsense_is_not_believed(tmp_path):
    with (tmp_path / LOCK).open("w") as file:
        file.write("[" * 5000)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="is being written by another process: wait"):
            RunLock.acquire(tmp_path)


def test_a_folder_that_goes_while_it_is_listed_is_read_again(tmp_path, monkeypatch):
    learn(tmp_path / "run", epochs=1)
    whole, listed = Path.iterdir, []

    def goes(folder):
        listed.append(folder)
        if len(listed) <= 2:
            raise FileNotFoundError(2, "No such file or directory", str(folder))
        return whole(folder)

    monkeypatch.setattr(Path, "iterdir", goes)
    assert load_run(tmp_path / "run").metrics
    assert len(listed) > 0


@pytest.mark.slow
def test_an_earlier_run_that_was_being_replaced_is_put_back(tmp_path, whole):
    stopped(tmp_path / "run")
    (tmp_path / "run").rename(tmp_path / ".run.replaced")  # what a kill between two renames leaves
    with pytest.raises(FileError, match=r"its replacement was interrupted; `unrolled resume` puts the earlier"):
        load_run(tmp_path / "run")
    resume(tmp_path / "run", CORPUS)
    assert files(tmp_path / "run") == files(whole.folder)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_name_so_long_that_the_hidden_ones_are_too_long_is_refused_or_works(tmp_path):
    stopped(tmp_path / ("x" * 245))  # .x….replaced has 255 characters
    resume(tmp_path / ("x" * 245), CORPUS)
    assert load_run(tmp_path / ("x" * 245)).metrics["epochs"] == 2
    with pytest.raises(FileError, match="cannot be written: File name too long"):
        learn(tmp_path / ("x" * 250))


def test_a_folder_that_is_removed_while_it_is_made_is_made_again(tmp_path, monkeypatch):
    made, gone = Path.mkdir, Mock(side_effect=[FileExistsError(errno.EEXIST, "", str(tmp_path / "run")), None])
    monkeypatch.setattr(Path, "mkdir", lambda *args, **options: gone() or made(*args, **options))
    RunLock.acquire_new(tmp_path / "run").release()
    monkeypatch.undo()
    with pytest.raises(FileExistsError):  # the control: nobody removes what stands there
        RunLock.acquire_new(Path(__file__))
