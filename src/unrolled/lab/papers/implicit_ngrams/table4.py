"""Relations between marked nominals, and names in news: n-gram models and recurrent networks as encoders.

Relations (SemEval-2010 Task 8): the last context is classified. Names (CoNLL-2003): contexts of both directions at
every token, and a conditional random field over what a linear layer makes of them. All models learn equally long at
the same rate, from word vectors that begin at random. At scale cpu vectors have 64 numbers (the paper: 300, and 200
for hidden states of names; MM's matrices are 16 x 16, not 32 x 32), the passes are few, and names are learned from
5,000 of 14,041 sentences.

Source:
    Sun and Lu (2022), Implicit n-grams, table 4, section 5.1, appendices E.2 and E.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from unrolled.errors import DivergedError
from unrolled.lab.data.corpus import Example, Relations, Tagging
from unrolled.lab.papers.framework.corpus_cache import load_once
from unrolled.lab.papers.framework.experiment import Bench, Experiment, Report, Result, Scale, Trial, where
from unrolled.lab.papers.framework.synthetic_corpora import entities, relations
from unrolled.lab.papers.framework.table import Number, Table, cell
from unrolled.lab.papers.framework.trial_training import figures, learn, what_broke

__all__ = ["COLUMNS", "PUBLISHED", "RelationsAndNames", "without_directions"]

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
"""F1 in per cent on dev and test of each task, in the order of ``COLUMNS``; None: it failed to converge."""

_ENCODERS = {**{name: name.lower().replace("-", "_") for name in PUBLISHED}, "Elman": "rnn"}
_TELLING = ("MVMA-G", "MVM-G", "GRU", "MVMA-L", "MVM-L", "LSTM")
_SPLITS = ("dev", "test")
_SIZES: dict[Scale, dict[str, dict[str, int]]] = {
    "smoke": {
        "relations": {"hidden": 8, "embedding": 8, "side": 3, "epochs": 1, "window": 5, "batch": 8},
        "names": {"hidden": 8, "embedding": 8, "side": 3, "epochs": 1, "window": 5, "batch": 8, "examples": 24},
    },
    "cpu": {
        "relations": {"hidden": 64, "embedding": 64, "side": 16, "epochs": 5, "window": 20, "batch": 32},
        "names": {"hidden": 64, "embedding": 64, "side": 16, "epochs": 3, "window": 5, "batch": 16, "examples": 5000},
    },
    # The paper does not say: how long it trained, in batches of what size, nor how many tokens the window of VA-W has.
    "paper": {
        "relations": {"hidden": 300, "embedding": 300, "side": 32, "epochs": 30, "window": 91, "batch": 64},
        "names": {"hidden": 200, "embedding": 300, "side": 32, "epochs": 50, "window": 5, "batch": 16},
    },
}
_SEEDS: dict[Scale, int] = {"smoke": 1, "cpu": 1, "paper": 3}
# The paper names the optimisers, and dropout for relations. It does not say: the rates and momentum (at these the GRU
# learns well on dev at scale cpu), the shares dropped, whether word vectors began at random here too (as they did for
# sentiment), how the two nominals are marked (by words, here), and what of a word's shape the tagger sees (nothing
# here: words are lower-cased, as the authors' files are).
_MODEL: dict[str, dict[str, Any]] = {
    "relations": {"dropout": 0.5, "word_dropout": 0.1, "bidirectional": False, "pooling": "last"},
    "names": {"dropout": 0.5, "word_dropout": 0.1, "bidirectional": True, "crf": True, "shapes": 0},
}
_TRAINING: dict[str, dict[str, Any]] = {
    "relations": {"optimiser": "adagrad", "lr": 0.05, "clip": 5.0},
    "names": {"optimiser": "sgd", "lr": 0.1, "momentum": 0.9, "clip": 5.0},
}
_TASKS = {"relations": "relate", "names": "tag"}
_SMALL = (32, 16, 16)
_DIRECTION = re.compile(r"\((?:e1,e2|e2,e1)\)$")


class RelationsAndNames(Experiment):
    """One training a trial."""

    name = "implicit-ngrams/table4"
    title = "F1 on relations and on named entities of n-gram models and recurrent networks"
    source = "Sun and Lu (2022), Implicit n-grams, table 4"

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the models, task by task."""
        listed = []
        models = (*_TELLING, *(model for model in PUBLISHED if model not in _TELLING))
        for seed, (column, sizes), model in product(range(_SEEDS[scale]), _SIZES[scale].items(), models):
            if scale == "smoke" and column != COLUMNS[0] and model not in models[:2]:
                continue  # that each model trains, the first task has shown
            chosen: dict[str, Any] = {**sizes, **_MODEL[column], **_TRAINING[column]}
            if model != "VA-W":
                del chosen["window"]
            if model == "MM":
                chosen["dropout"] = 0.0  # a product of matrices with holes is soon nothing, or very large
            made_up = {"made_up": True} if scale == "smoke" else {}
            settings = {"model": model, "column": column, **made_up, **chosen, "seed": seed}
            listed.append(Trial(f"{model} on {column}, seed {seed}", settings))
        return listed

    def run(self, trial: Trial, bench: Bench) -> Mapping[str, Any]:
        """Train, choose the epoch on dev, measure on test."""
        chosen, column = trial.settings, trial.settings["column"]
        corpus = _read(column, "made_up" in chosen, bench.data)
        if "examples" in chosen:
            corpus = corpus.sample(chosen["examples"])
        model = {name: chosen[name] for name in ("hidden", "embedding", *_MODEL[column])}
        if chosen["model"] == "MM":
            model["hidden"] = model["embedding"] = chosen["side"] ** 2
        model["encoder"] = _ENCODERS[chosen["model"]]
        model["options"] = {"window": chosen["window"]} if "window" in chosen else {}
        training = {name: chosen[name] for name in ("epochs", "batch", *_TRAINING[column], "seed")}
        try:
            return figures(learn(bench, _TASKS[column], corpus, model, training))
        except DivergedError as error:  # products of many matrices may well: that it fails is a result
            return {"diverged": what_broke(error)}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Lay F1 beside the published one."""
        rows: list[Sequence[str | Number]] = []
        for model in PUBLISHED:
            if any(result.trial.settings["model"] == model for result in results):
                rows.append((model, *(_cell(results, model, *place) for place in product(COLUMNS, _SPLITS))))
        columns = [f"{column}, {split}" for column, split in product(COLUMNS, _SPLITS)]
        title = "F1, %: macro-averaged over nine relations, and of entities; (–): published as failed to converge"
        return Report([Table(title, ("model", *columns), rows)])


def _read(column: str, made_up: bool, folder: Path | None) -> Relations | Tagging:
    if column == "names":
        return entities(_SMALL) if made_up else load_once("conll2003", Tagging, folder)
    return without_directions(relations(_SMALL) if made_up else load_once("semeval2010", Relations, folder))


def without_directions(corpus: Relations) -> Relations:
    """Make one class of a relation and its reverse: the paper counts ten classes (table 6), not nineteen.

    Args:
        corpus: whose relations have directions.

    Returns:
        The same sentences, of fewer classes.
    """
    merged = [_DIRECTION.sub("", label) for label in corpus.labels]
    labels = tuple(dict.fromkeys(merged))
    train, dev, test = (
        tuple(Example(example.tokens, labels.index(merged[example.label])) for example in split)
        for split in (corpus.train, corpus.dev, corpus.test)
    )
    return replace(corpus, labels=labels, train=train, dev=dev, test=test)


def _number(results: Sequence[Result], model: str, column: str, split: str) -> Number:
    """The F1 of the trainings that came to an end."""
    ended = (result for result in where(results, model=model, column=column) if "diverged" not in result.values)
    theirs = PUBLISHED[model][2 * COLUMNS.index(column) + _SPLITS.index(split)]
    published = None if theirs is None else theirs / 100
    return Number([result[f"{split}_f1"] for result in ended], published, digits=1, percent=True)


def _cell(results: Sequence[Result], model: str, column: str, split: str) -> str | Number:
    return cell(_number(results, model, column, split), ran=bool(where(results, model=model, column=column)))
