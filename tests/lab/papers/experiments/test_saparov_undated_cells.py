"""CS 577, lecture 5, cells: two that are set by hand are found, by name, and a network that knows nothing has none."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch
from torch import nn

from unrolled.lab.models.language_model import LanguageModel
from unrolled.lab.models.softmax import FullSoftmax
from unrolled.lab.papers.cs577_lecture_5 import cells as module
from unrolled.lab.papers.cs577_lecture_5.cells import TellingCells
from unrolled.lab.papers.framework.experiment import Bench
from unrolled.lab.tasks.chars import CharacterModelling, CharacterModelSettings

HIDDEN = 3
OPEN, SHUT = 20.0, -20.0  # σ of it is 1, or 0, in float32
COUNTS, COMMENTS = 1, 2


def by_hand(vocabulary):
    """Set an LSTM whose memory 1 counts characters up to a line's end, and whose memory 2 holds from # to there."""
    end, sharp = vocabulary.encode("\n#")
    embedding = nn.Embedding(len(vocabulary), 3)
    embedding.weight.data = torch.tensor([0.0, 0.0, 1.0]).repeat(len(vocabulary), 1)
    embedding.weight.data[end] = torch.tensor([1.0, 0.0, 0.0])
    embedding.weight.data[sharp] = torch.tensor([0.0, 1.0, 0.0])
    lstm = nn.LSTM(3, HIDDEN, batch_first=True)
    for parameter in lstm.parameters():
        nn.init.zeros_(parameter)
    weight = torch.zeros(4, HIDDEN, 3)  # gates i, f, g, o; what they do at a line's end, at # and elsewhere
    weight[:, COUNTS] = torch.tensor([[SHUT, -5, -5], [SHUT, OPEN, OPEN], [OPEN] * 3, [OPEN] * 3])
    weight[:, COMMENTS] = torch.tensor([[SHUT, OPEN, SHUT], [SHUT, SHUT, OPEN], [OPEN] * 3, [OPEN] * 3])
    lstm.weight_ih_l0.data = weight.flatten(0, 1)
    return LanguageModel(embedding, lstm, FullSoftmax(HIDDEN, len(vocabulary))).eval()


def find(trained=True, text="python", encoder="lstm"):
    wanted = {"trained": trained, "text": text, "encoder": encoder}
    trials = TellingCells().trials("smoke")
    return next(trial for trial in trials if {name: trial.settings[name] for name in wanted} == wanted)


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path / "room", None, tmp_path / "shelf")


def test_cells_set_by_hand_are_found_and_measured(bench, monkeypatch):
    def network(corpus, *_):
        task = CharacterModelling.from_corpus(corpus, CharacterModelSettings(hidden=HIDDEN, embedding=3))
        return by_hand(task.vocabulary), task.vocabulary, 2.0

    monkeypatch.setattr(module, "_network", network)
    trial = find()
    trial = replace(trial, settings={**trial.settings, "hidden": HIDDEN, "columns": 20, "width": 200, "lead": 100})
    values = TellingCells().run(trial, bench)
    found = values["found"]
    assert found["position in line"]["unit"] == "c 1"
    assert found["position in line"]["correlation"] > 0.999
    assert found["inside a comment"]["unit"].split()[1] == "2"  # its memory and its hidden output tell the same
    assert found["inside a comment"]["correlation"] > 0.9  # a # in a string misleads it
    assert found["inside a comment"]["auc"] > 0.95
    assert found["inside an if"]["correlation"] < 0.5  # nothing in it knows of that
    assert found["position in line"]["auc"] is None
    assert 0 < values["clear"] <= 4 / 6  # both units, memory and output; not those without weights
    lines = module._PYTHON_FRAGMENT.split("\n")
    commented = [line.index("#") for line in lines if "#" in line]
    drawn = iter(found["inside a comment"]["drawn"])
    shown = [[next(drawn) for _ in f"{line}\n"] for line in lines[:-1]]
    assert [max(values[:-1]) > 0.5 for values in shown] == ["#" in line for line in lines[:-1]]
    assert len(commented) == 2
    assert next(drawn, None) is None  # a value for every character that is drawn


def test_the_control_is_what_the_trained_network_was_before(bench):
    trial = find()
    corpus = module._one_package()
    model, words, bits = module._network(corpus, {**trial.settings, "trained": False}, bench)
    assert bits is None
    trained, same_words, bits = module._network(corpus, {**trial.settings, "steps": 1, "lr": 1e-12}, bench)
    assert bits > 5
    assert words == same_words
    for one, other in zip(model.parameters(), trained.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-9)


def test_our_own_text_has_all_that_is_drawn():
    told = module.python_properties(module._PYTHON_FRAGMENT)
    assert all(len(Counter(values.tolist())) > 1 for values in told.values())
    assert module.prose_properties(module._PROSE_FRAGMENT)["inside quotes"][-1] == 0
