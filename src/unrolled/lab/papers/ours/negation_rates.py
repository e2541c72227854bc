"""How often "not" reverses the score of an adjective, how far it shifts it, and how often "very" strengthens it.

The papers show box plots and means of such scores, and no rates. Here networks that learned SST-2's phrases are
decomposed by every expansion. The score of "not bad" is taken in two ways: of the bigram's own term v_{1:2}, as the
papers do, and of all terms that end at the phrase's end, v_{1:2} + v_{2:2}, which for an exact expansion is the
network's own score. The 95% intervals come from resampling adjectives; they do not cover the variation between
trainings.

The flip rate is the share of adjectives whose score changes its sign after "not"; the shift is how far the score moves
towards the other sign; a score is strengthened if it keeps its sign and grows.

GRU and LSTM are those of ``unrolled train classify --data sst2``, after 3 epochs at scale cpu and the best of at most
10 at scale day; the others are those of implicit-ngrams/negation. MVMA models have n-grams of their own, whatever the
expansion. A score of 0 has no sign: it counts neither as reversed nor as strengthened.

Source:
    Our own question; Implicit n-grams, figures 2 to 5, and Sequence-level features, table 1, for the scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unrolled.lab.data.corpus import Classification
from unrolled.lab.papers.analyses.polarity import context_scores, ngram_scores
from unrolled.lab.papers.analyses.sentences.polar_adjectives import corpus_with_adjectives, rating_signs
from unrolled.lab.papers.analyses.sentiment_networks import ADAGRAD
from unrolled.lab.papers.framework.bootstrap import interval
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
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid, legend_below, write_seeds
from unrolled.lab.papers.framework.synthetic_corpora import ratings
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_training import full_settings, train_once
from unrolled.lab.training.run_folder import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["NegationRates", "rates"]

_EXPANSIONS = ("zero", "activation", "taylor(2)", "operating", "path", "gates")
_OWN = "its own"
_NETWORKS = {"GRU": "gru", "LSTM": "lstm", "MVMA-G": "mvma_g", "MVMA-L": "mvma_l", "Elman": "rnn"}
_OPENED = ("GRU", "LSTM", "Elman")
_NOT, _VERY = "not", "very"
_STRONGER = (_VERY, "really", "so", "truly", "extremely", "absolutely", "incredibly", "utterly")
_KINDS = {"ngram": "n-gram", "phrase": "all that end there"}
_CAPTION = (
    "*n-gram* is the score of the bigram's own term; *all that end there* is the sum of the scores of all n-grams"
    " that end with it, which is the score of the state where the expansion is exact. A point is the mean over "
    "the seeds. Its bar is the 95% bootstrap interval over adjectives, its ends averaged over the seeds. The "
    "dotted line is half of the adjectives."
)

_SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"seeds": 1, "draws": 20},
    "cpu": {"seeds": 3, "draws": 1000},
    "day": {"seeds": 3, "draws": 1000},
    "paper": {"seeds": 3, "draws": 1000},
}
_LIKE_NEGATION: dict[Scale, tuple[int, dict[str, Any]]] = {
    "cpu": (64, {"epochs": 2}),
    "day": (300, {"lr": 0.01, "epochs": 6, "patience": 2, "batch": 128}),
    "paper": (300, {"epochs": 30}),
}
"""Units and training of implicit-ngrams/negation, so that both share their networks."""
_RATIO = 1.2  # for the generated corpus of scale smoke, which often negates every adjective


def _network(name: str, scale: Scale) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give the settings of a network's architecture and training that differ from the task's own."""
    encoder = {"encoder": _NETWORKS[name]}
    if scale == "smoke":
        return {**encoder, "hidden": 8, "embedding": 8}, {"epochs": 2, "batch": 16}
    if name in ("GRU", "LSTM"):
        return encoder, {"epochs": 3 if scale == "cpu" else 10}
    size, training = _LIKE_NEGATION[scale]
    return {**encoder, "hidden": size, "embedding": size}, {**ADAGRAD, **training}


class NegationRates(Experiment):
    """A trial is one network, decomposed by every expansion."""

    name = "ours/negation-rates"
    title = 'Negation and intensification as rates: how "not" and "very" change scores of adjectives'
    source = "our own question: the papers have box plots and means of scores, and no rates"
    scales = tuple(SCALES)
    usual_hours = 0.1

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the networks, seed by seed."""
        trials = []
        for seed, name in product(range(_SIZES[scale]["seeds"]), _NETWORKS):
            model, training = _network(name, scale)
            settings = {
                "data": "made-up ratings" if scale == "smoke" else "sst2",
                "network": name,
                **full_settings("classify", model, {**training, "seed": seed}),
                "expansions": list(_EXPANSIONS) if name in _OPENED else [_OWN],
                "stronger": [_VERY, "slightly"] if scale == "smoke" else list(_STRONGER),
                "draws": _SIZES[scale]["draws"],
            }
            trials.append(Trial(f"{name}, seed {seed}", settings))
        return trials

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, or load the shared network, and score adjectives."""
        chosen = trial.settings
        made_up = None if chosen["data"] == "sst2" else _made_up
        corpus, adjectives = corpus_with_adjectives(setup.data, made_up, _RATIO)
        run = train_once(setup, "classify", corpus, chosen["model"], chosen["training"])
        sign = torch.tensor([1.0] * len(adjectives.positive) + [-1.0] * len(adjectives.negative))
        found = {}
        for expansion in chosen["expansions"]:
            by_word = _scores(run, adjectives.all, chosen["stronger"], expansion)
            found[expansion] = {kind: rates(scores, sign, chosen["draws"]) for kind, scores in by_word.items()}
            setup.log(f"{expansion}: {100 * found[expansion]['ngram']['flips'][0]:.0f} % flip")
        return {
            "accuracy": run.metrics["test_accuracy"],
            "positive": len(adjectives.positive),
            "negative": len(adjectives.negative),
            "expansions": found,
        }

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate rates with their intervals."""
        tables = [
            table for name in _NETWORKS if (mine := where(results, network=name)) for table in _tables(name, mine)
        ]
        figure = "ours-negation-rates"
        return Report(tables, {figure: partial(_draw, results)}, {figure: _CAPTION})


def _made_up() -> Classification:
    whole = ratings()
    splits = {name: tuple(rating_signs(split)) for name, split in whole.splits.items()}
    return Classification(name="made-up signs of ratings", labels=("negative", "positive"), **splits)


def _scores(
    run: Run, adjectives: Sequence[str], stronger: Sequence[str], expansion: str
) -> Mapping[str, Mapping[str, Tensor]]:
    """Score adjectives alone (under "") and after each word, as n-grams and as whole phrases."""
    known = [word for word in stronger if word in run.task.vocabulary]  # type: ignore[attr-defined]  # it has one
    words = ("", _NOT, *known)
    phrases = [f"{word} {adjective}".strip() for word in words for adjective in adjectives]
    opened = "zero" if expansion == _OWN else expansion
    rows = {
        "ngram": ngram_scores(run, phrases, opened).view(len(words), -1),
        "phrase": context_scores(run, phrases, opened).view(len(words), -1),
    }
    return {kind: dict(zip(words, scores, strict=True)) for kind, scores in rows.items()}


def rates(scores: Mapping[str, Tensor], sign: Tensor, draws: int) -> dict[str, Any]:
    """Measure how words change the scores of adjectives, each measure with its interval from ``draws`` resamples.

    ``scores`` holds the scores by the word before the adjectives, "" for none; ``sign`` is 1 for positive adjectives
    and -1 for negative ones. The measures: "right", the share of correct signs alone; "flips", the share of signs that
    change after "not", also for each polarity; "shift", the mean change by "not" away from the adjective's sign; and,
    under every other word, the share of scores that it strengthens, also for each polarity: a word that raises every
    score strengthens the positive adjectives and no others.
    """
    alone = scores[""]
    flips = (alone * scores[_NOT] < 0).float()
    found = {
        "right": _resampled((alone * sign > 0).float(), draws),
        "flips": _resampled(flips, draws),
        **_apart("flips", flips, sign, draws),
        "shift": _resampled((alone - scores[_NOT]) * sign, draws),
    }
    for word, after in scores.items():
        if word not in ("", _NOT):
            stronger = (after * alone.sign() > alone.abs()).float()
            found |= {word: _resampled(stronger, draws), **_apart(word, stronger, sign, draws)}
    return found


def _apart(name: str, values: Tensor, sign: Tensor, draws: int) -> dict[str, list[float]]:
    """Give a measure of the positive and of the negative adjectives."""
    return {
        f"{name}_positive": _resampled(values[sign > 0], draws),
        f"{name}_negative": _resampled(values[sign < 0], draws),
    }


def _resampled(values: Tensor, draws: int) -> list[float]:
    """Give the mean of independent values and the interval of the means of resamples."""
    generator = torch.Generator().manual_seed(0)
    drawn = values.double()[torch.randint(len(values), (draws, len(values)), generator=generator)].mean(dim=1)
    return [round(value, 4) for value in (float(values.double().mean()), *interval(drawn.tolist()))]


def _values(mine: Sequence[Result], expansion: str, kind: str, measure: str) -> list[list[float]]:
    """Give a measure with its interval, seed by seed, for seeds whose vocabulary has the word."""
    found = (result["expansions"][expansion][kind] for result in mine)
    return [measures[measure] for measures in found if measure in measures]


def _mean(mine: Sequence[Result], expansion: str, kind: str, measure: str) -> list[float]:
    """Average a measure and its interval over seeds."""
    return [fmean(places) for places in zip(*_values(mine, expansion, kind, measure), strict=True)]


def _cells(mine: Sequence[Result], expansion: str, kind: str, measure: str) -> tuple[Number, str]:
    percent = measure != "shift"
    scale, digits = (100, 1) if percent else (1, 2)
    _, low, high = (scale * value for value in _mean(mine, expansion, kind, measure))
    number = Number([value for value, *_ in _values(mine, expansion, kind, measure)], digits=digits, percent=percent)
    return number, f"{low:.{digits}f} to {high:.{digits}f}"


def _tables(name: str, mine: Sequence[Result]) -> list[Table]:
    rows: list[Sequence[str | Number]] = []
    words: list[Sequence[str | Number]] = []
    listed = mine[0].trial.settings["stronger"]
    stronger = [word for word in listed if _values(mine, next(iter(mine[0]["expansions"])), "ngram", word)]
    for expansion in mine[0]["expansions"]:
        for kind, shown in _KINDS.items():
            measures = ("right", "flips", "flips_positive", "flips_negative", "shift", *stronger[:1])
            cells = [_cells(mine, expansion, kind, measure) for measure in measures]
            alone = cells[0][0]
            apart = [number for number, _ in cells[2:4]]
            rest = [cell for pair in cells[4:] for cell in pair]
            rows.append((expansion, shown, alone, *cells[1], *apart, *rest))
            words.append((expansion, shown, *(_cells(mine, expansion, kind, word)[0] for word in stronger)))
    first = mine[0]
    accuracy = average(mine, "accuracy", digits=1, percent=True)
    title = (
        f"{name} (test accuracy {accuracy}%): {first['positive']} positive and {first['negative']} negative adjectives"
    )
    very = ("strengthened by very, %", "95 %") if stronger else ()
    columns = (
        "expansion", "score of", "correct sign alone, %", "flips after not, %", "95 %", "positive, %", "negative, %",
        "shift by not (logits)", "95 %", *very,
    )  # fmt: skip
    tables = [Table(title, columns, rows)]
    if len(stronger) > 1:
        tables.append(Table(f"{name}: strengthened by each word, %", ("expansion", "score of", *stronger), words))
        tables += _by_polarity(name, mine, stronger)
    return tables


def _by_polarity(name: str, mine: Sequence[Result], stronger: Sequence[str]) -> list[Table]:
    """Tabulate what a word strengthens of each polarity; no table for results that were recorded without it."""
    expansions = mine[0]["expansions"]
    known = [word for word in stronger if _values(mine, next(iter(expansions)), "phrase", f"{word}_positive")]
    if not known:
        return []
    rows = [
        (
            expansion,
            polarity,
            *(_cells(mine, expansion, "phrase", f"{word}_{polarity}")[0] for word in known),
        )
        for expansion, polarity in product(expansions, ("positive", "negative"))
    ]
    title = (
        f"{name}: strengthened by each word, by {_KINDS['phrase']}, % of the positive and of the negative adjectives"
    )
    return [Table(title, ("expansion", "adjectives", *known), rows)]


def _draw(results: Sequence[Result]) -> Figure:
    shown = [name for name in _NETWORKS if where(results, network=name)]
    most = max(len(where(results, network=name)[0]["expansions"]) for name in shown)
    figure, panels = grid(2, len(shown), width=2.7, height=0.9 + 0.25 * most)
    for column, name in enumerate(shown):
        mine = where(results, network=name)
        expansions = list(mine[0]["expansions"])
        for row, measure in enumerate(("flips", _VERY)):
            panel = panels[row * len(shown) + column]
            _draw_values(panel, mine, expansions, measure)
            panel.set_yticks(range(len(expansions)), expansions)
            panel.set(xlim=(-3, 103), ylim=(most - 0.5, -0.5))
            panel.set_xlabel("flips after not, %" if measure == "flips" else "strengthened by very, %")
            panel.axvline(50, color="#888888", linestyle=":", linewidth=1)
        adjectives = f"{mine[0]['positive'] + mine[0]['negative']:,} adjectives"
        write_seeds([panels[column], panels[len(shown) + column]], mine, adjectives)
        panels[column].set_title(name)
    legend_below(figure, panels[0], len(_KINDS))
    return figure


def _draw_values(panel: Axes, mine: Sequence[Result], expansions: Sequence[str], measure: str) -> None:
    """Draw a measure of each expansion in a line of its own, one kind of score above the other."""
    for (number, (kind, label)), (place, expansion) in product(enumerate(_KINDS.items()), enumerate(expansions)):
        if _values(mine, expansion, kind, measure):
            value, low, high = (100 * each for each in _mean(mine, expansion, kind, measure))
            y = place + 0.3 * (number - 0.5)
            panel.plot([low, high], [y, y], color=COLOURS[number], linewidth=1.5)
            panel.plot(value, y, MARKERS[number], color=COLOURS[number], label=label if place == 0 else None)
