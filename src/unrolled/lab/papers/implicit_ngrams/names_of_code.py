"""F1 on named entities with the settings of the authors' published code.

The paper states 200 units, vectors of 300 numbers and SGD. The code has 100 units in each direction, word vectors from
N(0, 1), dropout of 0.5 on them and nowhere else, batches of 32 sentences, and 50 epochs at a rate of 0.01 without
momentum. Its loss is the sum over a batch, and gradients are clipped at 5. Our loss is the mean, so a rate of 32 x 0.01
and clipping at 5 / 32 make the same steps of full batches. Its VA-W reads each word alone, with one of 20 matrices.

What differs: the code reads the batches of every epoch in the same order, and knows the words of dev and test, whose
vectors stay as they were drawn; here these words share one such vector. Its random field learns which tags may follow
one another, and ours knows it. Its modules of GRU, LSTM and Elman network (dynamic_gru, dynamic_lstm, dynamic_rnn) have
no biases and start from orthogonal matrices; ours have biases and start from uniform numbers. It has no code of MM.

Source:
    Sun and Lu (2022), Implicit n-grams, table 4, appendix E.3; https://github.com/richardsun-voyager/inibr, the
    notebook RNN_NER_CRF_IOBES and linear_crf.py, read and not run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from unrolled.lab.papers.analyses.published_code.names_of_code import NamesByPlace, NamesOfCode
from unrolled.lab.papers.framework.experiment import (
    SCALES,
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
from unrolled.lab.papers.framework.trial_corpora import read_entities
from unrolled.lab.papers.framework.trial_training import train_and_measure
from unrolled.lab.papers.implicit_ngrams.model_names import encoder_settings
from unrolled.lab.papers.implicit_ngrams.table4 import PUBLISHED_NAMES

__all__ = ["STEPS_OF_CODE", "EntitiesOfCode"]

_MODELS = (
    "MVMA-G", "GRU", "MVM-G", "VA-W", "Elman", "LSTM", "MVMA-L", "MVM-L", "VA-EW", "MVMA-E", "MVMA-ME", "MVM-E",
)  # fmt: skip

_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"made_up": True, "hidden": 4, "embedding": 8, "epochs": 1},
    "cpu": {"hidden": 100, "embedding": 300, "epochs": 5},
    "day": {"hidden": 100, "embedding": 300, "epochs": 50},
    "paper": {"hidden": 100, "embedding": 300, "epochs": 50},
}
"""Units are those of each direction."""
_SEEDS: dict[Scale, int] = {"smoke": 1, "cpu": 1, "day": 1, "paper": 3}
_MODEL = {"dropout": 0.5, "word_dropout": 0.0, "bidirectional": True, "crf": True, "shapes": 0}
_BATCH = 32
STEPS_OF_CODE: Mapping[str, float] = {"lr": 0.01 * _BATCH, "clip": 5.0 / _BATCH, "batch": _BATCH}
_TRAINING = {"optimiser": "sgd", "momentum": 0.0, **STEPS_OF_CODE, "patience": 50}
_BLOCK = 20


class EntitiesOfCode(Experiment):
    """A trial is one training."""

    name = "implicit-ngrams/names-of-code"
    title = "F1 on named entities with the settings of the authors' published code"
    source = "Sun and Lu (2022), Implicit n-grams, table 4, and the authors' code"
    scales = tuple(SCALES)
    usual_hours = 0.3

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the models, seed by seed; at scale smoke four of them."""
        models = _MODELS[:4] if scale == "smoke" else _MODELS
        listed = []
        for seed, model in product(range(_SEEDS[scale]), models):
            chosen: dict[str, Any] = {"model": model, **_SIZES[scale], **_MODEL, **_TRAINING, "seed": seed}
            if model == "VA-W":  # it has no direction
                chosen |= {"hidden": 2 * chosen["hidden"], "bidirectional": False, "window": _BLOCK}
            listed.append(Trial(f"{model}, seed {seed}", chosen))
        return listed

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, choose the epoch on dev, measure on test."""
        chosen = trial.settings
        corpus = read_entities("made_up" in chosen, setup.data)
        model = {**encoder_settings(chosen), **{name: chosen[name] for name in ("hidden", "embedding", *_MODEL)}}
        training = pick(chosen, ("epochs", *_TRAINING, "spectral", "seed"))
        kind = NamesByPlace if "window" in chosen else NamesOfCode
        return train_and_measure(setup, kind, corpus, model, training)

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Compare F1 of entities with the published one."""
        rows = dev_test_rows(results, PUBLISHED_NAMES, [{}], "f1", percent=True)
        return Report([Table("F1 of entities, %", ("model", "dev", "test"), rows)])
