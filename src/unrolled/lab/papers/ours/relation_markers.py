"""Relations with and without markers around the two nominals.

Our models classify relations with a higher F1 than those of *Implicit n-grams*, table 4. The paper does not say
whether its models see which two nominals a sentence asks about. Ours do: in table 4 they read a marker before and
after each. So do those of the authors' published code (https://github.com/richardsun-voyager/inibr), whose F1 is over
other classes. Here each model trains with and without these markers. All else is equal, at one learning rate, the
first of table 4's.

Source:
    Our own question; Sun and Lu (2022), Implicit n-grams, table 4 and appendix E.2, for the models and their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from unrolled.lab.papers.analyses.sentences.relation_corpora import without_directions, without_markers
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
    pick,
    where,
)
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_corpora import read_relations
from unrolled.lab.papers.framework.trial_training import train_and_measure

__all__ = ["PUBLISHED", "RelationMarkers"]

PUBLISHED: Mapping[str, tuple[float, float]] = {
    "GRU": (67.2, 62.2),
    "LSTM": (65.2, 61.3),
    "MVMA-G": (62.2, 59.7),
    "MVM-G": (51.2, 52.6),
}
"""F1 in percent on dev and test; the paper does not say whether with markers."""

_ENCODERS = {"GRU": "gru", "LSTM": "lstm", "MVMA-G": "mvma_g", "MVM-G": "mvm_g"}
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"seeds": 1, "made_up": True, "hidden": 8, "embedding": 8, "epochs": 1, "batch": 8},
    "cpu": {"seeds": 1, "hidden": 64, "embedding": 64, "epochs": 5, "batch": 32},
    "day": {"seeds": 3, "hidden": 300, "embedding": 300, "epochs": 20, "patience": 3, "batch": 32},
    "paper": {"seeds": 3, "hidden": 300, "embedding": 300, "epochs": 30, "batch": 64},
}
_MODEL = {"dropout": 0.5, "word_dropout": 0.1, "bidirectional": False, "pooling": "last"}
_TRAINING = {"optimiser": "adagrad", "lr": 0.02, "clip": 5.0}


class RelationMarkers(Experiment):
    """A trial is one training."""

    name = "ours/relation-markers"
    title = "Relations with and without markers around the two nominals"
    source = "our own question, after Sun and Lu (2022), table 4"
    scales = tuple(SCALES)
    usual_hours = 0.06

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the models with and without markers, seed by seed."""
        sizes = dict(_SIZES[scale])
        listed = []
        for seed, model, markers in product(range(sizes.pop("seeds")), PUBLISHED, (True, False)):
            settings = {"model": model, "markers": markers, **sizes, **_MODEL, **_TRAINING, "seed": seed}
            listed.append(Trial(f"{model} {'with' if markers else 'without'} markers, seed {seed}", settings))
        return listed

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, choose the epoch on dev, measure on test."""
        chosen = trial.settings
        marked = read_relations("made_up" in chosen, setup.data)
        corpus = without_directions(marked if chosen["markers"] else without_markers(marked))
        model = {name: chosen[name] for name in ("hidden", "embedding", *_MODEL)}
        training = pick(chosen, ("epochs", "patience", "batch", *_TRAINING, "seed"))
        return train_and_measure(setup, "relate", corpus, {**model, "encoder": _ENCODERS[chosen["model"]]}, training)

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Lay F1 with markers and without beside each other, and beside the published one."""
        rows: list[Sequence[str | Number]] = []
        for model, published in PUBLISHED.items():
            if chosen := where(results, model=model):
                cells: list[str | Number] = []
                for split, theirs in zip(SPLITS, published, strict=True):
                    for markers in (True, False):
                        alike = where(chosen, markers=markers)
                        cells.append(average(alike, f"{split}_f1", digits=1, percent=True))
                    cells.append(f"{theirs:.1f}")
                rows.append((model, *cells))
        columns = (f"{split}, {what}" for split, what in product(SPLITS, ("with", "without", "published")))
        return Report([Table("F1, %, with and without markers", ("model", *columns), rows)])
