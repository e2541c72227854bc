"""Negation: how "not" changes the polarity scores of adjectives, in n-gram models and in decomposed networks.

The paper shows box plots without numbers; the table here states the same in numbers. The score of "not bad" is that
of the bigram alone. VA-W and VA-EW have n-grams of one token only, and a Transformer has none, so their scores are
those of the context, as in the paper. GRU, LSTM and Elman networks are expanded at zero, as in the paper.

The models learn all phrases of SST-2; whole sentences contain a sixth as many "not". At scale cpu they have 64 units
(MM 16 x 16 matrices) and train for 2 epochs; in the paper 300 units (32 x 32), for an unstated number of epochs.
At scale day they are the networks of implicit-ngrams/table3.

Source:
    Sun and Lu (2022), Implicit n-grams, figures 2 and 4, section 5.2, appendix E.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from unrolled.lab.papers.analyses.polarity import context_scores, ngram_scores
from unrolled.lab.papers.analyses.sentences.polar_adjectives import (
    PAPER_ADJECTIVES,
    PAPER_COUNTS,
    PolarAdjectives,
    corpus_with_adjectives,
)
from unrolled.lab.papers.analyses.sentiment_networks import ADAGRAD
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
from unrolled.lab.papers.framework.learned import learned
from unrolled.lab.papers.framework.synthetic_corpora import negation
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_training import full_settings, train_once
from unrolled.lab.papers.implicit_ngrams.model_names import encoder_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LEARNS", "Negation"]

_FIGURES = {
    "figure2": ("GRU", "MVMA-G", "MVM-G", "MVMA-E", "MVMA-ME", "MM", "VA-W", "Transformer"),
    "figure4": ("LSTM", "MVMA-L", "MVM-L", "VA-EW"),
}
_MODELS = (
    "GRU", "MVMA-G", "LSTM", "MVMA-L", "VA-W", "MVM-G", "MVM-L", "MVMA-ME", "MVMA-E", "Transformer", "VA-EW", "MM",
    "Elman",
)  # fmt: skip
"""Those of both figures, the most informative first, and the Elman network, which the paper only mentions."""
_SMOKE = ("GRU", "MVMA-G", "VA-W", "MVMA-ME", "MVMA-E", "Transformer", "MM")
_BY_CONTEXT = ("VA-W", "VA-EW", "Transformer")
LEARNS: Mapping[str, bool | None] = {
    "GRU": True, "MVMA-G": True, "MVM-G": True, "MVMA-ME": None, "LSTM": True, "MVMA-L": True, "MVM-L": True,
    "MVMA-E": False, "MM": False, "VA-W": False, "VA-EW": False, "Transformer": False,
}  # fmt: skip
"""Whether the paper says that the model captures negation. Of those that do not it says that they struggle with
negative adjectives, and nothing of positive ones; of MVMA-ME that it learns negative adjectives better than MVMA-E."""
_GROUPS = ("positive", "not positive", "negative", "not negative")

_SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"seeds": 1, "hidden": 8, "side": 3, "window": 5},
    "cpu": {"seeds": 1, "hidden": 64, "side": 16, "window": 5},
    "day": {"seeds": 3, "hidden": 300, "side": 32, "window": 54},
    # the paper does not state the window of VA-W; here it is the longest phrase
    "paper": {"seeds": 3, "hidden": 300, "side": 32, "window": 54},
}
_TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"epochs": 1, "batch": 16},
    "cpu": {"epochs": 2},
    "day": {"lr": 0.01, "epochs": 6, "patience": 2, "batch": 128},
    "paper": {"epochs": 30},
}
_HOURS = {"MM": 0.3, "VA-W": 0.2}
"""Estimated hours of a training at scale day that takes longer than usual; it takes less if table 3 has trained it."""
_BOXES = 0.5
"""The worth of a model's boxes: the figures print no numbers to compare with."""
_RATIO = 1.5  # for the generated corpus of scale smoke, whose negated adjectives are too frequent for 3


class Negation(Experiment):
    """A trial is one model."""

    name = "implicit-ngrams/negation"
    title = 'Negation: scores of adjectives and of the same after "not"'
    source = "Sun and Lu (2022), Implicit n-grams, figures 2 and 4; box plots without printed numbers"
    scales = tuple(SCALES)
    usual_hours = 0.1
    day_hours_by = ("name", _HOURS)

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the models, seed by seed."""
        sizes, trials = _SIZES[scale], []
        for seed, model in product(range(sizes["seeds"]), _MODELS if scale != "smoke" else _SMOKE):
            size = sizes["side"] ** 2 if model == "MM" else sizes["hidden"]
            architecture = {
                "encoder": encoder_of(model),
                "hidden": size,
                "embedding": size,
                "pooling": "mean" if model == "Transformer" else "last",
                "options": {"window": sizes["window"]} if model == "VA-W" else {},
            }
            if model == "MM" and scale == "day":
                architecture["dropout"] = 0.0
            settings = {
                "data": "made-up negation" if scale == "smoke" else "sst2",
                "name": model,
                **full_settings("classify", architecture, {**ADAGRAD, **_TRAINING[scale], "seed": seed}),
            }
            trials.append(Trial(f"{model}, seed {seed}", settings))
        return trials

    def worth(self, trial: Trial) -> float:
        """Count boxes less than numbers."""
        return _BOXES

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, and score adjectives."""
        chosen = trial.settings
        made_up = None if chosen["data"] == "sst2" else partial(negation, (96, 16, 16))
        corpus, adjectives = corpus_with_adjectives(setup.data, made_up, _RATIO)
        run = train_once(setup, "classify", corpus, chosen["model"], chosen["training"])
        by_context = chosen["name"] in _BY_CONTEXT
        found: dict[str, Any] = {}
        for polarity, words in (("positive", adjectives.positive), ("negative", adjectives.negative)):
            for group, phrases in ((polarity, words), (f"not {polarity}", [f"not {word}" for word in words])):
                scores = context_scores(run, phrases) if by_context else ngram_scores(run, phrases)
                found[group] = [round(score, 4) for score in scores.tolist()]
        return {
            "dev_accuracy": run.metrics["dev_accuracy"],
            "test_accuracy": run.metrics["test_accuracy"],
            "scores": found,
            "printed": _printed(adjectives),
        }

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Summarise the box plots in numbers, and draw them."""
        figures = {
            f"implicit-ngrams-negation-{name}": partial(_draw, results, models)
            for name, models in {**_FIGURES, "elman": ("Elman",)}.items()
            if any(where(results, name=model) for model in models)
        }
        captions = seed_captions(figures, "boxes", results)
        return Report([_adjectives(results), _table(results)], figures, captions)

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool | None]:
        """The paper: "not" reverses adjectives in the models that learn it, and not the negative ones in the others."""
        claims: dict[str, bool | None] = {}
        for model, learns in LEARNS.items():
            if learns is not None and (trained := where(results, name=model)):
                chosen = learned(trained, classes=2)
                if learns:
                    below = _median(chosen, "not positive") < 0 if chosen else None
                    claims[f'{model}: most positive adjectives are negative after "not"'] = below
                verb = "are" if learns else "are not"
                claim = f'{model}: most negative adjectives {verb} positive after "not"'
                claims[claim] = (_median(chosen, "not negative") > 0) == learns if chosen else None
        both = [where(results, name=model) for model in ("MVMA-ME", "MVMA-E")]
        if all(both):
            better, worse = (
                [flipped(each["scores"]["negative"], each["scores"]["not negative"]) for each in learned(mine, 2)]
                for mine in both
            )
            claim = 'MVMA-ME: more negative adjectives have the other sign after "not" than in MVMA-E'
            claims[claim] = fmean(better) > fmean(worse) if better and worse else None
        return claims


def _median(results: Sequence[Result], group: str) -> float:
    """Average the median score of a group over trainings."""
    return fmean(median(each["scores"][group]) for each in results)


def _printed(adjectives: PolarAdjectives) -> list[int]:
    """Count the adjectives printed in the paper that ours include, positive and negative."""
    return [
        len(set(adjectives.positive) & set(PAPER_ADJECTIVES.positive)),
        len(set(adjectives.negative) & set(PAPER_ADJECTIVES.negative)),
    ]


def flipped(alone: Sequence[float], negated: Sequence[float]) -> float:
    """Give the share of adjectives whose score has the other sign after "not"."""
    return fmean(float(one * other < 0) for one, other in zip(alone, negated, strict=True))


def _share(scores: Sequence[float], sign: int) -> float:
    return fmean(float(sign * score > 0) for score in scores)


def _adjectives(results: Sequence[Result]) -> Table:
    rows = []
    for place, polarity in enumerate(("positive", "negative")):
        found, theirs = len(results[0]["scores"][polarity]), getattr(PAPER_ADJECTIVES, polarity)
        number = Number([found], PAPER_COUNTS[polarity], digits=0)
        rows.append((polarity, number, f"{results[0]['printed'][place]} of {len(theirs)}"))
    columns = ("adjectives", "found", "printed adjectives among them")
    return Table("Polar adjectives of the training texts", columns, rows)


def _table(results: Sequence[Result]) -> Table:
    rows: list[Sequence[str | Number]] = []
    for model in _MODELS:
        if mine := where(results, name=model):
            scores = [result["scores"] for result in mine]
            shares = [
                [_share(each["positive"], 1) for each in scores],
                [flipped(each["positive"], each["not positive"]) for each in scores],
                [_share(each["negative"], -1) for each in scores],
                [flipped(each["negative"], each["not negative"]) for each in scores],
            ]
            medians = [[median(each[group]) for each in scores] for group in _GROUPS]
            rows.append((
                f"{model}, context" if model in _BY_CONTEXT else model,
                average(mine, "test_accuracy", digits=1, percent=True),
                *(Number(values, digits=0, percent=True) for values in shares),
                *(Number(values) for values in medians),
            ))  # fmt: skip
    columns = (
        "model", "test accuracy, %", "positive: correct alone, %", "flips after not, %", "negative: correct alone, %",
        "flips after not, %", *(f"median: {group}" for group in _GROUPS),
    )  # fmt: skip
    return Table("Scores of adjectives, alone and after not: shares and medians", columns, rows)


def _draw(results: Sequence[Result], models: Sequence[str]) -> Figure:
    shown = [model for model in models if where(results, name=model)]
    columns = min(4, len(shown))
    figure, panels = grid(-(-len(shown) // columns), columns, width=2.4, height=2.5)
    for panel, model in zip(panels, shown, strict=False):
        groups = ((group.replace(" ", "\n"), group) for group in _GROUPS)
        scores = {label: where(results, name=model)[0]["scores"][group] for label, group in groups}
        draw_boxes(panel, scores, [(COLOURS[number // 2], 0.3 if number % 2 else 0.75) for number in range(4)])
        panel.tick_params(axis="x", labelsize=7)
        panel.set_title(f"{model}, context" if model in _BY_CONTEXT else model)
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    for panel in panels[::columns]:
        panel.set_ylabel("polarity score (logits)")
    return figure
