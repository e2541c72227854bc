"""Deep and bidirectional networks: one to three layers, one direction or both, on two tasks.

A tagger labels every word and can use the words after it; a classifier reads its text to the end in any case. A
bidirectional network has twice the weights, as the notes say. To separate direction from size, there is also a
network of one direction with as many parameters. Our choices where the notes are silent:

- Tasks: named entities (CoNLL-2003), each tag by itself as in equation 22, without a random field; and sentiment of
  whole sentences (SST-2), read from the last state of each direction.
- Networks: tanh and LSTM, states of one size in each direction and layer, Adam, dropout between layers.

At scale cpu the tagger learns 3,000 of 14,041 training sentences, states have 64 units, and epochs are few.

Source:
    CS 224D, lecture notes IV (2015), section 2.3, equations 17 to 22.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from unrolled.cells.parameter_budget import count_parameters, fit_parameters
from unrolled.lab.data.corpus import Classification, Tagging
from unrolled.lab.papers.framework.experiment import (
    SCALES,
    SPLITS,
    Experiment,
    Report,
    Result,
    Scale,
    Trial,
    TrialSetup,
    average,
    where,
)
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_corpora import read_or_make_up
from unrolled.lab.papers.framework.trial_training import run_metrics, train_once

__all__ = ["DeepBidirectional"]

_LAYERS = (1, 2, 3)
_ONE, _BOTH, _WIDE = "one way", "both ways", "one way, as many parameters"
_TASKS = {"tag": "f1", "classify": "accuracy"}
_NAMES = {"tag": "named entities, F1, %", "classify": "sentiment, accuracy, %"}
_NETWORKS = {"rnn": "plain networks", "lstm": "LSTMs"}
_CELLS = {"rnn": "elman", "lstm": "lstm"}
"""For each network of torch.nn the cell with the same equations, for counting parameters."""
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {
        "seeds": 1,
        "sentences": {"tag": 60, "classify": 60},
        "model": {"hidden": 6, "embedding": 6},
        "training": {"epochs": 1, "batch": 16},
    },
    "cpu": {
        "seeds": 2,
        "sentences": {"tag": 3000, "classify": None},
        "model": {"hidden": 64, "embedding": 64},
        "training": {"epochs": 5, "batch": 32, "lr": 0.003},
    },
    "day": {
        "seeds": 3,
        "sentences": {"tag": None, "classify": None},
        "model": {"hidden": 128, "embedding": 100},
        "training": {"epochs": 15, "batch": 32, "lr": 0.001},
    },
    "paper": {
        "seeds": 5,
        "sentences": {"tag": None, "classify": None},
        "model": {"hidden": 128, "embedding": 100},
        "training": {"epochs": 15, "batch": 32, "lr": 0.001},
    },
}
"""``sentences``: the number of training sentences; None for all."""
_HOURS = {"tag": 0.4, "classify": 0.15}
"""Estimated hours of a training at scale day, on one core."""


class DeepBidirectional(Experiment):
    """A trial is one network on one task."""

    name = "cs224d-notes-4/deep"
    title = "Deep and bidirectional networks"
    source = "CS 224D, lecture notes IV, section 2.3; the notes have no numbers"
    scales = tuple(SCALES)
    day_hours_by = ("task", _HOURS)

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the tagger before the classifier, and the largest contrast first."""
        sizes = _SIZES[scale]
        data = {"tag": "conll2003", "classify": "sst2-sentences"}
        kinds = [("tag", "lstm"), ("tag", "rnn"), ("classify", "lstm")]
        return [
            Trial(
                f"{task}, {encoder}, {layers} layer{'s' * (layers > 1)}, {ways}, seed {seed}",
                {
                    "task": task,
                    "data": "made up" if scale == "smoke" else data[task],
                    "sentences": sizes["sentences"][task],
                    "ways": ways,
                    "model": {**sizes["model"], "encoder": encoder, "layers": layers},
                    "training": {**sizes["training"], "seed": seed},
                },
            )
            for seed, (task, encoder), layers, ways in product(
                range(sizes["seeds"]), kinds, _LAYERS, (_BOTH, _ONE, _WIDE)
            )
            if ways != _WIDE or layers == 1
        ]

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train and measure."""
        chosen = trial.settings
        model = {**chosen["model"], "bidirectional": chosen["ways"] == _BOTH}
        if chosen["ways"] == _WIDE:
            model["hidden"] = _wide_size(chosen)
        if chosen["task"] == "tag":
            model |= {"crf": False}
        run = train_once(setup, chosen["task"], _corpus(chosen, setup), model, chosen["training"])
        return {**run_metrics(run), "hidden": model["hidden"]}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate scores by layers and directions."""
        tables = []
        for task, encoder in dict.fromkeys(map(_kind, results)):
            rows: list[Sequence[str | Number]] = []
            for layers, ways in product(_LAYERS, (_ONE, _BOTH, _WIDE)):
                if chosen := _of(results, task, encoder, layers, ways):
                    scores = (average(chosen, f"{split}_{_TASKS[task]}", digits=1, percent=True) for split in SPLITS)
                    rows.append((
                        f"{layers}, {ways}",
                        Number([chosen[0]["hidden"]], digits=0),
                        Number([chosen[0]["parameters"] / 1000], digits=0),
                        Number([each["seconds"] / each["epochs"] for each in chosen], digits=1),
                        *scores,
                    ))  # fmt: skip
            columns = ("layers", "units", "thousand parameters", "seconds per epoch", "dev", "test")
            tables.append(Table(f"{_NAMES[task]}: {_NETWORKS[encoder]}", columns, rows))
        return Report(tables)


def _corpus(chosen: Mapping[str, Any], setup: TrialSetup) -> Tagging | Classification:
    corpus: Tagging | Classification
    if chosen["task"] == "tag":
        corpus = read_or_make_up(chosen["data"], Tagging, setup.data)
    else:
        corpus = read_or_make_up(chosen["data"], Classification, setup.data)
    return corpus.sample(chosen["sentences"]) if chosen["sentences"] else corpus


def _wide_size(chosen: Mapping[str, Any]) -> int:
    """Find the hidden size of one direction that has as many recurrent weights as both directions."""
    model, cell = chosen["model"], _CELLS[chosen["model"]["encoder"]]
    both = count_parameters(cell, model["embedding"], model["hidden"], model["layers"], bidirectional=True)
    return fit_parameters(cell, both.network, model["embedding"], model["layers"]).nearest.hidden_size


def _kind(result: Result) -> tuple[str, str]:
    return result.trial.settings["task"], result.trial.settings["model"]["encoder"]


def _of(results: Sequence[Result], task: str, encoder: str, layers: int, ways: str) -> list[Result]:
    return [
        result
        for result in where(results, task=task, ways=ways)
        if (result.trial.settings["model"]["encoder"], result.trial.settings["model"]["layers"]) == (encoder, layers)
    ]
