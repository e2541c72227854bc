"""A run that replaces an earlier one: readers see one of the two, and once it has, the new run is the only one."""

from __future__ import annotations

import shutil
import time

import pytest

from forked_processes import exit_code, forked
from toy_tasks import DATA, classify, settings, told
from unrolled.errors import FileError, UnrolledError
from unrolled.lab.training import run_creation
from unrolled.lab.training.engine import resume, train
from unrolled.lab.training.run_folder import load_run

CORPUS = told()


def learn(folder, force=False, **changes):
    return train(classify(CORPUS), CORPUS, settings(**{"epochs": 1, **changes}), folder, data=DATA, force=force)


@pytest.mark.parametrize(("raised", "told"), [(KeyboardInterrupt, KeyboardInterrupt), (OSError, FileError)])
def test_an_earlier_run_that_has_been_replaced_does_not_come_back(tmp_path, monkeypatch, raised, told):
    folder = tmp_path / "run"
    learn(folder)

    def stop(_):
        raise raised

    with monkeypatch.context() as patched:
        patched.setattr(run_creation, "sync_folder", stop)
        with pytest.raises(told):
            learn(folder, seed=1, force=True)
    assert {path.name for path in tmp_path.iterdir()} == {"run", ".run.replaced"}
    assert resume(folder, CORPUS).settings.seed == 1  # in the same process: the lock has been given back
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    shutil.rmtree(folder)
    learn(folder, seed=2)
    assert load_run(folder).settings.seed == 2


@pytest.mark.slow
def test_readers_see_one_state_while_a_run_is_trained_and_replaced_again_and_again(tmp_path):
    """A child trains run after run into one folder; every reading is of one whole training."""
    run = tmp_path / "run"
    learn(run)
    last = time.monotonic() + 3.0

    def write():
        seed = 1
        while time.monotonic() < last:
            learn(run, force=True, seed=seed, epochs=2, checkpoint_every=1)
            seed += 1
        return 0

    child, seen, refused = forked(write), set(), []
    while time.monotonic() < last:
        try:
            found = load_run(run)
        except UnrolledError as error:
            refused.append(str(error))
            continue
        assert len(found.history) == max(epoch.number for epoch in found.history)
        seen.add((found.settings.seed, len(found.history)))
    assert exit_code(child) == 0
    assert len(seen) > 1
    assert all("no epoch has ended yet" in message for message in refused)
