"""Negation and double negation of adjectives: table 1, figures 1 and 2.

A GRU and an LSTM learn the negation corpus, with and without its double negations. The score of a phrase such as
"not not charming" is wᵀ v of the n-gram that is the whole phrase. It is computed with the paper's first-order
approximation and with an exact expansion, whose n-grams add up to the network's own state.

Source:
    Sun and Lu, Sequence-level features (2020), section 5.1.2, table 1, figures 1 and 2, appendix A.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any, cast

from unrolled.lab.data.datasets.negation import NEGATIVE, POSITIVE, NegationReviews
from unrolled.lab.papers.analyses.polarity import context_scores, ngram_scores, triangle_scores
from unrolled.lab.papers.analyses.sentiment_networks import NEGATION_SIZES, learn_negation, negation_corpus
from unrolled.lab.papers.framework.experiment import (
    Experiment,
    Report,
    Result,
    Scale,
    Trial,
    TrialSetup,
    average,
    where,
)
from unrolled.lab.papers.framework.figure_style import COLOURS, draw_box_pairs, grid, legend_below, seed_captions
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_training import run_metrics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from torch import nn

__all__ = ["ADJECTIVES", "BEFORE", "PUBLISHED", "NegationScores"]

PUBLISHED: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]] = {
    "gru": {
        "positive": ((4.25, 0.13), (-6.13, 0.15), (12.45, 0.33)),
        "negative": ((-3.72, 0.06), (4.82, 0.11), (-11.29, 0.23)),
    },
    "lstm": {
        "positive": ((4.79, 0.27), (-9.32, 0.31), (21.39, 0.74)),
        "negative": ((-4.49, 0.24), (3.13, 0.27), (-7.65, 0.66)),
    },
}
"""Table 1: mean scores of tokens, negation phrases and double negation phrases by the activation expansion, each with
the number after its ±; the paper does not say what that number is."""

ADJECTIVES = {"positive": POSITIVE, "negative": NEGATIVE}
BEFORE = {"tokens": "", "negations": "not ", "double negations": "not not "}
_EXPANSIONS = {"activation": "approximation", "path": "exact"}
_SENTENCE = "those filmmakings were not not charming"
_TESTED = "double negations"
_SEEDS: dict[Scale, int] = {"smoke": 1, "cpu": 3, "paper": 10}


class NegationScores(Experiment):
    """A trial is one network."""

    name = "sequence-level-features/negation"
    title = "Negation and double negation: scores of adjectives"
    source = "Sun and Lu, Sequence-level features (2020), table 1, figures 1 and 2"

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the networks, seed by seed; a seed draws sentences and weights."""
        return [
            Trial(
                f"{encoder.upper()}, with{'' if double else 'out'} double negations, seed {seed}",
                {**NEGATION_SIZES[scale], "encoder": encoder, "double_negation": double, "seed": seed},
            )
            for seed in range(_SEEDS[scale])
            for double in (True, False)
            for encoder in PUBLISHED
        ]

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, and score every adjective alone, after one "not" and after two."""
        chosen = trial.settings
        seed = int(chosen["seed"])
        corpus = negation_corpus(chosen["train"], seed, chosen["double_negation"])
        run = learn_negation(setup, corpus, chosen["encoder"], chosen["size"], chosen["epochs"], seed)
        scores = {
            expansion: {
                polarity: [
                    ngram_scores(run, [before + word for word in words], expansion).tolist()
                    for before in BEFORE.values()
                ]
                for polarity, words in ADJECTIVES.items()
            }
            for expansion in _EXPANSIONS
        }
        bars = {expansion: triangle_scores(run, _SENTENCE, expansion)[-1].tolist() for expansion in _EXPANSIONS}
        phrases = [f"{BEFORE[_TESTED]}{word}" for words in ADJECTIVES.values() for word in words]
        own = context_scores(run, phrases)
        gaps = {name: (context_scores(run, phrases, name) - own).abs().mean().item() for name in _EXPANSIONS}
        doubled = [each for each in NegationReviews(seed=seed).read().test if each.tokens[-3:-1] == ("not", "not")]
        scored = context_scores(run, [" ".join(each.tokens) for each in doubled])
        bias = cast("nn.Linear", run.model.head).bias.detach()
        positive = (scored + bias[1] - bias[0] > 0).tolist()
        right = fmean(found == (each.label == 1) for found, each in zip(positive, doubled, strict=True))
        return {**run_metrics(run), "scores": scores, "bars": bars, "gap": gaps, "right_doubled": right}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate the scores, count how often every "not" reverses the sign, and draw both figures."""
        drawn: dict[str, Callable[[], Figure]] = {
            f"sequence-level-features-figure1-{encoder}": partial(_draw_boxes, results, encoder)
            for encoder in PUBLISHED
            if where(results, encoder=encoder)
        }
        if any(where(results, encoder=encoder, double_negation=True) for encoder in PUBLISHED):
            drawn["sequence-level-features-figure2"] = partial(_draw_bars, results)
        tables = [_scores(results), _signs(results)]
        captions = seed_captions(drawn, "scores", results)
        return Report([table for table in tables if table.rows], drawn, captions)


def alternating(scores: Sequence[Sequence[float]]) -> int:
    """Count the adjectives whose score changes its sign with each "not", from scores alone, after one and after two."""
    return sum(alone * once < 0 and once * twice < 0 for alone, once, twice in zip(*scores, strict=True))


def _scores(results: Sequence[Result]) -> Table:
    """Tabulate the mean scores of the adjectives as table 1 does."""
    rows: list[Sequence[str | Number]] = []
    found = {
        encoder: chosen for encoder in PUBLISHED if (chosen := where(results, encoder=encoder, double_negation=True))
    }
    for polarity, (kind, name) in product(ADJECTIVES, enumerate(BEFORE)):
        cells = [
            Number([fmean(each["scores"][expansion][polarity][kind]) for each in chosen], theirs)
            for encoder, chosen in found.items()
            for expansion, theirs in zip(_EXPANSIONS, (PUBLISHED[encoder][polarity][kind][0], None), strict=True)
        ]
        if cells:
            rows.append((f"{polarity} ({len(ADJECTIVES[polarity])}), {name}", *cells))
    columns = [f"{encoder.upper()}, {name}" for encoder, name in product(found, _EXPANSIONS.values())]
    title = "Polarity scores, mean over the adjectives, mean ± standard deviation of seeds (published, approximation)"
    return Table(title, ("adjectives", *columns), rows)


def _signs(results: Sequence[Result]) -> Table:
    total = sum(map(len, ADJECTIVES.values()))
    rows: list[Sequence[str | Number]] = []
    for encoder, double in product(PUBLISHED, (True, False)):
        if chosen := where(results, encoder=encoder, double_negation=double):
            counts = [Number([_alternating(result, name) for result in chosen], digits=1) for name in _EXPANSIONS]
            gaps = [Number([result["gap"][name] for result in chosen]) for name in _EXPANSIONS]
            shares = (average(chosen, name, digits=1, percent=True) for name in ("test_accuracy", "right_doubled"))
            rows.append((f"{encoder.upper()}, {'with' if double else 'without'}", *counts, *gaps, *shares))
    names = tuple(_EXPANSIONS.values())
    columns = (
        "trained with double negations",
        *(f"sign reverses, {name}" for name in names),
        *(f"error, {name}" for name in names),
        "test accuracy, %",
        "accuracy on double negations, %",
    )
    title = (
        f"Adjectives, of {total}, whose score changes its sign with each not; mean error of the sum of n-grams of "
        "double negations; accuracy"
    )
    return Table(title, columns, rows)


def _alternating(result: Result, expansion: str) -> int:
    return sum(alternating(scores) for scores in result["scores"][expansion].values())


def _draw_boxes(results: Sequence[Result], encoder: str) -> Figure:
    trained = [
        chosen[0] for double in (True, False) if (chosen := where(results, encoder=encoder, double_negation=double))
    ]
    figure, panels = grid(len(trained), len(ADJECTIVES), width=4.0, height=2.8)
    boxes: list[Any] = []
    for panel, (result, polarity) in zip(panels, product(trained, ADJECTIVES), strict=True):
        boxes = draw_box_pairs(panel, [dict(enumerate(result["scores"][name][polarity])) for name in _EXPANSIONS])
        doubled = result.trial.settings["double_negation"]
        panel.set_xticks(range(len(BEFORE)), list(BEFORE))
        panel.set_title(f"{polarity}, trained {'with' if doubled else 'without'} double negations")
    for panel in panels[:: len(ADJECTIVES)]:
        panel.set_ylabel(f"polarity score (logits), {encoder.upper()}")
    figure.legend(boxes, list(_EXPANSIONS.values()), loc="outside lower center", ncols=len(_EXPANSIONS))
    return figure


def _draw_bars(results: Sequence[Result]) -> Figure:
    found = [chosen[0] for encoder in PUBLISHED if (chosen := where(results, encoder=encoder, double_negation=True))]
    figure, panels = grid(1, len(found), width=4.6, height=3.2)
    for panel, result in zip(panels, found, strict=True):
        _draw_sentence(panel, result)
        panel.tick_params(labelleft=panel is panels[0])
    legend_below(figure, panels[0], len(_EXPANSIONS))
    return figure


def _draw_sentence(panel: Axes, result: Result) -> None:
    words = _SENTENCE.split()
    for number, (expansion, name) in enumerate(_EXPANSIONS.items()):
        places = [start - 0.4 * number + 0.2 for start in range(len(words))]
        hatch = ("", "///")[number]
        bars = result["bars"][expansion]
        panel.barh(places, bars, height=0.36, color=COLOURS[number], alpha=0.8, hatch=hatch, edgecolor="w", label=name)
    panel.axvline(0, color="#888888", linewidth=1)
    panel.set_yticks(range(len(words)), [" ".join(words[start:]) for start in range(len(words))])
    panel.set(title=result.trial.settings["encoder"].upper(), xlabel="polarity score (logits)")
