"""Intensification: how "very" and "not" change polarity scores, in models of how strong a sentiment is.

Models learn to rate SST-5's phrases from -2 to 2 by the mean of their contexts. They score adjectives alone, after
"not" and after "very": by the context at the phrase's end, as the paper's figures do, and by the bigram's own term.
GRU and LSTM networks are expanded at zero, as in the paper; the tables also show the scores of their own states. From
scale day up there are also MVM-G and MVM-L, which the paper does not show here: their context is a single n-gram.

The paper counts 4,601 "not" and 1,729 "very" in its training set. All phrases of the training trees have 4,495 and
1,709, so we assume that it trained on those. Its word vectors are GloVe's and fixed; ours are GloVe's of 50 dimensions,
fixed from scale day up and trained below. At scale cpu, models have 64 units (the paper: 300) and train for 2 epochs.

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
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.papers.analyses.polarity import context_scores, ngram_scores
from unrolled.lab.papers.analyses.sentences.polar_adjectives import (
    PolarAdjectives,
    polar_adjectives,
    rating_signs,
    sst2_adjectives,
)
from unrolled.lab.papers.analyses.sentiment_networks import ADAGRAD, GLOVE
from unrolled.lab.papers.framework.corpora import load_cached
from unrolled.lab.papers.framework.experiment import (
    SCALES,
    Experiment,
    Report,
    Result,
    Scale,
    Trial,
    TrialSetup,
    average,
    where,
)
from unrolled.lab.papers.framework.figure_style import COLOURS, draw_boxes, grid, seed_captions
from unrolled.lab.papers.framework.synthetic_corpora import ratings
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_training import full_settings, train_once
from unrolled.lab.papers.implicit_ngrams.model_names import encoder_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Intensification"]

_IN_PAPER = ("MVMA-G", "GRU", "LSTM", "MVMA-L")
"""The models of the paper's figures."""
_MODELS = (*_IN_PAPER, "MVM-G", "MVM-L")
_NETWORKS = ("GRU", "LSTM")
_WORDS = ("", "not", "very")
_SIGNS = {"positive": 1, "negative": -1}
_KINDS = {"context": "context", "ngram": "n-gram", "state": "state"}

_SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"seeds": 1, "hidden": 8, "embedding": 8},
    "cpu": {"seeds": 3, "hidden": 64, "embedding": 50},
    "day": {"seeds": 3, "hidden": 300, "embedding": 50},
    "paper": {"seeds": 3, "hidden": 300, "embedding": 50},  # of 300 with --vectors: they are not included
}
# The paper does not state rate, batch size and epochs. Batches are large because most phrases have one or two words.
_TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"epochs": 3, "batch": 16},
    "cpu": {"epochs": 2, "batch": 256},
    "day": {"lr": 0.02, "epochs": 8, "patience": 2, "batch": 256},
    "paper": {"epochs": 30, "batch": 256},
}
_RATIO = 1.2  # for the generated corpus of scale smoke, which often negates every adjective


class Intensification(Experiment):
    """A trial is one model."""

    name = "implicit-ngrams/intensification"
    title = 'Intensification: scores of adjectives, and of the same after "not" and "very"'
    source = "Sun and Lu (2022), Implicit n-grams, figures 3 and 5; box plots without printed numbers"
    scales = tuple(SCALES)
    usual_hours = 0.15

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the models, seed by seed."""
        sizes, trials = dict(_SIZES[scale]), []
        as_published = scale in ("day", "paper")
        models = _MODELS if as_published else _IN_PAPER
        for seed, model in product(range(sizes.pop("seeds")), models):
            architecture = {"encoder": encoder_of(model), "pooling": "mean", **sizes}
            settings = {
                "data": "made-up ratings" if scale == "smoke" else "sst-regression",
                "begins with": None if scale == "smoke" else GLOVE,
                "name": model,
                **full_settings("regress", architecture, {**ADAGRAD, **_TRAINING[scale], "seed": seed}),
                **({"fixed": True} if as_published else {}),
            }
            trials.append(Trial(f"{model}, seed {seed}", settings))
        return trials

    def with_vectors(self, trial: Trial, file: str, size: int) -> Trial | None:
        """Begin with other vectors at all scales but smoke."""
        if trial.settings["begins with"] is None:
            return None
        model = {**trial.settings["model"], "embedding": size}
        return Trial(f"{trial.label}, {file}", {**trial.settings, "begins with": file, "model": model})

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, and score adjectives."""
        chosen = trial.settings
        corpus, adjectives = _read(chosen["data"], setup)
        training = dict(chosen["training"])
        if chosen["begins with"]:
            training["vectors"] = find_file(chosen["begins with"], setup.data)
            training["freeze_vectors"] = chosen.get("fixed", False)
        run = train_once(setup, "regress", corpus, chosen["model"], training)
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
        """Summarise the box plots in numbers, and draw them."""
        figures = {
            f"implicit-ngrams-intensification-{model.lower()}": partial(_draw, mine)
            for model in _MODELS
            if (mine := where(results, name=model))
        }
        captions = seed_captions(figures, "boxes", results)
        return Report([_medians(results), _shares(results)], figures, captions)

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool]:
        """The paper: by the score of the context, "very" strengthens adjectives and "not" weakens them."""
        claims = {}
        for model, sign in product(_IN_PAPER, _SIGNS):
            if mine := where(results, name=model):
                very, negated = (
                    fmean(strengthened(each["scores"]["context"], sign, word) for each in mine)
                    for word in ("very", "not")
                )
                claims[f'{model}: "very" strengthens most {sign} adjectives'] = very > 0.5
                claims[f'{model}: "not" weakens most {sign} adjectives'] = negated < 0.5
        return claims


def _read(data: str, setup: TrialSetup) -> tuple[Regression, PolarAdjectives]:
    if data == "sst-regression":
        adjectives = sst2_adjectives(setup.data)  # first, because only the last corpus stays in memory
        return load_cached(data, Regression, setup.data), adjectives
    corpus = ratings()
    return corpus, polar_adjectives(rating_signs(corpus.train), _RATIO)


def strengthened(scores: Mapping[str, Sequence[float]], polarity: str, word: str) -> float:
    """Give the share of adjectives whose score moves further in the adjectives' own direction after a word.

    ``scores`` has lists by group, such as ``"positive"`` and ``"very positive"``. A large share after "very" means
    that it strengthens; a small one after "not" that it weakens. A score that stays the same has not moved.
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
        rows.append((model, _KINDS[kind], *map(Number, medians), average(mine, "pearson")))
    columns = ("model", "score of", *groups, "Pearson of ratings, test")
    return Table("Median scores of adjectives, in units of the rating", columns, rows)


def _shares(results: Sequence[Result]) -> Table:
    rows: list[Sequence[str | Number]] = []
    for model, kind, mine in _rows(results):
        cells = []
        for polarity in _SIGNS:
            very = [strengthened(result["scores"][kind], polarity, "very") for result in mine]
            weaker = [1 - strengthened(result["scores"][kind], polarity, "not") for result in mine]
            cells += [Number(values, digits=0, percent=True) for values in (very, weaker)]
        rows.append((model, _KINDS[kind], *cells))
    columns = (
        "model", "score of", "positive: stronger after very, %", "weaker after not, %",
        "negative: stronger after very, %", "weaker after not, %",
    )  # fmt: skip
    return Table("Share of adjectives whose score becomes stronger after very, and weaker after not", columns, rows)


def _draw(mine: Sequence[Result]) -> Figure:
    scores = mine[0]["scores"]
    figure, panels = grid(len(scores), 2, width=3.0, height=2.3)
    for panel, (kind, polarity) in zip(panels, product(scores, _SIGNS), strict=True):
        groups = {f"{word} adj".strip(): scores[kind][f"{word} {polarity}".strip()] for word in _WORDS}
        draw_boxes(panel, groups, [(COLOURS[number], 0.75) for number in range(len(_WORDS))])
        panel.set_title(f"{mine[0].trial.settings['name']}, {_KINDS[kind]}: {polarity}", fontsize=9)
    for panel in panels[::2]:
        panel.set_ylabel("polarity score (rating)")
    return figure
