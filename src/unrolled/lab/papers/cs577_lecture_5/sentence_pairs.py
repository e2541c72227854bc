"""Pairs of sentences that a language model should tell apart: garden paths, coreference, order and choice of words.

The lecture shows garden-path sentences and asks which noun a pronoun means. The notes of CS 224D say that a language
model ranks orders of words ("the cat is small" above "small the is cat") and choices of words. Neither has numbers. The
sentences here are our own (``analyses/sentences/sentence_pairs.py``); models learn the Penn Treebank and read each
sentence after the end of a line, as ``unrolled score`` does.

- Garden paths: the surprisal of the word that excludes the first reading, after a beginning that suggests it and after
  a control that does not. The control has one word more, or a verb without an object.
- Coreference: two beginnings differ in one noun, each with the word that agrees with it. A choice is right if the word
  that agrees is likelier than the other. A frequent word can win both choices of a pair. So a pair is right if the
  noun moves the choice: the log-ratio of the two words differs between the beginnings in the right direction.
- Order and choice of words: the better text of a pair has fewer bits.

The controls are counts with Kneser-Ney smoothing. They see two or four words; a noun further away, or
n-grams that the training text does not have, cannot move a choice. Such a pair ties and counts a half.

Source:
    CS 577, lecture 5; CS 224D, lecture notes IV (2015), section 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import itemgetter
from statistics import fmean
from typing import TYPE_CHECKING, Any, cast

from unrolled.lab.data.corpus import END_OF_LINE, Words
from unrolled.lab.data.stream_encoding import build_vocabulary
from unrolled.lab.models.ngram_lm import NGramLanguageModel
from unrolled.lab.papers.analyses.sentences.sentence_pairs import (
    CHOICES,
    GARDEN_PATHS,
    TEXTS,
    GardenPath,
    Texts,
    WordChoice,
)
from unrolled.lab.papers.framework.experiment import SCALES, Experiment, Report, Result, Scale, Trial, TrialSetup, where
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_corpora import read_or_make_up
from unrolled.lab.papers.framework.trial_training import run_metrics, train_once

if TYPE_CHECKING:
    from unrolled.lab.models.language_model import LanguageModel
    from unrolled.lab.training.language_modelling import LanguageTask
    from unrolled.lab.training.run_folder import Run

__all__ = ["SentencePairs"]

Scorer = Callable[[Sequence[str]], list[float]]
"""Gives the surprisal of every word of a text, in bits."""

_ORDERS = {"3-gram counts": 3, "5-gram counts": 5}
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"embedding": 8, "hidden": 8},
    "cpu": {"embedding": 200, "hidden": 200, "adaptive": "on"},
    "day": {"embedding": 256, "hidden": 256},
    "paper": {"embedding": 256, "hidden": 256},
}
_TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"epochs": 1, "batch": 4},
    "cpu": {"epochs": 3},
    "day": {"epochs": 12},
    "paper": {"epochs": 12},
}
_NETWORKS: dict[Scale, Mapping[str, str]] = {
    "smoke": {"GRU": "gru"},
    "cpu": {"GRU": "gru"},
    "day": {"GRU": "gru", "LSTM": "lstm", "RNN": "rnn"},  # those of cs224d-notes-4/language
    "paper": {"GRU": "gru", "LSTM": "lstm", "RNN": "rnn"},
}
_SEEDS: dict[Scale, int] = {"smoke": 1, "cpu": 1, "day": 1, "paper": 3}
_LEAST = 2.0**-100
"""Counts of the made-up text, which has no <unk>, give an unknown word probability 0; JSON has no infinity."""
_HOURS, _COUNT_HOURS = 1.0, 0.05
"""Estimated hours of a training and of a count model at scale day, on one core."""


class SentencePairs(Experiment):
    """A trial is one model, asked about every pair."""

    name = "cs577-lecture-5/sentence-pairs"
    title = "Garden paths, coreference, and the order and choice of words"
    source = (
        "CS 577, lecture 5, and CS 224D, lecture notes IV, section 1: examples without numbers; sentences of our own"
    )
    scales = tuple(SCALES)

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the networks, seed by seed, then the counts."""
        data = {"data": "made up" if scale == "smoke" else "ptb"}
        trained = [
            Trial(
                f"{name}, seed {seed}",
                {
                    **data,
                    "model": name,
                    "architecture": {"encoder": encoder, **_SIZES[scale]},
                    "training": {**_TRAINING[scale], "seed": seed},
                },
            )
            for seed, (name, encoder) in product(range(_SEEDS[scale]), _NETWORKS[scale].items())
        ]
        return [*trained, *(Trial(name, {**data, "model": name, "order": order}) for name, order in _ORDERS.items())]

    def day_hours(self, trial: Trial) -> float:
        """Estimate by whether a network is trained."""
        return _COUNT_HOURS if "order" in trial.settings else _HOURS

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train or count, and score every pair."""
        chosen = trial.settings
        corpus = read_or_make_up(chosen["data"], Words, setup.data)
        if "order" in chosen:
            counts = NGramLanguageModel(chosen["order"]).fit(corpus.train, build_vocabulary(corpus.train))
            return {"test_perplexity": counts.perplexity(corpus.test), **_ask(_by_counts(counts))}
        run = train_once(setup, "lm", corpus, chosen["architecture"], chosen["training"])
        return {**run_metrics(run), **_ask(_by_network(run))}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Give a table for each question by model and kind, and one for each with all pairs of the first network."""
        models = [model for model in (*_NETWORKS[scale], *_ORDERS) if where(results, model=model)]
        tables = [_by_kind(question, {model: where(results, model=model) for model in models}) for question in _ASKED]
        if models and models[0] not in _ORDERS:
            tables += _every_pair(models[0], where(results, model=models[0]))
        return Report(tables)


def _by_network(run: Run) -> Scorer:
    """Score by a language model, a text after the end of a line."""
    from unrolled.lab.models.surprisal import surprisals

    task, model = cast("LanguageTask", run.task), cast("LanguageModel", run.model)
    return lambda text: surprisals(model, task.line_end, task.vocabulary.encode(text), task.architecture.bptt)


def _by_counts(counts: NGramLanguageModel) -> Scorer:
    """Score by counts, a text after the end of a line."""

    def score(text: Sequence[str]) -> list[float]:
        read = (END_OF_LINE, *text)
        found = (counts.probability(word, read[:place]) for place, word in enumerate(read) if place)
        return [-math.log2(max(each, _LEAST)) for each in found]

    return score


def _ask(score: Scorer) -> dict[str, Any]:
    """Give the bits of every pair, in the order of the lists of pairs."""

    def last(beginning: str, word: str) -> float:
        return round(score((*beginning.split(), word))[-1], 4)

    return {
        "garden": [[last(each, pair.word) for each in (pair.misleading, pair.control)] for pair in GARDEN_PATHS],
        "choices": [
            [last(*each) for each in product((pair.first, pair.second), (pair.after_first, pair.after_second))]
            for pair in CHOICES
        ],
        "texts": [[round(sum(score(each.split())), 4) for each in (pair.better, pair.worse)] for pair in TEXTS],
    }


def _above(one: float, other: float) -> float:
    """Return 1 if the first number is larger, 0 if it is smaller, and 1/2 for equal ones, rounding aside."""
    return 0.5 if math.isclose(one, other, abs_tol=1e-3) else float(one > other)


@dataclass(frozen=True)
class _Question:
    """A table: the pairs that results hold under a name, and what each column takes from the bits of a pair."""

    name: str
    title: str
    pairs: Sequence[GardenPath | WordChoice | Texts]
    columns: Mapping[str, Callable[[Sequence[float]], float]]
    """By title; those that end in % are shares."""


_ASKED = (
    _Question(
        "garden",
        "Garden paths: mean surprisal of the word that excludes the first reading, bits, and pairs in which it is "
        "larger after the garden path than after the control (chance 50)",
        GARDEN_PATHS,
        {"garden path": itemgetter(0), "control": itemgetter(1), "larger, %": lambda bits: _above(*bits)},
    ),
    _Question(
        "choices",
        "Coreference: choices that are right, and pairs in which the noun moves the choice rightly (chance 50)",
        CHOICES,
        {
            "choices, %": lambda bits: (_above(bits[1], bits[0]) + _above(bits[2], bits[3])) / 2,
            "pairs, %": lambda bits: _above(bits[1] + bits[2], bits[0] + bits[3]),
        },
    ),
    _Question(
        "texts",
        "Order and choice of words: mean bits of the better and of the worse text, and pairs in which the better one "
        "has fewer (chance 50)",
        TEXTS,
        {"better": itemgetter(0), "worse": itemgetter(1), "fewer, %": lambda bits: _above(bits[1], bits[0])},
    ),
)


def _by_kind(question: _Question, results: Mapping[str, Sequence[Result]]) -> Table:
    """Average over the pairs of each kind, and over all."""
    kinds = {pair.kind: [place for place, each in enumerate(question.pairs) if each.kind == pair.kind]
             for pair in question.pairs}  # fmt: skip
    kinds["all"] = list(range(len(question.pairs)))
    rows: list[Sequence[str | Number]] = []
    for (kind, places), (model, ran) in product(kinds.items(), results.items()):
        cells = [
            Number(
                [fmean(measure(result[question.name][place]) for place in places) for result in ran],
                digits=1,
                percent=title.endswith("%"),
            )
            for title, measure in question.columns.items()
        ]
        rows.append((kind, model, str(len(places)), *cells))
    return Table(question.title, ("kind", "model", "pairs", *question.columns), rows)


def _every_pair(model: str, results: Sequence[Result]) -> list[Table]:
    """Show the bits of every pair, for one model."""

    def bits(name: str, place: int, which: int) -> Number:
        return Number([result[name][place][which] for result in results], digits=1)

    paths: list[Sequence[str | Number]] = [
        (pair.misleading, pair.control, pair.word, bits("garden", place, 0), bits("garden", place, 1))
        for place, pair in enumerate(GARDEN_PATHS)
    ]
    choices: list[Sequence[str | Number]] = []
    for place, pair in enumerate(CHOICES):
        right, wrong = pair.after_first, pair.after_second
        choices += [
            (pair.first, right, wrong, bits("choices", place, 0), bits("choices", place, 1)),
            (pair.second, wrong, right, bits("choices", place, 3), bits("choices", place, 2)),
        ]
    texts: list[Sequence[str | Number]] = [
        (pair.better, pair.worse, bits("texts", place, 0), bits("texts", place, 1)) for place, pair in enumerate(TEXTS)
    ]
    read = ("garden path", "control", "word", "bits, garden path", "bits, control")
    said = ("beginning", "right", "wrong", "bits, right", "bits, wrong")
    return [
        Table(f"{model}: surprisal of the word, every garden path", read, paths),
        Table(f"{model}: surprisal of the word that agrees and of the other", said, choices),
        Table(f"{model}: bits of every text", ("better", "worse", "bits, better", "bits, worse"), texts),
    ]
