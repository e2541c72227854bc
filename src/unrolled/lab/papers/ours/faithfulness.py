"""Which attribution names the words that a prediction needs? Expansions and other methods, on networks of many kinds.

A method ranks the words of a text by their attribution to the predicted class; its score is comprehensiveness less
sufficiency, averaged over deletions of 5, 10, 20 and 50% of the words. A trial is one network with one family of
methods. All methods explain the same texts; the slow ones explain the first of them only. The tables show test texts.
The expansions are measured on 100 dev texts as well, without their labels: a choice of the expansion by the model's own
behaviour would use these. The networks on which the default is compared are trained three times; the other networks,
the slow methods and the dev texts have one training. The second and third trainings were run after the first had been
read. Two methods are compared on the trainings that both have. Intervals come from resampling texts, after averaging
over trainings; they say nothing of further trainings.

Two families were added after the others had been read: ``sizes``, in which peers have small numbers of samples and
their usual ones, and ``further expansions``, with the shares p and every expansion that ranks words. The usual numbers
are those of the package shap (2M + 2048 samples for M words) and of captum (50 points, 25 orders; its own kernel SHAP
and LIME take 25 samples). LIME has 1000 samples; the package lime takes 5000, which are too slow here.
All methods of a trial explain one training, and a pair is compared within a trial only: on another machine the same
seed may train another network.

The default expansion, secant, and p = 3/4 of ``shares`` were chosen before this item was made, on networks of which no
result is kept: nothing here is evidence for that choice but what the tables of dev texts say.
A network keeps the weights of its best epoch on dev; one that is over-trained those of its best epoch on training
texts, which is most often the last.

Source:
    Our own question; the measures are those of ``analyses/faithfulness/deletion.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any, cast

from unrolled.errors import ConvergenceError, UsageError
from unrolled.lab.papers.analyses.attribution_methods.explained_texts import batch_texts
from unrolled.lab.papers.analyses.faithfulness.choices import choice_table
from unrolled.lab.papers.analyses.faithfulness.measures import measure_method, time_gradient
from unrolled.lab.papers.analyses.faithfulness.scores import difference
from unrolled.lab.papers.analyses.faithfulness.sizes import (
    against_table,
    compared_table,
    mean_table,
    missing_table,
)
from unrolled.lab.papers.analyses.faithfulness.tables import (
    comparison_table,
    draw_differences,
    measured_methods,
    measures_table,
    networks_table,
    score_table,
    training_table,
)
from unrolled.lab.papers.analyses.text_classifiers import KINDS, OVER_TRAINED, SMOKE_NETWORKS, draw_texts, learn, read
from unrolled.lab.papers.framework.experiment import Experiment, Report, Result, Scale, Trial, TrialSetup, where
from unrolled.lab.papers.framework.table import Table

if TYPE_CHECKING:
    from unrolled.lab.tasks.classify import Classify

__all__ = ["Faithfulness"]

_IG = "integrated gradients, 32"
_FAMILIES: dict[str, tuple[str, ...]] = {
    "expansions": ("secant", "path", "shares", "operating", "gates", "mean(operating, path)", "zero", "account",
                   "account, shares"),
    "others": (_IG, "gradient x input", "DeepLift", "LRP", "contextual decomposition", "occlusion",
               "occlusion by <unk>", "random"),
    "sampling": ("kernel SHAP, 200", "LIME, 200", "Shapley sampling, 10"),
    "many points": ("integrated gradients, 300",),
}  # fmt: skip
_METHODS = tuple(method for family in _FAMILIES.values() for method in family)
_PS = ("shares(0)", "shares(0.25)", "shares(0.5)", "shares", "shares(1)")
"""``shares`` with the share p from 0 to 1; without a number it is 0.75."""
_EXACT = (
    "secant", *_PS, "operating", "gates", "mean(operating, path)", "mean(operating, gates)", "mean(path, gates)",
    "mean(operating, path, gates)", "account", "account, shares",
)  # fmt: skip
_FURTHER: dict[str, tuple[str, ...]] = {
    "further expansions": (*_EXACT, "zero", "activation", "taylor(2)", "taylor(3)"),
    "sizes": ("secant", "shares", "account, shares", "gradient x input", "DeepLift", "LRP", "occlusion",
              "occlusion by <unk>", "contextual decomposition", "agglomerative contextual decomposition",
              "integrated gradients, 16", "kernel SHAP, 36", "LIME, 36", "Shapley sampling, 1",
              "integrated gradients, 50", "integrated gradients, 300", "kernel SHAP, 200", "kernel SHAP, 2M + 2048",
              "LIME, 1000", "Shapley sampling, 25"),
}  # fmt: skip
"""Families that were added later, on a few networks; each holds again what it is compared with, on one training."""
_OURS = ("secant", "shares", "account, shares")
_SHOWN = (
    *_OURS, "DeepLift", "LRP", "integrated gradients, 50", "kernel SHAP, 2M + 2048", "LIME, 1000",
    "Shapley sampling, 25", "occlusion",
)  # fmt: skip
"""What the README shows, peers at their usual size."""
_EXPANDED = ("Yelp, GRU both ways, last", "SST-2, LSTM, last", "SST-2, GRU, last", "AG News, 2-layer GRU, last")
_SIZED = (*_EXPANDED, "IMDB, LSTM, mean")
"""The networks that train in a few minutes; of IMDB one, since its texts are the longest."""
_CANDIDATES = ("secant", "shares", "operating", "gates", "mean(operating, path)", "account", "account, shares")
"""What is measured on dev texts of all networks."""
_COMPARED = 8
"""The first networks, on which the default is compared with path and with integrated gradients."""
_NETWORKS = (
    "Yelp, GRU both ways, last", "SST-2, LSTM, last", "SST-2, GRU, last", "SST-2, 2-layer LSTM, mean",
    "AG News, LSTM both ways, mean", "AG News, 2-layer GRU, last", "IMDB, LSTM, mean", "IMDB, GRU both ways, mean",
    "AG News, mLSTM, mean", "SST-2 sentences, LSTM over-trained, last",
    "AG News, 2-layer LSTM both ways, last",
)  # fmt: skip
"""A frozen list."""
_SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"texts": 4, "slow": 1, "choice": 2, "stable": 1},
    "cpu": {"texts": 150, "slow": 50, "choice": 100, "stable": 32},
    "paper": {"texts": 500, "slow": 200, "choice": 100, "stable": 100},
}
"""``texts`` are explained by the fast methods, ``slow`` by the others, ``choice`` of dev. ``stable`` of them are
explained twice for the stability. The numbers keep the whole item at about seven hours of one core at scale cpu."""
_FURTHER_SEEDS: dict[Scale, tuple[int, ...]] = {"smoke": (), "cpu": (1, 2), "paper": (1, 2)}
"""Of the networks on which the default is compared."""
_RIVALS = ("path", _IG, "DeepLift", "LRP", "occlusion by <unk>", "kernel SHAP, 200", "shares", "operating", "account")
_PEERS = (_IG, "DeepLift", "LRP", "occlusion by <unk>", "kernel SHAP, 200")
_SLOW = ("sampling", "many points")
_DRAWN = (_IG, "DeepLift", "LRP", "occlusion by <unk>", "shares", "operating")
"""Not ``gates``, which is so far below the others that these could not be told apart."""
_LONG = 100
"""Number of words of texts of which half as many are explained if they have more."""

_CAPTION = (
    "a point is the mean difference over a network's test texts, averaged over its trainings; its bar is the 95% "
    "bootstrap interval over these texts. The expansion gates, far below on most networks, is in the table only."
)


class Faithfulness(Experiment):
    """A trial is one network, one family of methods and one split."""

    name = "ours/faithfulness"
    title = "Faithfulness: do the words with the highest attributions carry the prediction?"
    source = "our own question"
    published = False

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List first what compares the default on eight networks, then the dev texts, then the slow families."""
        sizes = dict(_SIZES[scale])
        slow, choice, texts = (sizes.pop(name) for name in ("slow", "choice", "texts"))
        networks = list(SMOKE_NETWORKS) if scale == "smoke" else list(_NETWORKS)
        trials = []
        first = [("expansions", "test"), ("others", "test")]
        plans = (first, [("expansions", "dev")], [(family, "test") for family in _SLOW])
        parts = [(0, part, plan) for part, plan in product((networks[:_COMPARED], networks[_COMPARED:]), plans)]
        if scale != "smoke":
            parts.append((0, list(OVER_TRAINED), first))
        parts += [(seed, networks[:_COMPARED], first) for seed in _FURTHER_SEEDS[scale]]
        for seed, part, plan in parts:
            for network, (family, split) in product(part, plan):
                count = _fewer_if_long(choice if split == "dev" else slow if family in _SLOW else texts, network)
                methods = [method for method in _FAMILIES[family] if split == "test" or method in _CANDIDATES]
                settings = {
                    "network": network, "trained": dict(KINDS[network]), "family": family, "methods": methods,
                    "split": split, "texts": count, **sizes, "seed": seed,
                }  # fmt: skip
                trials.append(Trial(f"{network}: {family}, {split}, seed {seed}", settings))
        return trials + _further_trials(scale)

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train or load the network, and measure the methods."""
        chosen = trial.settings
        corpus = read(chosen["trained"], setup)
        run = learn(chosen["trained"], corpus, chosen["seed"], setup)
        texts = draw_texts(corpus.test if chosen["split"] == "test" else corpus.dev, chosen["texts"])
        vocabulary = cast("Classify", run.task).vocabulary
        batches = batch_texts(run.model, [vocabulary.encode(text) for text in texts])
        gradient, found, missing = time_gradient(batches), {}, {}
        for method in chosen["methods"]:
            try:
                found[method] = measure_method(method, batches, gradient, chosen["stable"])
            except (UsageError, ConvergenceError) as error:
                missing[method] = str(error)
                setup.log(f"{method}: {error}")
                continue
            setup.log(f"{method}: {fmean(found[method]['scores']) / 1000:.3f}, cost {found[method]['cost']}")
        return {
            "accuracy": run.metrics["test_accuracy"],
            "texts": len(texts),
            "words": round(fmean(map(len, texts)), 1),
            "methods": found,
            "missing": missing,
        }

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate scores by network, the comparisons of the default, all measures, and the choice by behaviour."""
        name = "ours-faithfulness"
        further = [*_sizes_tables(_of(results, "sizes")), *_choices_tables(_of(results, "further expansions"))]
        results = _of(results, *_FAMILIES)
        over = [result for result in results if result.trial.settings["network"] in OVER_TRAINED]
        others = [result for result in results if result not in over]
        tables = list(_tables(others)) if others else []
        if over:
            tables.append(comparison_table(over, "secant", _RIVALS, " of the first networks over-trained"))
        figures = {name: partial(draw_differences, others, _DRAWN)} if others else {}
        return Report([*tables, *further], figures, dict.fromkeys(figures, _CAPTION))

    def compared(self, results: Sequence[Result]) -> Table:
        """Compare the methods that rank words, as the README shows it."""
        return compared_table(_of(results, "sizes"), _SHOWN)

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool]:
        """The two conditions that the default was to meet before it became the default."""
        results, compared = _of(results, *_FAMILIES), _NETWORKS[:_COMPARED]
        differences = {
            other: [difference(results, each, "secant", other) for each in compared] for other in ("path", _IG)
        }
        if any(each is None for some in differences.values() for each in some):
            return {}
        above = sum(each is not None and each[0] > 0 for each in differences[_IG])
        return {
            f"secant is not below path beyond its 95% interval on any of {_COMPARED} networks": all(
                each is not None and each[2] >= 0 for each in differences["path"]
            ),
            f"secant is above integrated gradients with 32 points on at least 6 of {_COMPARED} networks": above >= 6,
        }


def _of(results: Sequence[Result], *families: str) -> list[Result]:
    """Select families: a method that several of them measure was measured on other texts, or trained anew."""
    return [result for result in results if result.trial.settings["family"] in families]


def _fewer_if_long(count: int, network: str) -> int:
    """Halve a number of texts, rounded up, for a network of long ones."""
    return math.ceil(count / 2) if KINDS[network]["words"] > _LONG else count


def _further_trials(scale: Scale) -> list[Trial]:
    """List the trials of the families that were added later."""
    made_up = tuple(SMOKE_NETWORKS)
    expanded, sized = (made_up, made_up) if scale == "smoke" else (_EXPANDED, _SIZED)
    plan = [("sizes", "test", each) for each in sized if each in expanded]
    plan += [("further expansions", split, each) for each in expanded for split in ("dev", "test")]
    plan += [("sizes", "test", each) for each in sized if each not in expanded]
    trials = []
    for family, split, network in plan:
        of_split = "choice" if split == "dev" else "slow" if family == "sizes" else "texts"
        count = _fewer_if_long(_SIZES[scale][of_split], network)
        methods = [method for method in _FURTHER[family] if split == "test" or method in _EXACT]
        settings = {
            "network": network, "trained": dict(KINDS[network]), "family": family, "methods": methods, "split": split,
            "texts": count, "stable": 0, "seed": 0,
        }  # fmt: skip
        trials.append(Trial(f"{network}: {family}, {split}, seed 0", settings))
    return trials


def _tables(results: Sequence[Result]) -> Iterator[Table]:
    if methods := measured_methods(results, _METHODS):
        yield score_table(results, methods)
        yield comparison_table(results, "secant", _RIVALS)
        yield comparison_table(results, "shares", _PEERS)
    if len({result.trial.settings["seed"] for result in results}) > 1:
        yield training_table(results, "secant", ("path", _IG), _NETWORKS[:_COMPARED])
    first = where(results, seed=0)
    if dev := where(first, split="dev"):
        rivals = [each for each in _CANDIDATES if each != "shares"]
        yield comparison_table(dev, "shares", rivals, " on dev texts of the first training", "dev")
    if methods := measured_methods(first, _METHODS):
        yield measures_table(first, methods)
    yield networks_table(results)
    if missing := missing_table(results):
        yield missing


def _sizes_tables(results: Sequence[Result]) -> Iterator[Table]:
    if results:
        yield compared_table(results, _SHOWN)
        title = "Peers at small sizes (16 points, 36 samples, one order) and at their usual size"
        yield mean_table(results, _FURTHER["sizes"], title)
        for ours in _OURS:
            yield against_table(results, ours, _FURTHER["sizes"][len(_OURS) :])
    if missing := missing_table(results):
        yield missing


def _choices_tables(results: Sequence[Result]) -> Iterator[Table]:
    if not results:
        return
    for split, methods in (("dev", _EXACT), ("test", _FURTHER["further expansions"])):
        if some := where(results, split=split):
            yield mean_table(some, methods, f"All expansions, {split} texts", split)
    if tested := where(results, split="test"):
        yield against_table(tested, "shares(1)", [each for each in _EXACT if each != "shares(1)"])
    if choice := choice_table(results, _EXACT, (*_OURS, "shares(1)")):
        yield choice
