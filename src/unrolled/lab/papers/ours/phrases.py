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
from unrolled.lab.papers.framework.bootstrap import interval
from unrolled.lab.papers.framework.experiment import SCALES, Experiment, Report, Result, Scale, Trial, TrialSetup
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid, legend_below, write_seeds
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_corpora import read_or_make_up
from unrolled.lab.papers.framework.trial_training import full_settings, train_once

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        figures = {name: partial(_draw, results), f"{name}-length": partial(_draw_lengths, results)}
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


def _by_length(measured: Sequence[Mapping[str, Any]]) -> list[tuple[Sequence[float] | None, ...]]:
    """Give for each range of lengths the correlations of all seeds, None where there are no such phrases."""
    return list(zip(*(each["by_length"] for each in measured), strict=True))


def _mean(measured: Sequence[Mapping[str, Any]], name: str, place: int) -> float:
    return fmean(each[name][place] for each in measured)


def _less_alone(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Sequence[str | Number]]:
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


def _tables(encoder: str, found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Table]:
    """Make the tables of one network."""
    if not found:
        return
    rows: list[Sequence[str | Number]] = []
    long: list[Sequence[str | Number]] = []
    terms: list[Sequence[str | Number]] = []
    for method, measured in found.items():
        low, high = (_mean(measured, "pearson", place) for place in (1, 2))
        rows.append((
            method,
            Number([each["pearson"][0] for each in measured], FIRST[encoder].get(method), digits=3),
            f"{low:.3f} to {high:.3f}",
            Number([each["spearman"][0] for each in measured], digits=3),
            f"{_mean(measured, 'spearman', 1):.3f} to {_mean(measured, 'spearman', 2):.3f}",
            Number([each["cost"] for each in measured], digits=1),
        ))  # fmt: skip
        by_length = [[span[0] for span in spans if span] for spans in _by_length(measured)]
        long.append((method, *(Number(values, digits=3) for values in by_length)))
        if "ngram" in measured[0]:
            theirs = _ERROR_OF_ZERO[encoder] if method == "zero" else None
            terms.append((
                method,
                Number([each["ngram"][0] for each in measured], digits=3),
                f"{_mean(measured, 'ngram', 1):.3f} to {_mean(measured, 'ngram', 2):.3f}",
                Number([each["error"][0] for each in measured], theirs, digits=2, percent=True),
                Number([each["error"][1] for each in measured], digits=2, percent=True),
            ))  # fmt: skip
    count, name = next(iter(found.values()))[0]["phrases"], _ENCODERS[encoder]
    columns: tuple[str, ...] = ("score of a phrase", "Pearson", "95 %", "Spearman", "95 %", "cost")
    yield Table(f"{name}: correlation with the labels of {count:,} phrases; cost in runs of the network", columns, rows)
    columns = ("score of a phrase", *(range_name(low, high) for low, high in LENGTH_RANGES))
    yield Table(f"{name}: Pearson correlation by words in the phrase", columns, long)
    if rows := list(_less_alone(found)):
        title = f"{name}: Pearson correlation less that of the phrase alone, on the same networks and resamples"
        yield Table(title, ("score of a phrase", "difference", "95 %"), rows)
    if terms:
        columns = ("expansion", "n-gram alone, Pearson", "95 %", "error of the last state, %, mean", "median")
        yield Table(f"{name}: the n-gram's own term, and the error of the sum of terms", columns, terms)


def _draw(results: Sequence[Result]) -> Figure:
    gathered = {encoder: _of(results, encoder) for encoder in _ENCODERS}
    methods = [method for method in _SHOWN if any(method in found for found in gathered.values())]
    figure, (panel,) = grid(1, 1, width=6.4, height=1.4 + 0.2 * len(methods))
    for number, (encoder, found) in enumerate(gathered.items()):
        rows = [(place + 0.3 * number - 0.15, method) for place, method in enumerate(methods) if method in found]
        values, low, high = ([_mean(found[method], "pearson", end) for _, method in rows] for end in range(3))
        spread = [[abs(value - end) for value, end in zip(values, ends, strict=True)] for ends in (low, high)]
        heights, colour, marker = [height for height, _ in rows], COLOURS[number], MARKERS[number]
        label = _ENCODERS[encoder]
        panel.errorbar(values, heights, xerr=spread, linestyle="none", color=colour, marker=marker, label=label)
        theirs = [(FIRST[encoder][method], height) for height, method in rows if method in FIRST[encoder]]
        if theirs:
            xs, ys, label = [x for x, _ in theirs], [y for _, y in theirs], f"{label}, first measurement"
            panel.scatter(xs, ys, s=30, facecolors="none", edgecolors=colour, marker=marker, label=label)
    panel.axvline(0, color="#888888", linewidth=1)
    panel.set(xlabel="Pearson correlation with labels, 95 % intervals")
    panel.set_yticks(range(len(methods)), methods)
    panel.invert_yaxis()
    legend_below(figure, panel, 2)
    return figure


def _draw_lengths(results: Sequence[Result]) -> Figure:
    """Draw the correlations of some methods over the ranges of lengths, with their intervals, a panel a network."""
    figure, panels = grid(1, len(_ENCODERS), width=3.6, height=3.4)
    lines = {}
    for panel, (encoder, name) in zip(panels, _ENCODERS.items(), strict=True):
        found = _of(results, encoder)
        for number, method in enumerate((ALONE, _IG, "secant", "shares", "mean(operating, path)", "zero", _CD)):
            if method not in found:
                continue
            spans = [[span for span in spans if span] for spans in _by_length(found[method])]
            places = [place for place, span in enumerate(spans) if span]
            values, low, high = ([fmean(each[end] for each in spans[place]) for place in places] for end in range(3))
            colour, marker = COLOURS[number], MARKERS[number]
            (lines[method],) = panel.plot(places, values, color=colour, marker=marker, label=method)
            panel.fill_between(places, low, high, color=colour, alpha=0.12, linewidth=0)
        panel.set(title=name, xlabel="words in the phrase", xlim=(-0.2, len(LENGTH_RANGES) - 0.8))
        panel.set_xticks(range(len(LENGTH_RANGES)), [range_name(*each) for each in LENGTH_RANGES])
    write_seeds(panels, results)
    panels[0].set_ylabel("Pearson correlation")
    figure.legend(handles=list(lines.values()), loc="outside lower center", ncols=3)
    return figure
