"""Agreement of phrase scores with human labels: n-gram terms, and the methods that they compete with.

Sentiment networks that learned all phrases of SST-2 score the phrases of SST's test sentences, each of which annotators
labelled. A score is evaluated by its correlation with the labels, over all phrases of two words or more that are not
the whole sentence. Intervals come from resampling sentences, because phrases of one sentence overlap. The tables also
show the cost: the time for all phrases, in units of one run of the network over the sentences.

An expansion's score of a phrase is the sum of the terms of the n-grams inside it that end at its end. ``account`` and
layer-wise relevance propagation (LRP) give each word a number, and a phrase the sum of its words'. Both, secant and
shares were added after the other scores had been seen; they are measured at scale day alone.

All 2,210 test sentences are scored; at scale cpu with 3 epochs and one seed, above it with 10 and three. The
numbers in brackets are an earlier measurement, made before this library: 12,231 phrases of 700 test sentences, networks
of 128 units.

Source:
    Our own question. Human labels: Socher et al. (2013), https://aclanthology.org/D13-1170.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any, cast

from unrolled.lab.data.corpus import Classification
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.datasets.sst import read_trees
from unrolled.lab.papers.analyses.attribution_methods.labelled_phrases import (
    LENGTH_RANGES,
    LabelledPhrases,
    negation_trees,
    range_name,
)
from unrolled.lab.papers.analyses.attribution_methods.phrase_scores import PolarityModel
from unrolled.lab.papers.analyses.faithfulness.phrase_evaluation import (
    ACCOUNT,
    ALONE,
    AT_PHRASE_END,
    CONTEXTUAL_DECOMPOSITION,
    GRADIENT_TIMES_INPUT,
    INTEGRATED_GRADIENTS,
    RANDOM,
    RELEVANCE,
    evaluate_method,
    time_one_run,
)
from unrolled.lab.papers.analyses.faithfulness.phrase_figures import (
    Measurements,
    by_length,
    draw_by_length,
    draw_correlations,
    mean_of,
)
from unrolled.lab.papers.framework.bootstrap import interval
from unrolled.lab.papers.framework.experiment import SCALES, Experiment, Report, Result, Scale, Trial, TrialSetup
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_corpora import read_or_make_up
from unrolled.lab.papers.framework.trial_training import full_settings, train_once

if TYPE_CHECKING:
    from unrolled.lab.models.classifier import Classifier
    from unrolled.lab.tasks.classify import Classify

__all__ = ["FIRST", "PhraseAgreement"]

_ENCODERS = {"lstm": "LSTM", "gru": "GRU"}
_EXACT = ("operating", "path", "gates")
_MEANS = ("mean(operating, path)", "mean(operating, gates)", "mean(path, gates)", "mean(operating, path, gates)")
_EXPANSIONS = ("zero", *_EXACT, *_MEANS, "activation", "taylor(2)", "taylor(3)")
_HERE, _IG, _GI, _CD = AT_PHRASE_END, INTEGRATED_GRADIENTS, GRADIENT_TIMES_INPUT, CONTEXTUAL_DECOMPOSITION
_LATER = ("secant", "shares", "shares(0.5)")
_ACCOUNTS = (ACCOUNT, ACCOUNT + _HERE, f"{ACCOUNT}, shares", f"{ACCOUNT}, shares{_HERE}")
_GROUPS: dict[str, tuple[str, ...]] = {
    "expansions": _EXPANSIONS,
    "baselines": (ALONE, _GI, _GI + _HERE, RANDOM),
    "contextual decomposition": (_CD, _CD + _HERE),
    "integrated gradients": (_IG, _IG + _HERE),
    "further methods": (*_LATER, *_ACCOUNTS),
    "relevance propagation": (RELEVANCE, RELEVANCE + _HERE),
}
"""What one trial measures; the group that needs an optional library comes last."""
_OF_THE_LSTM = ("contextual decomposition", "relevance propagation")
"""The groups that are defined for an LSTM alone."""
_NOT_AT_CPU = ("further methods", "relevance propagation")
"""The networks of scale cpu are those of the first seed of scale day, which measures these groups."""
_SHOWN = (ALONE, _IG, _IG + _HERE, *_LATER, *_ACCOUNTS, *_MEANS, *_EXACT, "taylor(3)", "taylor(2)", "zero",
          "activation", _CD, _CD + _HERE, RELEVANCE, RELEVANCE + _HERE, _GI, _GI + _HERE, RANDOM)  # fmt: skip

_DRAWN_BY_LENGTH = (ALONE, _IG, "secant", "shares", "mean(operating, path)", "zero", _CD)

FIRST: dict[str, dict[str, float]] = {
    "lstm": {
        ALONE: 0.550, _IG: 0.547, "operating": 0.519, "path": 0.520, "gates": 0.513, "mean(operating, path)": 0.544,
        _CD: 0.453, "zero": 0.399,
    },
    "gru": {
        ALONE: 0.569, _IG: 0.561, "operating": 0.567, "path": 0.553, "gates": 0.548, "mean(operating, path)": 0.569,
        "zero": 0.485,
    },
}  # fmt: skip
"""Pearson's correlation with the labels."""
_ERROR_OF_ZERO = {"lstm": 9.11, "gru": 1.69}  # it does not say whether mean or median: taken as the mean

_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"sentences": 20, "draws": 10, "steps": 4, "seeds": 1},
    "cpu": {"sentences": None, "draws": 500, "steps": 32, "seeds": 1},
    "day": {"sentences": None, "draws": 500, "steps": 32, "seeds": 3},
    "paper": {"sentences": None, "draws": 1000, "steps": 32, "seeds": 3},
}
"""``draws``: resamples of the sentences for an interval; ``steps``: points of integrated gradients."""
_TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"epochs": 1, "batch": 16},
    "cpu": {"epochs": 3},
    "day": {"epochs": 10},
    "paper": {"epochs": 10},
}


class PhraseAgreement(Experiment):
    """A trial is one network and one group of scores."""

    name = "ours/phrases"
    title = "Agreement of phrase scores with human labels"
    source = "our own question; in brackets an earlier measurement of ours, on 700 test sentences"
    scales = tuple(SCALES)
    usual_hours = 0.1
    published = False

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the groups of scores, network by network; those that need captum come last."""
        sizes = dict(_SIZES[scale])
        seeds, smoke, trials = sizes.pop("seeds"), scale == "smoke", []
        small = {"hidden": 8, "embedding": 8} if smoke else {}
        groups = {name: methods for name, methods in _GROUPS.items() if scale != "cpu" or name not in _NOT_AT_CPU}
        for seed, (group, methods) in product(range(seeds), groups.items()):
            for encoder in ("lstm",) if group in _OF_THE_LSTM else _ENCODERS:
                settings = {
                    "data": "made-up negation" if smoke else "sst2",
                    "group": group,
                    "methods": list(methods),
                    **full_settings("classify", {"encoder": encoder, **small}, {**_TRAINING[scale], "seed": seed}),
                    **sizes,
                }
                trials.append(Trial(f"{_ENCODERS[encoder]}, {group}, seed {seed}", settings))
        return sorted(trials, key=lambda trial: trial.settings["group"] == "integrated gradients")

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Score the phrases, and correlate the scores with their labels."""
        chosen = trial.settings
        made_up = chosen["data"] == "made-up negation"
        corpus = read_or_make_up(chosen["data"], Classification, setup.data)
        run = train_once(setup, "classify", corpus, chosen["model"], chosen["training"])
        trees = negation_trees(corpus.test) if made_up else read_trees(find_file("sst/test.txt", setup.data))
        if chosen["sentences"] is not None:
            trees = random.Random(0).sample(trees, chosen["sentences"])  # noqa: S311  # no secret
        phrases = LabelledPhrases.from_trees(trees)
        reader = PolarityModel(cast("Classifier", run.model), cast("Classify", run.task).vocabulary)
        once, found = time_one_run(reader, phrases), {}
        for method in chosen["methods"]:
            found[method] = evaluate_method(method, reader, phrases, once, chosen["draws"], chosen["steps"])
            setup.log(f"{method}: {found[method]['pearson'][0]:.3f}, at the cost of {found[method]['cost']:.1f} runs")
        return {
            "sentences": len(phrases.sentences),
            "phrases": len(phrases),
            "accuracy": run.metrics["test_accuracy"],
            "methods": found,
        }

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate correlations, their intervals and costs."""
        tables = [table for encoder in _ENCODERS for table in _tables(encoder, _of(results, encoder))]
        name = "ours-phrases"
        found = {title: _of(results, encoder) for encoder, title in _ENCODERS.items()}
        first = {title: FIRST[encoder] for encoder, title in _ENCODERS.items()}
        figures = {
            name: partial(draw_correlations, found, first, _SHOWN),
            f"{name}-length": partial(draw_by_length, results, found, _DRAWN_BY_LENGTH),
        }
        intervals = "95% bootstrap intervals over sentences, at their mean over the seeds"
        end = f"{intervals}{_fewer_seeds(results)}."
        return Report(tables, figures, {name: f"bars are {end}", f"{name}-length": f"bands are {end}"})


def _of(results: Sequence[Result], encoder: str) -> dict[str, list[Mapping[str, Any]]]:
    """Collect the measurements of each score, seed by seed, in the order of the table."""
    chosen = [result for result in results if result.trial.settings["model"]["encoder"] == encoder]
    found: dict[str, list[Mapping[str, Any]]] = {}
    for method, result in product(_SHOWN, chosen):
        if method in result["methods"]:
            found.setdefault(method, []).append({
                **result["methods"][method], "phrases": result["phrases"], "seed": result.trial.seed,
            })  # fmt: skip
    return found


def _fewer_seeds(results: Sequence[Result]) -> str:
    """Name the scores that were measured on fewer seeds than the others, as the end of a caption."""
    counts = {method: len(found) for each in _ENCODERS for method, found in _of(results, each).items()}
    fewer = [method for method, count in counts.items() if count < max(counts.values())]
    return f"; on fewer seeds: {'; '.join(fewer)}" if fewer else ""


def _less_alone(found: Measurements) -> Iterator[Sequence[str | Number]]:
    """Compare each score with the run of the network on the phrase alone, over the seeds that both have."""
    alone = {each["seed"]: each for each in found.get(ALONE, ())}
    for method, measured in found.items():
        both = [(each, alone[each["seed"]]) for each in measured if each["seed"] in alone]
        if method != ALONE and both:
            apart = [each["pearson"][0] - other["pearson"][0] for each, other in both]
            draws = [fmean(some) for some in zip(*(_apart(*pair) for pair in both), strict=True)]
            low, high = interval(draws)
            yield method, Number(apart, digits=3), f"{low:.3f} to {high:.3f}"


def _apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[float]:
    """Subtract correlations resample by resample."""
    return [mine - theirs for mine, theirs in zip(one["draws"], other["draws"], strict=True)]


def _tables(encoder: str, found: Measurements) -> Iterator[Table]:
    """Make the tables of one network."""
    if not found:
        return
    name = _ENCODERS[encoder]
    yield _correlations(encoder, found)
    rows: list[Sequence[str | Number]] = []
    for method, measured in found.items():
        values = ([span[0] for span in spans if span] for spans in by_length(measured))
        rows.append((method, *(Number(each, digits=3) for each in values)))
    columns = ("score of a phrase", *(range_name(low, high) for low, high in LENGTH_RANGES))
    yield Table(f"{name}: Pearson correlation by words in the phrase", columns, rows)
    if rows := list(_less_alone(found)):
        title = f"{name}: Pearson correlation less that of the phrase alone, on the same networks and resamples"
        yield Table(title, ("score of a phrase", "difference", "95 %"), rows)
    if rows := list(_own_terms(encoder, found)):
        columns = ("expansion", "n-gram alone, Pearson", "95 %", "error of the last state, %, mean", "median")
        yield Table(f"{name}: the n-gram's own term, and the error of the sum of terms", columns, rows)


def _correlations(encoder: str, found: Measurements) -> Table:
    """Tabulate the correlations of each score with the labels, and its cost."""
    rows: list[Sequence[str | Number]] = [
        (
            method,
            Number([each["pearson"][0] for each in measured], FIRST[encoder].get(method), digits=3),
            _interval(measured, "pearson"),
            Number([each["spearman"][0] for each in measured], digits=3),
            _interval(measured, "spearman"),
            Number([each["cost"] for each in measured], digits=1),
        )
        for method, measured in found.items()
    ]
    count = next(iter(found.values()))[0]["phrases"]
    title = f"{_ENCODERS[encoder]}: correlation with the labels of {count:,} phrases; cost in runs of the network"
    return Table(title, ("score of a phrase", "Pearson", "95 %", "Spearman", "95 %", "cost"), rows)


def _own_terms(encoder: str, found: Measurements) -> Iterator[Sequence[str | Number]]:
    """Compare the n-grams' own terms of each expansion with the labels, and their sums with the last state."""
    for method, measured in found.items():
        if "ngram" in measured[0]:
            theirs = _ERROR_OF_ZERO[encoder] if method == "zero" else None
            yield (
                method,
                Number([each["ngram"][0] for each in measured], digits=3),
                _interval(measured, "ngram"),
                Number([each["error"][0] for each in measured], theirs, digits=2, percent=True),
                Number([each["error"][1] for each in measured], digits=2, percent=True),
            )


def _interval(measured: Sequence[Mapping[str, Any]], name: str) -> str:
    """Show the interval of a correlation, at its mean over the seeds."""
    return f"{mean_of(measured, name, 1):.3f} to {mean_of(measured, name, 2):.3f}"
