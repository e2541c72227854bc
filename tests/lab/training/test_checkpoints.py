"""Checkpoints that are damaged, missing or cannot be read for the moment, and which of them are kept."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import torch

from stopped_runs import SETTINGS, Recording, outcome, stopped
from toy_tasks import DATA, Carry, carry
from unrolled.errors import DataError, FileError
from unrolled.lab.training.checkpoints import Checkpoints
from unrolled.lab.training.engine import resume, train


def spoil(path, how):
    content = bytearray(path.read_bytes())
    if how == "one bit":
        content[-3] ^= 1
    path.write_bytes(content[: len(content) // 2] if how == "half" else b"" if how == "empty" else content)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["one bit", "half", "empty"])
def test_a_damaged_checkpoint_is_known_and_the_one_before_it_taken(text, whole, tmp_path, how):
    older, newer = stopped(text, tmp_path / "run")
    spoil(newer, how)
    watching = Recording()
    resume(tmp_path / "run", text, task_class=Carry, callback=watching)
    assert len(watching.notices) == 1
    assert f"{newer} is damaged: its checksum is not the one in its name" in watching.notices[0]
    assert watching.steps[0] == int(older.name.split("-")[1]) + 1
    assert outcome(tmp_path / "run") == outcome(whole.folder)


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.EACCES])
@pytest.mark.parametrize("age", ["older", "newer"])
def test_a_checkpoint_that_cannot_be_read_now_is_kept(text, whole, tmp_path, monkeypatch, number, age):
    older, newer = stopped(text, tmp_path / "run")
    unreadable, read = older if age == "older" else newer, Path.read_bytes
    before = {path: path.read_bytes() for path in (older, newer)}

    def fail(path):
        if path == unreadable:
            raise OSError(number, os.strerror(number))
        return read(path)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", fail)
        Checkpoints(tmp_path / "run" / "checkpoints").drop_damaged()
        if age == "newer":  # it is not passed over: the older one would take its place
            with pytest.raises(FileError, match=f"{os.strerror(number)}; make it readable, or move it away"):
                resume(tmp_path / "run", text, task_class=Carry)
    assert {path: path.read_bytes() for path in (older, newer)} == before
    spoil(unreadable, "one bit")
    Checkpoints(tmp_path / "run" / "checkpoints").drop_damaged()
    assert not unreadable.exists()
    resume(tmp_path / "run", text, task_class=Carry)
    assert outcome(tmp_path / "run") == outcome(whole.folder)


def test_a_checkpoint_beside_one_that_cannot_be_read_now_is_written_and_removes_no_best_weights(
    text, tmp_path, monkeypatch
):
    _, newer = stopped(text, tmp_path / "run")
    checkpoints, opened = Checkpoints(newer.parent), Path.open
    best = checkpoints.save_best({"weight": torch.ones(2)})

    def fail(path, *words):
        if path == newer:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(path, *words)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", fail)
        checkpoints.save(99, {"weight": torch.ones(2)}, {"best": None})
    assert (newer.parent / best).exists()
    checkpoints.save(100, {"weight": torch.ones(2)}, {"best": None})
    assert not (newer.parent / best).exists()


def test_without_a_whole_checkpoint_nothing_is_made_up(text, tmp_path):
    for path in stopped(text, tmp_path / "run"):
        spoil(path, "one bit")
    with pytest.raises(DataError, match="every checkpoint is damaged or missing"):
        resume(tmp_path / "run", text, task_class=Carry)


@pytest.mark.parametrize(("spoiled", "said"), [(True, "is damaged"), (False, "is missing")])
def test_damaged_best_weights_are_known_and_those_before_them_taken(text, whole, tmp_path, spoiled, said):
    def crash():
        raise InterruptedError

    # just after the second epoch, which was better than the first
    watching = Recording(whole.history[1].step + 1, crash)
    with pytest.raises(InterruptedError):
        train(carry(), text, SETTINGS, tmp_path / "run", data=DATA, callback=watching)
    best = sorted((tmp_path / "run" / "checkpoints").glob("best-*"), key=lambda path: path.stat().st_mtime_ns)
    assert len(best) == 2
    if spoiled:
        spoil(best[-1], "one bit")
    else:
        best[-1].unlink()
    watching = Recording()
    resume(tmp_path / "run", text, task_class=Carry, callback=watching)
    assert any(said in notice for notice in watching.notices)
    assert outcome(tmp_path / "run") == outcome(whole.folder)


def test_a_log_that_has_lost_lines_is_not_gone_on_with(text, tmp_path):
    stopped(text, tmp_path / "run")
    log = tmp_path / "run" / "log.jsonl"
    log.write_bytes(log.read_bytes()[:-5])
    with pytest.raises(DataError, match=r"log\.jsonl is damaged: it has \d+ bytes, but \d+ at the checkpoint"):
        resume(tmp_path / "run", text, task_class=Carry)


def test_two_checkpoints_are_kept_while_it_runs_and_one_afterwards(text, whole, tmp_path):
    steps = [int(path.name.split("-")[1]) for path in stopped(text, tmp_path / "run")]
    assert steps == [10, 14]
    resume(tmp_path / "run", text, task_class=Carry)
    names = [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()]
    assert [name[:14] for name in names] == [f"step-{whole.metrics['steps']:09}"]
