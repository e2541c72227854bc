"""Word vectors to begin with."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from toy_tasks import DATA, carry, classify, stream, told
from unrolled.errors import DataError, FileError, UsageError
from unrolled.lab.training.callbacks import Callback
from unrolled.lab.training.engine import resume, train
from unrolled.lab.training.initial_vectors import find_vectors
from unrolled.lab.training.settings import TrainingSettings


def write_vectors(path, size=6):
    rows = {"good": 0.5, "film": -1.0, "zeppelin": 9.0}
    path.write_text("".join(f"{word} {' '.join([str(value)] * size)}\n" for word, value in rows.items()))
    return path


def settings(**changes):
    return TrainingSettings(**{"epochs": 1, "steps": 1, "lr": 1e-30, "device": "cpu"} | changes)


def test_a_training_begins_with_the_vectors_of_a_file(tmp_path):
    corpus = told()
    task = classify(corpus)
    vectors = write_vectors(tmp_path / "vectors.txt")
    runs = {
        name: train(task, corpus, settings(vectors=path), tmp_path / name, data=DATA)
        for name, path in (("with", vectors), ("without", None))
    }
    weights = {name: run.model.embedding.weight.detach() for name, run in runs.items()}
    good, film, other = task.vocabulary.encode(["good", "film", "was"])
    assert torch.equal(weights["with"][good], torch.full((6,), 0.5))
    assert torch.equal(weights["with"][film], torch.full((6,), -1.0))
    assert torch.equal(weights["with"][other], weights["without"][other])
    assert not torch.equal(weights["without"][good], weights["with"][good])


def test_frozen_vectors_are_not_trained(tmp_path):
    corpus = told()
    vectors = write_vectors(tmp_path / "vectors.txt")
    changes = {"vectors": vectors, "lr": 0.1, "steps": 3, "weight_decay": 0.1}
    moved = {}
    for frozen in (True, False):
        task = classify(corpus)
        run = train(task, corpus, settings(freeze_vectors=frozen, **changes), tmp_path / f"{frozen}", data=DATA)
        (good,) = task.vocabulary.encode(["good"])
        moved[frozen] = not torch.equal(run.model.embedding.weight[good], torch.full((6,), 0.5))
        assert resume(run.folder, corpus, task_class=type(task)).metrics == run.metrics
    assert moved == {True: False, False: True}


def test_a_training_with_frozen_vectors_is_resumed(tmp_path):
    corpus = told()
    vectors = write_vectors(tmp_path / "vectors.txt")
    chosen = settings(freeze_vectors=True, vectors=vectors, lr=0.1, steps=None, epochs=3)
    whole = train(classify(corpus), corpus, chosen, tmp_path / "whole", data=DATA)

    class Stop(Callback):
        def on_epoch(self, epoch, best, seconds):
            if epoch.number == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(classify(corpus), corpus, chosen, tmp_path / "parts", data=DATA, callback=Stop())
    parts = resume(tmp_path / "parts", corpus, task_class=type(classify(corpus)))
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, parts.model.state_dict()[name])


def test_frozen_vectors_need_a_file_and_are_recorded_only_if_set(tmp_path):
    with pytest.raises(UsageError, match="freeze_vectors is set, but vectors is not"):
        TrainingSettings(freeze_vectors=True)
    assert "freeze_vectors" not in TrainingSettings().model_dump(mode="json")  # recorded trials keep their keys
    asked = TrainingSettings(freeze_vectors=True, vectors=tmp_path / "vectors.txt").model_dump(mode="json")
    assert asked["freeze_vectors"] is True
    assert TrainingSettings(**asked).freeze_vectors


def test_vectors_that_are_of_no_use_are_refused(tmp_path):
    corpus = told()
    with pytest.raises(DataError, match=r"vectors\.txt:1"):
        train(
            classify(corpus),
            corpus,
            settings(vectors=write_vectors(tmp_path / "vectors.txt", size=7)),
            tmp_path / "run",
            data=DATA,
        )
    (tmp_path / "strange.txt").write_text(f"zeppelin {'1 ' * 6}\n")
    with pytest.raises(UsageError, match="which has none of the"):
        train(classify(corpus), corpus, settings(vectors=tmp_path / "strange.txt"), tmp_path / "run", data=DATA)
    with pytest.raises(UsageError, match="carry has no word embeddings"):
        train(carry(), stream(), settings(vectors=tmp_path / "strange.txt"), tmp_path / "run", data=DATA)
    assert not (tmp_path / "run").exists()


def test_vectors_are_found_where_they_are_named_or_in_the_data_folder(tmp_path, monkeypatch):
    here, data = tmp_path / "here", tmp_path / "data" / "glove"
    here.mkdir()
    data.mkdir(parents=True)
    monkeypatch.chdir(here)
    monkeypatch.delenv("UNROLLED_DATA", raising=False)
    stored = write_vectors(data / "some.txt")
    with pytest.raises(FileError, match=r"no file of word vectors at glove/some\.txt or in the data folder"):
        find_vectors(Path("glove/some.txt"))
    assert find_vectors(Path("glove/some.txt"), data.parent) == stored
    monkeypatch.setenv("UNROLLED_DATA", str(data.parent))
    assert find_vectors(Path("glove/some.txt")) == stored
    (here / "glove").mkdir()
    write_vectors(here / "glove" / "some.txt")
    assert find_vectors(Path("glove/some.txt")) == Path("glove/some.txt")
