"""Intensification: what "very" and "not" do to polarity scores in models that learned how strong a sentiment is.

Models that rate SST-5's phrases from -2 to 2 by the mean of their contexts, and the scores of adjectives alone, after
"not" and after "very": of the context at the phrase's end, as in the paper's figures, and of the bigram's own term.
GRU and LSTM networks are opened at zero, as in the paper; beside that stands what their states themselves say.

The paper counts 4,601 "not" and 1,729 "very" in its training set; all phrases of the training trees have 4,495 and
1,709, so those are what it learned from. Its word vectors are GloVe's and fixed; here they begin as GloVe's of 50
numbers, and learn. At scale cpu models have 64 units (the paper: 300) and learn for 2 epochs.

Source:
    Sun and Lu (2022), Implicit n-grams, figures 3 and 5, section 5.2, appendices B.1 and E.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from unrolled.lab.data.corpus import Regression
from unrolled.lab.data.text_files import find_file
from unrolled.lab.models.factory import PooledSettings
from unrolled.lab.papers.analyses.polar_adjectives import (
    PolarAdjectives,
    polar_adjectives,
    rating_signs,
    sst2_adjectives,
)
from unrolled.lab.papers.analyses.polarity import context_scores, ngram_scores
from unrolled.lab.papers.analyses.sentiment_networks import ADAGRAD, GLOVE
from unrolled.lab.papers.framework.corpus_cache import load_once
from unrolled.lab.papers.framework.experiment import Bench, Experiment, Report, Result, Scale, Trial, where
from unrolled.lab.papers.framework.synthetic_corpora import ratings
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_training import learn_once
from unrolled.lab.tasks import TASKS
from unrolled.lab.training.settings import TrainingSettings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Intensification"]

_MODELS = {"MVMA-G": "mvma_g", "GRU": "gru", "LSTM": "lstm", "MVMA-L": "mvma_l"}
_NETWORKS = ("GRU", "LSTM")
_WORDS = ("", "not", "very")
_SIGNS = {"positive": 1, "negative": -1}
_KINDS = {"context": "context", "ngram": "n-gram", "state": "state"}

_SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"seeds": 1, "hidden": 8, "embedding": 8},
    "cpu": {"seeds": 3, "hidden": 64, "embedding": 50},
    "paper": {"seeds": 3, "hidden": 300, "embedding": 50},  # vectors of 300 numbers are not at hand
}
# The paper does not say: the rate, the batch, how long. Large batches, as most of the phrases are a word or two.
_TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"epochs": 3, "batch": 16},
    "cpu": {"epochs": 2, "batch": 256},
    "paper": {"epochs": 30, "batch": 256},
}
_RATIO = 1.2  # in the made-up corpus of scale smoke, where every adjective is often negated


class Intensification(Experiment):
    """One model a trial."""

    name = "implicit-ngrams/intensification"
    title = 'Intensification: scores of adjectives, and of the same after "not" and "very"'
    source = "Sun and Lu (2022), Implicit n-grams, figures 3 and 5; box plots, no figures are printed"

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the models, seed by seed."""
        sizes, task, trials = dict(_SIZES[scale]), TASKS.get("regress"), []
        for seed in range(sizes.pop("seeds")):
            learned = {**task.training_defaults, **ADAGRAD, **_TRAINING[scale], "seed": seed}
            training = TrainingSettings(**learned).model_dump(mode="json")
            for model, encoder in _MODELS.items():
                settings = {
                    "data": "made-up ratings" if scale == "smoke" else "sst-regression",
                    "begins with": None if scale == "smoke" else GLOVE,
                    "name": model,
                    "model": PooledSettings(encoder=encoder, pooling="mean", **sizes).model_dump(mode="json"),
                    "training": training,
                }
                trials.append(Trial(f"{model}, seed {seed}", settings))
        return trials

    def run(self, trial: Trial, bench: Bench) -> Mapping[str, Any]:
        """Train, and score adjectives."""
        chosen = trial.settings
        corpus, adjectives = _read(chosen["data"], bench)
        training = dict(chosen["training"])
        if chosen["begins with"]:
            training["vectors"] = find_file(chosen["begins with"], bench.data)
        run = learn_once(bench, "regress", corpus, chosen["model"], training)
        kinds = _KINDS if chosen["name"] in _NETWORKS else ("context", "ngram")
        found: dict[str, dict[str, list[float]]] = {kind: {} for kind in kinds}
        for polarity, word in product(_SIGNS, _WORDS):
            phrases = [f"{word} {adjective}".strip() for adjective in getattr(adjectives, polarity)]
            scores = {
                "context": context_scores(run, phrases, "zero"),
                "ngram": ngram_scores(run, phrases, "zero"),
                "state": context_scores(run, phrases),
            }
            for kind in kinds:
                found[kind][f"{word} {polarity}".strip()] = [round(score, 4) for score in scores[kind].tolist()]
        measures = {name: run.metrics[f"test_{name}"] for name in ("mse", "pearson")}
        return {**measures, "scores": found}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Put the box plots into numbers, and draw them."""
        figures = {
            f"implicit-ngrams-intensification-{model.lower()}": partial(_draw, mine)
            for model in _MODELS
            if (mine := where(results, name=model))
        }
        return Report([_medians(results), _shares(results)], figures)


def _read(data: str, bench: Bench) -> tuple[Regression, PolarAdjectives]:
    if data == "sst-regression":
        adjectives = sst2_adjectives(bench.data)  # read first: one corpus is kept at a time
        return load_once(data, Regression, bench.data), adjectives
    corpus = ratings()
    return corpus, polar_adjectives(rating_signs(corpus.train), _RATIO)


def moved(scores: Mapping[str, Sequence[float]], polarity: str, word: str) -> float:
    """Count the adjectives whose score a word moves in the adjectives' own direction.

    Args:
        scores: by group, ``"positive"`` and ``"very positive"`` for example.
        polarity: of the adjectives.
        word: the one before them.

    Returns:
        Their share: strengthened by "very", if it is large; weakened by "not", if it is small.
    """
    pairs = zip(scores[polarity], scores[f"{word} {polarity}"], strict=True)
    return fmean(float(_SIGNS[polarity] * (after - alone) > 0) for alone, after in pairs)


def _rows(results: Sequence[Result]) -> Iterator[tuple[str, str, list[Result]]]:
    for model in _MODELS:
        if mine := where(results, name=model):
            for kind in mine[0]["scores"]:
                yield model, kind, mine


def _medians(results: Sequence[Result]) -> Table:
    groups = [f"{word} {polarity}".strip() for polarity, word in product(_SIGNS, _WORDS)]
    rows: list[Sequence[str | Number]] = []
    for model, kind, mine in _rows(results):
        medians = ([median(result["scores"][kind][group]) for result in mine] for group in groups)
        rows.append((model, _KINDS[kind], *map(Number, medians), Number([result["pearson"] for result in mine])))
    columns = ("model", "score of", *groups, "Pearson of ratings, test")
    return Table("Median scores of adjectives, in units of the rating", columns, rows)


def _shares(results: Sequence[Result]) -> Table:
    rows: list[Sequence[str | Number]] = []
    for model, kind, mine in _rows(results):
        cells = []
        for polarity in _SIGNS:
            very = [moved(result["scores"][kind], polarity, "very") for result in mine]
            weaker = [1 - moved(result["scores"][kind], polarity, "not") for result in mine]
            cells += [Number(values, digits=0, percent=True) for values in (very, weaker)]
        rows.append((model, _KINDS[kind], *cells))
    columns = (
        "model", "score of", "positive: stronger after very, %", "weaker after not, %",
        "negative: stronger after very, %", "weaker after not, %",
    )  # fmt: skip
    return Table("Share of adjectives whose score moves as the word says", columns, rows)


def _draw(mine: Sequence[Result]) -> Figure:
    from unrolled.lab.papers.framework.figure_style import COLOURS, grid

    scores = mine[0]["scores"]
    figure, panels = grid(len(scores), 2, width=2.6, height=2.3)
    for panel, (kind, polarity) in zip(panels, product(scores, _SIGNS), strict=True):
        drawn = panel.boxplot(
            [scores[kind][f"{word} {polarity}".strip()] for word in _WORDS],
            tick_labels=[f"{word} adj".strip() for word in _WORDS],
            patch_artist=True,
            widths=0.6,
            medianprops={"color": "black"},
            flierprops={"marker": "o", "markersize": 2, "markeredgecolor": "#888888"},
        )
        for number, box in enumerate(drawn["boxes"]):
            box.set(facecolor=COLOURS[number], alpha=0.75)
        panel.axhline(0, color="#888888", linestyle="--", linewidth=1)
        panel.set_title(f"{mine[0].trial.settings['name']}, {_KINDS[kind]}: {polarity}", fontsize=9)
    for panel in panels[::2]:
        panel.set_ylabel("polarity score, rating")
    return figure
