"""F1 on relations with the settings and the measure of the authors' published code.

The paper gives one F1 for each model and does not say over which classes it is averaged, nor the rate, batch size,
epochs and initial word vectors. The authors' code does. It learns nineteen classes, a relation and its reverse apart;
takes the macro F1 over all of them, *Other* included; draws word vectors from N(0, 1), ten times as wide as those of
``implicit-ngrams/table4``; and trains for forty epochs with Adagrad at 0.01. Here all models train so. In lines that
are commented out, LSTM and Elman network have a rate of 0.02. Three settings differ: the code makes a new optimiser
in every epoch, which takes larger steps later on; ours is one for all epochs. And its modules of GRU, LSTM and Elman
network (dynamic_gru, dynamic_lstm, dynamic_rnn) have no biases and start from orthogonal matrices.

Source:
    Sun and Lu (2022), Implicit n-grams, table 4; https://github.com/richardsun-voyager/inibr, the notebook
    RNN_relation_classification(semeval2010-8), read and not run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from unrolled.lab.papers.analyses.published_code.all_classes import AllClasses
from unrolled.lab.papers.framework.experiment import (
    SCALES,
    SPLITS,
    Experiment,
    Report,
    Result,
    Scale,
    Trial,
    TrialSetup,
    dev_test_rows,
    pick,
)
from unrolled.lab.papers.framework.table import Table
from unrolled.lab.papers.framework.trial_corpora import read_relations
from unrolled.lab.papers.framework.trial_training import train_and_measure
from unrolled.lab.papers.implicit_ngrams.model_names import encoder_settings
from unrolled.lab.papers.implicit_ngrams.table4 import PUBLISHED

__all__ = ["RelationsOfCode"]

_MODELS = (
    "MVMA-G", "MVMA-L", "GRU", "LSTM", "MVM-G", "MVM-L", "Elman", "MVMA-E", "MVMA-ME", "VA-EW", "MVM-E", "VA-W",
)  # fmt: skip
"""All of table 4 but MM, for which the paper reports no convergence."""
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"made_up": True, "hidden": 8, "embedding": 8, "epochs": 1, "batch": 8, "window": 5},
    "cpu": {"hidden": 64, "embedding": 64, "epochs": 5, "batch": 128, "window": 20},
    "day": {"hidden": 300, "embedding": 300, "epochs": 40, "batch": 128, "window": 91},
    "paper": {"hidden": 300, "embedding": 300, "epochs": 40, "batch": 128, "window": 91},
}
_SEEDS: dict[Scale, int] = {"smoke": 1, "cpu": 1, "day": 1, "paper": 3}
_MODEL = {"dropout": 0.5, "word_dropout": 0.0, "bidirectional": False, "pooling": "last"}
_TRAINING = {"optimiser": "adagrad", "lr": 0.01, "weight_decay": 1e-5, "clip": 5.0, "patience": 40}
_HOURS = {"VA-W": 0.3, "MVMA-L": 0.12, "MVM-L": 0.12}


class RelationsOfCode(Experiment):
    """A trial is one training."""

    name = "implicit-ngrams/relations-of-code"
    title = "F1 on relations with the settings and the measure of the authors' published code"
    source = "Sun and Lu (2022), Implicit n-grams, table 4, and the authors' code"
    scales = tuple(SCALES)

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the models, seed by seed; at scale smoke three of them."""
        models = _MODELS[:3] if scale == "smoke" else _MODELS
        listed = []
        for seed, model in product(range(_SEEDS[scale]), models):
            chosen = {"model": model, **_SIZES[scale], **_MODEL, **_TRAINING, "seed": seed}
            if model != "VA-W":
                del chosen["window"]
            listed.append(Trial(f"{model}, seed {seed}", chosen))
        return listed

    def day_hours(self, trial: Trial) -> float:
        """Estimate by the model."""
        return _HOURS.get(trial.settings["model"], 0.08)

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, choose the epoch on dev, measure on test."""
        chosen = trial.settings
        corpus = read_relations("made_up" in chosen, setup.data)
        model = {**encoder_settings(chosen), **{name: chosen[name] for name in ("hidden", "embedding", *_MODEL)}}
        training = pick(chosen, ("epochs", "batch", *_TRAINING, "spectral", "seed"))
        return train_and_measure(setup, AllClasses, corpus, model, training)

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Compare F1 over all classes with the published one; beside it that of table 4."""
        every = dev_test_rows(results, PUBLISHED, [{}], "all_f1", percent=True)  # relations stand first
        nine = dev_test_rows(results, dict.fromkeys(PUBLISHED, (None, None)), [{}], "f1", percent=True)
        rows = [(*cells, *others[1:]) for cells, others in zip(every, nine, strict=True)]
        columns = (f"{classes}, {split}" for classes, split in product(("all classes", "nine relations"), SPLITS))
        return Report([Table("Macro F1 on relations, %", ("model", *columns), rows)])
