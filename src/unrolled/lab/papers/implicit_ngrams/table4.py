"""Relations between marked nominals, and named entities: n-gram models and recurrent networks as encoders.

Relations (SemEval-2010 Task 8): a linear layer classifies the last context. Named entities (CoNLL-2003): a conditional
random field over a linear layer of the contexts of both directions. All models train equally long at the same rate,
from random word vectors. At scale cpu, vectors have 64 dimensions (the paper: 300, and 200 for hidden states of the
tagger; MM's matrices are 16 x 16, not 32 x 32), epochs are few, and the tagger learns 5,000 of 14,041 sentences.
Scale day has the paper's sizes and data. Every model trains until dev stops improving, at every learning rate of a
grid; its numbers are those of the rate that is best on dev.

Source:
    Sun and Lu (2022), Implicit n-grams, table 4, section 5.1, appendices E.2 and E.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from unrolled.lab.data.corpus import Relations, Tagging
from unrolled.lab.papers.analyses.sentences.relation_corpora import without_directions
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
    dev_test_rows,
    pick,
    where,
)
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_corpora import read_entities, read_relations
from unrolled.lab.papers.framework.trial_training import train_and_measure
from unrolled.lab.papers.implicit_ngrams.model_names import encoder_of, main_models_first

__all__ = ["COLUMNS", "PUBLISHED", "PUBLISHED_NAMES", "RelationsAndNames"]

COLUMNS = ("relations", "names")
_FAILED = (None, None)  # "failed to converge"
PUBLISHED: Mapping[str, tuple[float | None, ...]] = {
    "MM": (*_FAILED, 33.9, 30.8),
    "VA-W": (41.2, 37.9, 17.6, 16.5),
    "VA-EW": (39.7, 38.3, 70.8, 63.4),
    "MVM-G": (51.2, 52.6, 54.2, 47.6),
    "MVM-L": (48.8, 50.5, 53.8, 46.6),
    "MVM-E": (*_FAILED, 27.8, 25.6),
    "MVMA-G": (62.2, 59.7, 75.0, 67.7),
    "MVMA-L": (57.5, 56.2, 75.6, 67.9),
    "MVMA-E": (27.8, 25.6, 69.0, 61.7),
    "MVMA-ME": (46.3, 46.2, 67.0, 57.6),
    "GRU": (67.2, 62.2, 75.6, 67.9),
    "LSTM": (65.2, 61.3, 76.3, 68.1),
    "Elman": (27.8, 25.6, 67.1, 58.6),
}
"""F1 in percent on dev and test of each task, in the order of ``COLUMNS``; None: it failed to converge."""
PUBLISHED_NAMES = {model: numbers[2:] for model, numbers in PUBLISHED.items()}
"""Those on named entities."""

_SIZES: dict[Scale, dict[str, dict[str, int]]] = {
    "smoke": {
        "relations": {"hidden": 8, "embedding": 8, "side": 3, "epochs": 1, "window": 5, "batch": 8},
        "names": {"hidden": 8, "embedding": 8, "side": 3, "epochs": 1, "window": 5, "batch": 8, "examples": 24},
    },
    "cpu": {
        "relations": {"hidden": 64, "embedding": 64, "side": 16, "epochs": 5, "window": 20, "batch": 32},
        "names": {"hidden": 64, "embedding": 64, "side": 16, "epochs": 3, "window": 5, "batch": 16, "examples": 5000},
    },
    "day": {
        "relations": {
            "hidden": 300, "embedding": 300, "side": 32, "epochs": 20, "patience": 3, "window": 91, "batch": 32,
        },
        "names": {"hidden": 200, "embedding": 300, "side": 32, "epochs": 20, "patience": 3, "window": 5, "batch": 16},
    },
    # The paper does not state epochs, batch size and the window of VA-W.
    "paper": {
        "relations": {"hidden": 300, "embedding": 300, "side": 32, "epochs": 30, "window": 91, "batch": 64},
        "names": {"hidden": 200, "embedding": 300, "side": 32, "epochs": 50, "window": 5, "batch": 16},
    },
}  # fmt: skip
_GRIDS: dict[str, tuple[dict[str, float], ...]] = {
    "relations": ({"lr": 0.02}, {"lr": 0.05}, {"lr": 0.01}),
    "names": (
        {"lr": 0.3, "momentum": 0.0},
        {"lr": 0.1, "momentum": 0.9},
        {"lr": 0.1, "momentum": 0.0},
        {"lr": 1.0, "momentum": 0.0},
    ),
}
"""The learning rates of scale day, of which dev chooses one for each model."""
_HOURS = {"relations": 0.06, "names": 0.25}
_SLOWER = {"MM": 3.0, "MVMA-L": 1.3, "MVM-L": 1.3, "MVMA-G": 1.2, "MVM-G": 1.2}
"""Estimated hours of a training at scale day, on one core, and how many times as long some models take."""
_SEEDS: dict[Scale, int] = {"smoke": 1, "cpu": 1, "day": 1, "paper": 3}
# The paper names the optimisers, and dropout for relations. It does not state rates and momentum (ours give the GRU
# a good dev score at scale cpu), nor dropout rates. It does not say whether word vectors start at random here too (as
# for sentiment), how nominals are marked, over which classes F1 is averaged, and whether the tagger sees the shapes of
# words (here it does not). The authors' published code (github.com/richardsun-voyager/inibr) has random vectors, words
# in lower case, markers as words, and 100 units a direction in the tagger. It averages F1 over 19 classes, where the
# paper's table 6 has ten. ours/relation-markers trains without markers.
_MODEL: dict[str, dict[str, Any]] = {
    "relations": {"dropout": 0.5, "word_dropout": 0.1, "bidirectional": False, "pooling": "last"},
    "names": {"dropout": 0.5, "word_dropout": 0.1, "bidirectional": True, "crf": True, "shapes": 0},
}
_TRAINING: dict[str, dict[str, Any]] = {
    "relations": {"optimiser": "adagrad", "lr": 0.05, "clip": 5.0},
    "names": {"optimiser": "sgd", "lr": 0.1, "momentum": 0.9, "clip": 5.0},
}
_TASKS = {"relations": "relate", "names": "tag"}


class RelationsAndNames(Experiment):
    """A trial is one training."""

    name = "implicit-ngrams/table4"
    title = "F1 on relations and on named entities of n-gram models and recurrent networks"
    source = "Sun and Lu (2022), Implicit n-grams, table 4"
    headline = ("MVMA-G", "relations, test")
    scales = tuple(SCALES)

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the models, task by task."""
        listed = []
        models = main_models_first(PUBLISHED)
        for seed, (column, sizes) in product(range(_SEEDS[scale]), _SIZES[scale].items()):
            for rate, model in product(_GRIDS[column] if scale == "day" else ({},), models):
                if scale == "smoke" and column != COLUMNS[0] and model not in models[:2]:
                    continue  # the first task shows that each model trains
                chosen: dict[str, Any] = {**sizes, **_MODEL[column], **_TRAINING[column], **rate}
                if model != "VA-W":
                    del chosen["window"]
                if model == "MM":
                    chosen["dropout"] = 0.0  # products of matrices with dropped entries vanish or explode
                made_up = {"made_up": True} if scale == "smoke" else {}
                settings = {"model": model, "column": column, **made_up, **chosen, "seed": seed}
                named = "".join(f", {name} {value:g}" for name, value in rate.items())
                listed.append(Trial(f"{model} on {column}{named}, seed {seed}", settings))
        return listed

    def day_hours(self, trial: Trial) -> float:
        """Estimate by the task and the model."""
        return _HOURS[trial.settings["column"]] * _SLOWER.get(trial.settings["model"], 1.0)

    def worth(self, trial: Trial) -> float:
        """Count the first rate of a grid as a whole number, because it gives one at once, and further ones as parts."""
        chosen = trial.settings
        grid = _GRIDS[chosen["column"]]
        is_first = all(chosen[name] == value for name, value in grid[0].items())
        return 1.0 if "patience" not in chosen or is_first else 1.0 / len(grid)

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, choose the epoch on dev, measure on test."""
        chosen, column = trial.settings, trial.settings["column"]
        corpus = _read(column, "made_up" in chosen, setup.data)
        if "examples" in chosen:
            corpus = corpus.sample(chosen["examples"])
        model = {name: chosen[name] for name in ("hidden", "embedding", *_MODEL[column])}
        if chosen["model"] == "MM":
            model["hidden"] = model["embedding"] = chosen["side"] ** 2
        model["encoder"] = encoder_of(chosen["model"])
        model["options"] = {"window": chosen["window"]} if "window" in chosen else {}
        training = pick(chosen, ("epochs", "patience", "batch", *_TRAINING[column], "seed"))
        return train_and_measure(setup, _TASKS[column], corpus, model, training)

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Compare F1 with the published one."""
        rows = dev_test_rows(
            _at_best_rates(results), PUBLISHED, [{"column": each} for each in COLUMNS], "f1", percent=True
        )
        columns = [f"{column}, {split}" for column, split in product(COLUMNS, SPLITS)]
        title = "F1, %: macro-averaged over nine relations, and of entities; (–): the paper reports no convergence"
        return Report([Table(title, ("model", *columns), rows), *_rates(results)])


def _read(column: str, made_up: bool, folder: Path | None) -> Relations | Tagging:
    if column == "names":
        return read_entities(made_up, folder)
    return without_directions(read_relations(made_up, folder))


def _by_rate(results: Sequence[Result], model: str, column: str) -> dict[tuple[float, ...], list[Result]]:
    """Group the trainings of a model by learning rate and momentum."""
    found: dict[tuple[float, ...], list[Result]] = {}
    for result in where(results, model=model, column=column):
        found.setdefault(tuple(result.trial.settings[name] for name in _GRIDS[column][0]), []).append(result)
    return found


def _at_best_rates(results: Sequence[Result]) -> list[Result]:
    """Keep all seeds of the rate that is best on dev, by model and task; all results where every training diverged."""
    kept = []
    for model, column in product(PUBLISHED, COLUMNS):
        every = where(results, model=model, column=column)
        ended = [result for result in every if "diverged" not in result.values]
        groups = _by_rate(ended, model, column).values()
        kept += max(groups, key=lambda alike: fmean(each["dev_f1"] for each in alike), default=every)
    return kept


def _rates(results: Sequence[Result]) -> Iterator[Table]:
    """Tabulate dev by rate, for the tasks with several rates."""
    for column in COLUMNS:
        by_rate = {model: _by_rate(results, model, column) for model in PUBLISHED}
        rates = sorted({rate for found in by_rate.values() for rate in found})
        if len(rates) < 2:
            continue
        rows: list[Sequence[str | Number]] = [
            (model, *(_dev(found.get(rate, [])) for rate in rates))
            for model, found in by_rate.items()
            if where(results, model=model, column=column)
        ]
        names = tuple(_GRIDS[column][0])
        named = (", ".join(f"{name} {value:g}" for name, value in zip(names, rate, strict=True)) for rate in rates)
        title = f"{column.capitalize()}: F1 on dev, %; the rate with the highest is chosen; where one has run, none is"
        yield Table(title, ("model", *named), rows)


def _dev(trained: Sequence[Result]) -> Number:
    number = average(trained, "dev_f1", digits=1, percent=True)
    return replace(number, diverged=bool(trained) and not number.ours)
