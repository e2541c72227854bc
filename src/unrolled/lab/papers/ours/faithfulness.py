"""Which attribution names the words that a prediction needs? Expansions and other methods, on networks of many kinds.

A method ranks the words of a text by their attribution to the predicted class; its score is comprehensiveness less
sufficiency, averaged over deletions of 5, 10, 20 and 50% of the words. A trial is one network with one family of
methods. All methods explain the same texts; the slow ones explain the first of them only. The test part is what the
tables show; the expansions are measured on 100 dev texts as well, where no label is used: that is what a choice of the
expansion by the model's own behaviour would look at. The networks on which the default is compared are trained three
times; the other networks, the slow methods and the dev texts have one training. Two methods are compared on the
trainings that both have. Intervals come from resampling texts, after averaging over trainings; they say nothing of
further trainings.

The default expansion, secant, and the share of ``shares`` were chosen on other networks, before this item was made.
A network keeps the weights of its best epoch on dev; one that is over-trained those of its best epoch on training
texts, which is most often the last.

Source:
    Our own question; the measures are those of ``analyses/deletion.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any, cast

import torch

from unrolled.errors import ConvergenceError, UsageError
from unrolled.lab.papers.analyses.explained_texts import batch_texts
from unrolled.lab.papers.analyses.faithfulness_measures import measure_method, time_gradient
from unrolled.lab.papers.analyses.text_classifiers import KINDS, OVER_TRAINED, SMOKE_NETWORKS, draw_texts, learn, read
from unrolled.lab.papers.framework.bootstrap import interval
from unrolled.lab.papers.framework.experiment import Experiment, Report, Result, Scale, Trial, TrialSetup
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid, legend_below
from unrolled.lab.papers.framework.table import MISSING, Number, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unrolled.lab.tasks.classify import Classify

__all__ = ["Faithfulness", "difference"]

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
_CANDIDATES = ("secant", "shares", "operating", "gates", "mean(operating, path)", "account", "account, shares")
"""What a choice by the model's own behaviour chooses among."""
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
    "smoke": {"texts": 8, "slow": 2, "choice": 4, "stable": 4},
    "cpu": {"texts": 150, "slow": 50, "choice": 100, "stable": 32},
    "paper": {"texts": 500, "slow": 200, "choice": 100, "stable": 100},
}
_FURTHER_SEEDS: dict[Scale, tuple[int, ...]] = {"smoke": (), "cpu": (1, 2), "paper": (1, 2)}
"""Of the networks on which the default is compared."""
_RIVALS = ("path", _IG, "DeepLift", "LRP", "occlusion by <unk>", "kernel SHAP, 200", "shares", "operating", "account")
_SLOW = ("sampling", "many points")
_DRAWS = 1000
_LONG = 100
"""Of texts of more words half as many are explained."""


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
                count = choice if split == "dev" else slow if family in _SLOW else texts
                count = math.ceil(count / 2) if KINDS[network]["words"] > _LONG else count
                methods = [method for method in _FAMILIES[family] if split == "test" or method in _CANDIDATES]
                settings = {
                    "network": network, "trained": dict(KINDS[network]), "family": family, "methods": methods,
                    "split": split, "texts": count, **sizes, "seed": seed,
                }  # fmt: skip
                trials.append(Trial(f"{network}: {family}, {split}, seed {seed}", settings))
        return trials

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
        """Tabulate scores by network, the comparisons of the default, the choice by behaviour, and all measures."""
        name = "ours-faithfulness"
        over = [result for result in results if result.trial.settings["network"] in OVER_TRAINED]
        others = [result for result in results if result not in over]
        tables = [*_tables(others), *([_comparison(over, " of the first networks over-trained")] if over else [])]
        return Report(tables, {name: partial(_draw, others)}, {name: _CAPTION})

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool]:
        """The two conditions that the default was to meet before it became the default."""
        compared = _NETWORKS[:_COMPARED]
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


def _networks(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(result.trial.settings["network"] for result in results))


def _by_seed(results: Sequence[Result], network: str, method: str, split: str = "test") -> dict[int, Mapping[str, Any]]:
    """Give the measures of a method on a network by the seed of its training."""
    return {
        result.trial.settings["seed"]: result["methods"][method]
        for result in results
        if result.trial.settings["network"] == network
        and result.trial.settings["split"] == split
        and method in result["methods"]
    }


def _measured(results: Sequence[Result], network: str, method: str) -> list[Mapping[str, Any]]:
    """Give the measures of a method on the test texts, seed by seed."""
    return list(_by_seed(results, network, method).values())


def _average(measured: Sequence[Mapping[str, Any]]) -> torch.Tensor:
    """Average the scores of each text over trainings, shape (texts,), float64."""
    return torch.tensor([each["scores"] for each in measured], dtype=torch.float64).mean(dim=0) / 1000


def difference(results: Sequence[Result], network: str, one: str, other: str) -> tuple[float, float, float] | None:
    """Compare the test scores of two methods on the texts and the trainings that both have: the mean and its interval.

    None where they have no training in common.
    """
    first, second = (_by_seed(results, network, method) for method in (one, other))
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return None
    ours, theirs = (_average([measured[seed] for seed in seeds]) for measured in (first, second))
    count = min(len(ours), len(theirs))
    apart = ours[:count] - theirs[:count]
    generator = torch.Generator().manual_seed(0)
    which = torch.randint(len(apart), (_DRAWS, len(apart)), generator=generator)
    return (float(apart.mean()), *interval(apart[which].mean(dim=1).tolist()))


def _show(found: tuple[float, float, float] | None) -> str:
    return MISSING if found is None else f"{found[0]:+.3f} ({found[1]:+.3f} to {found[2]:+.3f})"


def _number(values: Sequence[float], digits: int = 3) -> str | Number:
    return Number(values, digits=digits) if values else MISSING


def _tables(results: Sequence[Result]) -> Iterator[Table]:
    networks = _networks(results)
    methods = [m for m in _METHODS if any(_measured(results, network, m) for network in networks)]
    if methods:
        rows: list[Sequence[str | Number]] = []
        for method in methods:
            cells = [[fmean(e["scores"]) / 1000 for e in _measured(results, n, method)] for n in networks]
            rows.append((method, *map(_number, cells)))
        title = (
            "Comprehensiveness less sufficiency, test texts; higher is better; sampling and 300 points on fewer texts "
            "and one training"
        )
        yield Table(title, ("method", *networks), rows)
    if methods:
        yield _comparison(results)
    once = [result for result in results if result.trial.settings["seed"] == 0]
    yield from _choice_table(once, networks)
    if methods:
        yield _all_measures(once, networks, methods)
    rows = []
    for network in networks:
        mine = [result for result in results if result.trial.settings["network"] == network]
        trained = {result.trial.settings["seed"]: result["accuracy"] for result in mine}
        accuracy = Number(list(trained.values()), digits=1, percent=True)
        tested = [result for result in mine if result.trial.settings["split"] == "test"] or mine
        longest = max(tested, key=lambda result: result["texts"])
        rows.append((network, accuracy, f"{longest['words']:.0f}", str(longest["texts"])))
    yield Table("The networks", ("network", "test accuracy, %", "words in a text, mean", "texts"), rows)


def _comparison(results: Sequence[Result], which: str = "") -> Table:
    networks = _networks(results)
    rivals = [each for each in _RIVALS if any(_measured(results, network, each) for network in networks)]
    rows = [(each, *(_show(difference(results, each, "secant", rival)) for rival in rivals)) for each in networks]
    title = f"Score of secant less that of another method{which}, with 95% intervals"
    return Table(title, ("network", *(f"less {rival}" for rival in rivals)), rows)


def _choice_table(results: Sequence[Result], networks: Sequence[str]) -> Iterator[Table]:
    """Choose the candidate with the highest score on dev texts, and compare it with secant on test texts.

    The results are those of seed 0, the only one of which dev texts are explained.
    """
    rows: list[Sequence[str | Number]] = []
    gains = []
    for network in networks:
        dev, test = (
            {m: found[0] for m in _CANDIDATES if (found := _by_seed(results, network, m, split))}
            for split in ("dev", "test")
        )
        best, top = (max(found, key=lambda m: fmean(found[m]["scores"]), default=None) for found in (dev, test))
        gain = difference(results, network, best, "secant") if best else None
        if best is None or top is None or gain is None:
            continue
        gains.append(gain[0])
        rows.append((network, best, _show(gain), top, f"{sum(each['cost'] for each in dev.values()):.0f}"))
    if rows:
        rows.append(("mean", MISSING, f"{fmean(gains):+.3f}", MISSING, MISSING))
        yield Table(
            "Choosing the expansion by its score on dev texts without labels: what the choice gains over secant on "
            "test texts; one training; cost in forward and backward passes over these texts, deletions not counted",
            ("network", "chosen on dev", "gain on test", "best on test", "cost"),
            rows,
        )


def _all_measures(results: Sequence[Result], networks: Sequence[str], methods: Sequence[str]) -> Table:
    names = ("score", "comprehensiveness", "sufficiency", "score by <unk>", "insertion", "stability", "remainder",
             "cancellation", "cost")  # fmt: skip
    keys = {"score by <unk>": "blank_score"}
    rows: list[Sequence[str | Number]] = []
    for method in methods:
        found = [each for network in networks for each in _measured(results, network, method)]
        cells: list[str | Number] = []
        for name in names:
            if name == "score":
                cells.append(Number([fmean(fmean(each["scores"]) / 1000 for each in found)], digits=3))
                continue
            values = [each[keys.get(name, name)] for each in found]
            known = [value for value in values if value is not None]
            if not known:
                cells.append(MISSING)
            elif name == "remainder":
                cells.append(f"{max(known):.1e}")
            elif name in ("cancellation", "cost"):
                cells.append(f"{fmean(known):.3g}")
            else:
                cells.append(Number([fmean(known)], digits=3))
        count = sum(bool(_measured(results, network, method)) for network in networks)
        rows.append((method, str(count), *cells))
    return Table(
        "All measures of one training, means over the networks that have the method (their number; compare rows with "
        "the same number); remainder: the largest of the networks' medians; cost in forward and backward passes",
        ("method", "networks", *names),
        rows,
    )


_CAPTION = (
    "a point is the mean difference over a network's test texts, averaged over its trainings; its bar is the 95% "
    "bootstrap interval over these texts."
)


def _draw(results: Sequence[Result]) -> Figure:
    networks = _networks(results)
    figure, (panel,) = grid(1, 1, width=8.0, height=0.5 * len(networks) + 1.6)
    for number, method in enumerate((_IG, "DeepLift", "LRP", "occlusion by <unk>", "shares", "operating", "gates")):
        points = [
            (place + 0.08 * (number - 3), found)
            for place, network in enumerate(networks)
            if (found := difference(results, network, method, "secant"))
        ]
        if points:
            heights, values = [height for height, _ in points], [found[0] for _, found in points]
            spread = [[abs(found[0] - found[end]) for _, found in points] for end in (1, 2)]
            style = {"color": COLOURS[number], "marker": MARKERS[number], "linestyle": "none"}
            panel.errorbar(values, heights, xerr=spread, label=method, **style)  # type: ignore[arg-type]
    panel.axvline(0, color="#888888", linewidth=1)
    panel.set_yticks(range(len(networks)), networks)
    panel.invert_yaxis()
    panel.set(xlabel="score less that of secant, 95 % intervals")
    legend_below(figure, panel, 4)
    return figure
