"""The error of the first-order expansion against weight decay: appendix B.2.

Networks learn the sentiment of SST-2 with different weight decays. Every hidden state of the test sentences is
compared with g + A s of the state before: expanded at zero as in the paper, and by this library's other expansions
("activation" linearises σ and tanh; "operating" and "path" are exact). The tables also show the error of the whole sum
of n-grams, in which errors accumulate, and dev accuracy, which weight decay lowers. The first state of a sentence comes
from zero, so the first two expansions have no error there; the mean error of a step is given with and without it.

At scale cpu, vectors have 64 dimensions (the paper: 300) and SST-2 is its whole sentences, without their phrases. Scale
day has the paper's sizes and data. It trains each network with and without spectral normalisation, which the paper says
its standard networks had (section 5, note 8).

Source:
    Sun and Lu (2022), Implicit n-grams, appendix B.2, equation 15.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any, cast

import torch

from unrolled.decomposition.decomposition import decompose
from unrolled.decomposition.opening.network_cells import Network
from unrolled.lab.data.corpus import Classification
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.papers.analyses.expansion_errors import step_errors
from unrolled.lab.papers.framework.experiment import (
    SCALES,
    Experiment,
    Report,
    Result,
    Scale,
    Trial,
    TrialSetup,
    average,
    pick,
    where,
)
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid, legend_below, write_seeds
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_corpora import read_or_make_up
from unrolled.lab.papers.framework.trial_training import run_metrics, train_model
from unrolled.lab.papers.implicit_ngrams.model_names import encoder_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from unrolled.lab.data.batches.base import EncodedTexts

__all__ = ["PUBLISHED", "Approximation", "mean_errors"]

PUBLISHED: Mapping[str, Mapping[float, float]] = {
    "Elman": {1e-5: 26.2, 3e-4: 17.1},
    "GRU": {1e-5: 21.7, 3e-4: 15.1},
    "LSTM": {1e-5: 46.6, 3e-4: 33.3},
}
"""Mean error of a step in percent, by weight decay."""

_EXPANSIONS = ("zero", "activation", "operating", "path")
_DECAYS: dict[Scale, tuple[float, ...]] = {
    "smoke": (1e-5, 3e-4),
    "cpu": (1e-5, 3e-4, 1e-4, 3e-5, 1e-3),
    "day": (1e-5, 3e-4),
    "paper": (1e-5, 3e-4, 1e-4, 3e-5, 1e-3, 0.0),
}
"""The published ones first."""
_CAPTION = (
    "the means over the seeds; bars reach from the smallest of their values to the largest. Our marks at one weight "
    "decay stand side by side, so that they do not cover each other. The paper says that its standard networks have "
    "normalised spectra, so its numbers should be of normalised networks. Panels of other networks show them as well."
)
_APART = 1.15
"""By this factor neighbouring marks of one weight decay are apart."""
_DRAWN = {"step, at zero": "step_zero", "step, activation": "step_activation", "sum, at zero": "sum_zero"}
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"seeds": 1, "corpus": "made-up", "hidden": 8, "epochs": 2, "batch": 8},
    "cpu": {"seeds": 3, "corpus": "sst2-sentences", "hidden": 64, "epochs": 6, "batch": 32},
    "day": {"seeds": 3, "corpus": "sst2", "hidden": 300, "epochs": 6, "patience": 2, "batch": 128},
    "paper": {"seeds": 3, "corpus": "sst2", "hidden": 300, "epochs": 30, "batch": 64},
}
_SPECTRAL: dict[Scale, tuple[bool, ...]] = {"day": (False, True)}
"""Whether the spectrum of recurrent weights is normalised; it is not at the other scales."""
# The paper does not say how it trained these networks. We assume the training of its table 3.
_TRAINING: dict[str, Any] = {"optimiser": "adagrad", "lr": 0.01, "clip": 1.0}
_DROPOUT = {"dropout": 0.5, "word_dropout": 0.1}
_LEARNED = ("epochs", "patience", "batch", *_TRAINING, "weight_decay", "spectral", "spectral_stack", "seed")
_HOURS = {"Elman": 0.06, "GRU": 0.08, "LSTM": 0.09}
"""Estimated hours of a training at scale day, on one core."""
_BATCH = 64


class Approximation(Experiment):
    """A trial is one training."""

    name = "implicit-ngrams/approximation"
    title = "The error of a first-order step against weight decay"
    source = "Sun and Lu (2022), Implicit n-grams, appendix B.2"
    headline = ("GRU, normalised, 1e-05", "GRU, 1e-05", "step, zero")  # the paper's own networks are normalised
    compared_columns = ("step, zero",)
    scales = tuple(SCALES)
    day_hours_by = ("kind", _HOURS)

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the networks, the published weight decays first."""
        sizes, listed = dict(_SIZES[scale]), []
        seeds = range(sizes.pop("seeds"))
        for seed, spectral, decay, kind in product(seeds, _SPECTRAL.get(scale, (False,)), _DECAYS[scale], PUBLISHED):
            settings = {"kind": kind, "weight_decay": decay, **sizes, **_TRAINING, **_DROPOUT, "seed": seed}
            if spectral:
                settings["spectral"] = True
            listed.append(Trial(f"{_title(kind, spectral)}, weight decay {decay:g}, seed {seed}", settings))
        return listed

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, then compare every state of the test sentences with each expansion."""
        chosen = trial.settings
        corpus = read_or_make_up(chosen["corpus"], Classification, setup.data, (64, 16, 16))
        model = {"hidden": chosen["hidden"], "embedding": chosen["hidden"], **{name: chosen[name] for name in _DROPOUT}}
        model["options"] = {"bias": chosen["bias"]} if "bias" in chosen else {}
        training = pick(chosen, _LEARNED)
        run = train_model(setup, "classify", corpus, {"encoder": encoder_of(chosen["kind"]), **model}, training)
        split = cast("EncodedTexts", run.task.encode(corpus.test))
        return {**run_metrics(run), **mean_errors(cast("Classifier", run.model), split)}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Compare the errors of a step with the published ones."""
        rows: list[Sequence[str | Number]] = []
        without_first = any("later_zero" in each.values for each in results)  # the first recorded results lack it
        for spectral, kind, decay in product((False, True), PUBLISHED, sorted(_DECAYS[scale])):
            if chosen := where(_normalised(results, spectral), kind=kind, weight_decay=decay):
                published = PUBLISHED[kind].get(decay)
                theirs = published and published / 100
                share = partial(average, chosen, digits=1, percent=True)
                later = [share("later_zero", theirs)] if without_first else []
                rows.append((
                    _title(kind, spectral), f"{decay:g}", share("step_zero", theirs),
                    *(share(f"step_{name}") for name in _EXPANSIONS[1:]), *later, share("sum_zero"), share("sum_path"),
                    average(chosen, "state"), share("dev_accuracy"),
                ))  # fmt: skip
        columns = (
            *("network", "weight decay", *(f"step, {name}" for name in _EXPANSIONS)),
            *(("step, zero, without first states",) if without_first else ()),
            *("sum, zero", "sum, path", "‖h‖", "dev accuracy"),
        )
        title = (
            "Mean relative error of the hidden states of the test sentences, %: of one step (published: at zero), and "
            "of the sum of n-grams"
        )
        figure = "implicit-ngrams-approximation"
        return Report([Table(title, columns, rows)], {figure: partial(_draw, results, scale)}, {figure: _CAPTION})


def _title(kind: str, spectral: bool) -> str:
    return f"{kind}, normalised" if spectral else kind


def _normalised(results: Sequence[Result], spectral: bool) -> list[Result]:
    """Select the networks with spectral normalisation, or those without."""
    return [result for result in results if result.trial.settings.get("spectral", False) == spectral]


@torch.no_grad()
def mean_errors(model: Classifier, split: EncodedTexts) -> dict[str, float]:
    """Average errors over all states of a split; ``later_zero`` leaves out the first states, which have no error.

    A sum of n-grams that overflows has no mean error.
    """
    totals: dict[str, float] = {}
    count, first = 0, 0.0
    rnn = cast("Network", model.encoder)
    for which in split.plan(_BATCH):
        batch = split.select(which)
        vectors = model.embedding(batch.tokens)
        for name in _EXPANSIONS:
            found = decompose(rnn, vectors, batch.lengths, expansion=name)
            measured = {f"step_{name}": step_errors(found), f"sum_{name}": found.residual()}
            if name == "zero":
                first += float(measured["step_zero"][:, 0].double().sum())
                measured["state"] = torch.linalg.vector_norm(found.states(), dim=-1)
            for what, values in measured.items():
                totals[what] = totals.get(what, 0.0) + float(values.double().sum())
        count += int(batch.lengths.sum())
    means = {what: total / count for what, total in totals.items() if math.isfinite(total)}
    return {**means, "later_zero": (totals["step_zero"] - first) / (count - len(split))}


def _draw(results: Sequence[Result], scale: Scale) -> Figure:
    kinds = [spectral for spectral in (False, True) if _normalised(results, spectral)]
    figure, panels = grid(len(kinds), len(PUBLISHED), width=3.2, height=2.8)
    decays = [decay for decay in sorted(_DECAYS[scale]) if decay]  # a logarithmic axis has no place for 0
    for panel, (spectral, kind) in zip(panels, product(kinds, PUBLISHED), strict=True):
        mine = where(_normalised(results, spectral), kind=kind)
        found = {decay: chosen for decay in decays if (chosen := where(mine, weight_decay=decay))}
        for number, (label, name) in enumerate(_DRAWN.items()):
            factor = _APART ** (number - 1)
            values = {factor * decay: [100 * each[name] for each in chosen] for decay, chosen in found.items()}
            _draw_line(panel, values, color=COLOURS[number], marker=MARKERS[number], label=label)
        style: dict[str, Any] = {"color": COLOURS[6], "marker": MARKERS[6], "linestyle": ":"}
        panel.plot([*PUBLISHED[kind]], [*PUBLISHED[kind].values()], **style, label="step, at zero, published")
        panel.set(xscale="log", title=_title(kind, spectral), xlabel="weight decay")
        _write_decades(panel)
    write_seeds(panels, results)
    for panel in panels[:: len(PUBLISHED)]:
        panel.set_ylabel("relative error of a hidden state, %")
    legend_below(figure, panels[0], 4)
    return figure


def _draw_line(panel: Axes, values: Mapping[float, Sequence[float]], **style: Any) -> None:
    """Draw means against weight decay, with bars from the smallest to the largest value."""
    means = [fmean(each) for each in values.values()]
    below = [mean - min(each) for mean, each in zip(means, values.values(), strict=True)]
    above = [max(each) - mean for mean, each in zip(means, values.values(), strict=True)]
    panel.errorbar([*values], means, yerr=(below, above), elinewidth=0.8, capsize=2, **style)


def _write_decades(panel: Axes) -> None:
    """Make the vertical axis logarithmic; over more than three decades, label powers of ten only."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter

    panel.set_yscale("log")  # sums of errors may be very large
    low, high = panel.get_ylim()
    is_wide = high > 1e3 * low
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0,) if is_wide else (1.0, 2.0, 5.0)))
    panel.yaxis.set_major_formatter(LogFormatterSciNotation() if is_wide else "{x:g}")
    panel.yaxis.set_minor_formatter(NullFormatter())
