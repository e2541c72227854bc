"""A training that is stopped just after its run has replaced an earlier one: the new run is the only one."""

from __future__ import annotations

import shutil

import pytest

from toy_tasks import DATA, classify, settings, told
from unrolled.errors import FileError
from unrolled.lab.training import run_creation
from unrolled.lab.training.engine import resume, train
from unrolled.lab.training.run_folder import load_run

CORPUS = told()


def learn(folder, seed=0, force=False):
    return train(classify(CORPUS), CORPUS, settings(epochs=1, seed=seed), folder, data=DATA, force=force)


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
