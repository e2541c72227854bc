"""A training that was stopped: what uses the run says that it has not ended, and how to go on."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from unrolled.atomic_write import write_fully
from unrolled.lab.data.corpus import Classification, Example
from unrolled.lab.models.settings import PooledSettings
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.training.callbacks import Callback
from unrolled.lab.training.data_settings import DataSettings
from unrolled.lab.training.engine import train
from unrolled.lab.training.settings import TrainingSettings
from unrolled.laboratory import load


class Stop(Callback):
    def on_step(self, step):
        if step.number == 5:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    examples = tuple(Example(("good", "bad", "film")[k % 3 :], k % 2) for k in range(6))
    corpus = Classification(name="told", labels=("no", "yes"), train=examples, dev=examples, test=examples)
    task = Classify.from_corpus(corpus, PooledSettings(hidden=4, embedding=4))
    settings = TrainingSettings(epochs=3000, batch=3, checkpoint_every=1, device="cpu")
    folder = tmp_path_factory.mktemp("runs") / "my run"
    data = DataSettings(data=("told",))
    with pytest.raises(KeyboardInterrupt):
        train(task, corpus, settings, folder, data=data, callback=Stop())
    whole = folder.with_name("whole")
    train(task, corpus, settings.model_copy(update={"epochs": 1}), whole, data=data)
    return folder


SAID = "has not ended (step 4, in epoch 2 of 3,000): these are the weights of epoch "


def test_commands_and_load_name_the_command_that_goes_on(unrolled, folder, tmp_path):
    (tmp_path / "a.tsv").write_text("good film\tyes\n")
    (tmp_path / "a.txt").write_text("good film\n")
    for words in (
        ("explain", "{}", "good film"),
        ("evaluate", "{}", "--data", tmp_path / "a.tsv"),
        ("predict", "{}", tmp_path / "a.txt"),
    ):
        done = unrolled(*(folder if word == "{}" else word for word in words))
        assert (done.status, done.err.count(SAID)) == (0, 1), done.err
        assert f"unrolled resume '{folder}'" in done.err
        whole = unrolled(*(folder.with_name("whole") if word == "{}" else word for word in words))
        assert (whole.status, "has not ended" in whole.err) == (0, False), whole.err
    with pytest.warns(UserWarning, match="unrolled resume") as caught:
        load(folder)
    assert [SAID in str(each.message) for each in caught] == [True]
    load(folder.with_name("whole"))


def test_a_run_is_printed_in_one_line(folder):
    with pytest.warns(UserWarning, match="has not ended"):
        run = load(folder)
    whole = load(folder.with_name("whole"))
    said = f"Run(folder='{folder}', task='classify', data='told', encoder='{run.task.architecture.encoder}', epochs=1"
    assert repr(run) == f"{said}, dev_accuracy={run.metrics['dev_accuracy']:.4g}, finished=False)"
    assert repr(whole).endswith("finished=True)")


@pytest.mark.parametrize(("after", "resumed"), [(2, True), (0, False)])
def test_a_full_disk_names_the_file_and_the_way_on(unrolled, tmp_path, monkeypatch, after, resumed):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("text,label\n" + "".join(f"a {('dull', 'fine')[n % 2]} film,{n % 2}\n" for n in range(40)))
    writes = 0

    def write(descriptor, content):
        nonlocal writes
        writes += 1
        if writes > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_fully(descriptor, content)

    words = ("train", "classify", "--data", "a.csv", "--hidden", 4, "--embedding", 4, "--epochs", 2, "--out", "my run")
    with monkeypatch.context() as full:
        full.setattr("unrolled.lab.training.logs.write_fully", write)
        refused = unrolled(*words)
    assert refused.status == 74
    said = [line for line in refused.err.splitlines() if line.startswith("unrolled: error: ")]
    assert "No space left on device" in said[0]
    assert said[0].endswith("go on: unrolled resume 'my run'") == resumed
    done = unrolled("resume", "my run") if resumed else unrolled(*words)  # without a run there is nothing to resume
    assert done.status == 0, done.err
