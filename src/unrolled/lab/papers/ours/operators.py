r"""Words as operators: how much a word reverses, scales or erases the readout of its neighbours.

The question is our own. In the affine recurrence s_t = g_t + A_t s_{t-1} a word acts in two ways. Each is measured as
the slope of a regression over all its occurrences, with the readout w of "positive" minus "negative":

.. math::
    \text{what came before:}\; w^\top A_t s_{t-1} \;\text{on}\; w^\top s_{t-1}, \qquad
    \text{what comes next:}\; w^\top (g_{t+1} + A_{t+1} g_t) \;\text{on}\; w^\top g_{t+1}

A slope of 1 leaves the readout unchanged; a slope below 0 reverses its sign, 0 erases it, more than 1 amplifies it. The
second way exists because English negates what follows: "not" acts on "good" when "good" is read. Words are ranked by
their slopes; lists of negators and intensifiers only show where these words are in the ranks.

The networks are those of the task classify on all phrases of SST-2. Occurrences are those in the training sentences,
because rare words need every context. There are three controls: the network before training; the trained network with
its word vectors permuted; and words permuted among all occurrences, which gives the slopes that chance alone produces.
A language model has no single readout and is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean, median, quantiles
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from unrolled.decomposition.decomposition import decompose
from unrolled.lab.data.corpus import Classification
from unrolled.lab.data.load import load_dataset
from unrolled.lab.data.vocabulary import UNKNOWN
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.papers.analyses.word_figures import name_words, scatter_words
from unrolled.lab.papers.analyses.word_operators import SIDES, Occurrences, RankedWords, WordSlope, neighbour_readouts
from unrolled.lab.papers.framework.experiment import SCALES, Experiment, Report, Result, Scale, Trial, TrialSetup, where
from unrolled.lab.papers.framework.figure_style import grid, legend_below, seed_captions, write_seeds
from unrolled.lab.papers.framework.synthetic_corpora import negation
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_training import train_once
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.training.rng_state import seeded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Operators", "ranked_words"]

_ENCODERS = {"gru": "GRU", "lstm": "LSTM"}
_EXPANSIONS = ("path", "operating", "zero")
_TITLES = {"before": "what came before", "after": "what comes next"}
_TRAINED, _VECTORS, _UNTRAINED = "trained", "vectors shuffled", "untrained"
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"seeds": 1, "least": 5, "training": {"epochs": 4, "batch": 8, "lr": 0.01}, "hidden": 8, "embedding": 8},
    "cpu": {"seeds": 3, "least": 25, "training": {"epochs": 3}, "hidden": 128, "embedding": 128},
    "day": {"seeds": 3, "least": 25, "training": {"epochs": 10}, "hidden": 128, "embedding": 128},
    "paper": {"seeds": 5, "least": 25, "training": {"epochs": 10}, "hidden": 128, "embedding": 128},
}
"""``least``: the least number of occurrences with a word before, and with a word after; intervals of rarer words are
wide."""

# Used in reports only.
_NEGATORS = frozenset({
    "not", "n't", "never", "no", "nor", "neither", "none", "nothing", "nobody", "nowhere", "without", "cannot",
    "hardly", "barely", "scarcely", "rarely", "seldom", "little", "few", "less", "lack", "lacks", "lacking", "fails",
})  # fmt: skip
_INTENSIFIERS = frozenset({
    "very", "really", "so", "extremely", "truly", "incredibly", "most", "more", "quite", "highly", "deeply", "utterly",
    "absolutely", "completely", "remarkably", "especially", "particularly", "such", "genuinely", "thoroughly",
})  # fmt: skip
_SHOWN = 8


class Operators(Experiment):
    """A trial is one network: trained, with permuted vectors, or untrained."""

    name = "ours/operators"
    title = "Words as operators: reversing, scaling or erasing the readout of their neighbours"
    source = "our own question"
    scales = tuple(SCALES)
    usual_hours = 0.1

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the trained networks first, then the controls."""
        sizes = dict(_SIZES[scale])
        return [
            Trial(
                f"{_ENCODERS[encoder]}, {network}, seed {seed}",
                {**sizes, "smoke": scale == "smoke", "encoder": encoder, "network": network, "seed": seed},
            )
            for seed in range(sizes.pop("seeds"))
            for network in (_TRAINED, _VECTORS, _UNTRAINED)
            for encoder in _ENCODERS
        ]

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Decompose all sentences and fit a slope for every frequent word."""
        chosen = trial.settings
        if chosen["smoke"]:
            corpus = sentences = negation()
        else:
            corpus, sentences = (load_dataset(name, Classification, setup.data) for name in ("sst2", "sst2-sentences"))
        model, task, accuracy = _network(corpus, chosen, setup)
        slopes, chance = {}, {}
        for expansion in _EXPANSIONS:
            places = _read(model, task, sentences, expansion)
            for side in SIDES:
                by_name = (places[side], places[side].shuffled(chosen["seed"]))
                slopes[expansion, side], chance[expansion, side] = (each.slopes(chosen["least"]) for each in by_name)
            setup.log(f"{expansion}: {len(places['before'].words):,} places")
        words = [
            word for word in range(UNKNOWN + 1, len(task.vocabulary)) if all(word in each for each in slopes.values())
        ]
        return {
            "accuracy": accuracy,
            "words": task.vocabulary.decode(words),
            "counts": [slopes["path", "before"][word][0] for word in words],
            **{
                f"{expansion}, {side}": {
                    "slopes": [round(found[word][1].value, 3) for word in words],
                    "halves": [round(found[word][1].half, 3) for word in words],
                    "chance": _percentiles([slope.value for _, slope in chance[expansion, side].values()]),
                }
                for (expansion, side), found in slopes.items()
            },
        }

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Rank the words, and compare networks with their controls."""
        kinds = [(network, encoder) for network in (_TRAINED, _VECTORS, _UNTRAINED) for encoder in _ENCODERS]
        spreads, ranks = [], []
        for side in SIDES:
            for network, encoder in kinds:
                for expansion in _EXPANSIONS:
                    if found := where(results, network=network, encoder=encoder):
                        name = f"{_ENCODERS[encoder]}, {network}, {expansion}"
                        spreads.append((_TITLES[side], name, *_spread(found, expansion, side)))
            for encoder in _ENCODERS:
                if found := where(results, network=_TRAINED, encoder=encoder):
                    ranked = ranked_words(found[0], "path", side)
                    listed = map(_listed, (ranked.reversing, ranked.amplifying, ranked.erasing))
                    ranks.append((_TITLES[side], _ENCODERS[encoder], *listed))
        columns = (
            "acts on", "network, expansion", "median slope", "5th to 95th percentile", "by chance", "reverse", "AUC",
        )  # fmt: skip
        title = (
            "Slopes of words: 1 leaves the readout unchanged; "
            "reverse: number of words whose 95% interval is below 0; "
            "AUC: how often the slope of a negator is below that of another word (1/2 by chance)"
        )
        tables = [Table(title, columns, spreads)]
        if ranks:
            heading = ("acts on", "network", "reverse", "amplify", "erase")
            tables.append(Table("Strongest words by 95% intervals: path, trained, first seed", heading, ranks))
        figures = {}
        if any(where(results, network=_TRAINED, encoder=encoder) for encoder in _ENCODERS):
            figures["ours-operators"] = partial(_draw, results)
        return Report(tables, figures, seed_captions(figures, "slopes, by *path*,", where(results, network=_TRAINED)))


def _network(
    corpus: Classification, chosen: Mapping[str, Any], setup: TrialSetup
) -> tuple[Classifier, Classify, float | None]:
    """Give the network of a trial and its test accuracy, None for a control."""
    settings = {name: chosen[name] for name in ("encoder", "hidden", "embedding")}
    if chosen["network"] == _UNTRAINED:
        task = Classify.from_corpus(corpus, Classify.Architecture(**settings))
        with seeded(chosen["seed"]):  # as the engine does
            return task.build().eval(), task, None
    run = train_once(setup, "classify", corpus, settings, {**chosen["training"], "seed": chosen["seed"]})
    assert isinstance(run.task, Classify)
    assert isinstance(run.model, Classifier)
    if chosen["network"] == _TRAINED:
        return run.model, run.task, float(run.metrics["test_accuracy"])
    assert isinstance(run.model.embedding, nn.Embedding)
    vectors = run.model.embedding.weight.data[UNKNOWN + 1 :]
    generator = torch.Generator().manual_seed(chosen["seed"])
    vectors.copy_(vectors[torch.randperm(len(vectors), generator=generator)])
    return run.model, run.task, None


@torch.no_grad()
def _read(model: Classifier, task: Classify, corpus: Classification, expansion: str) -> dict[str, Occurrences]:
    """Collect what every word of the training sentences does to its neighbours."""
    assert isinstance(model.head, nn.Linear)
    assert isinstance(model.encoder, nn.RNNBase)
    negative, positive = model.head.weight
    texts = task.encode(corpus.train)
    found: dict[str, list[Occurrences]] = {side: [] for side in SIDES}
    for which in texts.plan(64):
        batch = texts.select(which)
        opened = decompose(model.encoder, model.embedding(batch.tokens), batch.lengths, expansion=expansion)
        ((sequence,),) = opened.sequences
        for side, places in neighbour_readouts(sequence, batch.tokens, batch.lengths, positive - negative).items():
            found[side].append(places)
    return {side: Occurrences.joined(parts) for side, parts in found.items()}


def ranked_words(result: Result, expansion: str, side: str) -> RankedWords:
    """Rank the words of a result by their slopes."""
    found = result[f"{expansion}, {side}"]
    return RankedWords.of(map(WordSlope, result["words"], result["counts"], found["slopes"], found["halves"]))


def _listed(words: Sequence[WordSlope]) -> str:
    shown = ", ".join(f"“{each.word}” {each.slope:.2f} ± {each.half:.2f}" for each in words[:_SHOWN])
    more = f", {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return (shown or "none") + more


def _percentiles(values: Sequence[float]) -> list[float]:
    """Give the 5th and the 95th percentile."""
    cuts = quantiles(values, n=20)
    return [cuts[0], cuts[-1]]


def _spread(results: Sequence[Result], expansion: str, side: str) -> tuple[Number | str, ...]:
    found = [each[f"{expansion}, {side}"] for each in results]
    ranked = [ranked_words(each, expansion, side) for each in results]
    low, high = (fmean(_percentiles(each["slopes"])[end] for each in found) for end in (0, 1))
    least, most = (fmean(each["chance"][end] for each in found) for end in (0, 1))
    areas = [area for each in ranked if (area := each.area_under_curve(_NEGATORS)) is not None]
    return (
        Number([median(each["slopes"]) for each in found]),
        f"{low:.2f} to {high:.2f}",
        f"{least:.2f} to {most:.2f}",
        Number([len(each.reversing) for each in ranked], digits=0),
        Number(areas),
    )


def _draw(results: Sequence[Result]) -> Figure:
    figure, panels = grid(len(SIDES), len(_ENCODERS), width=4.6, height=3.6)
    groups, drawn = {"negators": _NEGATORS, "intensifiers": _INTENSIFIERS}, []
    for panel, (side, (encoder, title)) in zip(panels, product(SIDES, _ENCODERS.items()), strict=True):
        panel.set(xscale="log", title=f"{title}: {_TITLES[side]}", xlabel="occurrences", ylabel="slope")
        for result in where(results, network=_TRAINED, encoder=encoder)[:1]:
            words = ranked_words(result, "path", side).words
            scatter_words(panel, words, groups)
            write_seeds([panel], [result], f"{len(words):,} words")
            drawn.append((panel, words))
    legend_below(figure, next((panel for panel, _ in drawn), panels[0]), 3)
    figure.draw_without_rendering()  # names are placed in panels that have their size
    for panel, words in drawn:
        name_words(panel, words, groups, _SHOWN)
    return figure
