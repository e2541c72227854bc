"""Language models with first-order approximations of a GRU or LSTM: table 3, figures 6 and 7, appendix A.4.

"Simplified" is the approximation without the matrices of the tokens, so without sequence-level features; a "variant"
is a cell that the authors propose (appendix A.4). All cells train equally long at the same rate. At scale cpu the text
is the Penn Treebank and the hidden size 128, as in the paper, but the text is read twice and the softmax is adaptive.
So perplexities can be compared with each other, not with the paper's. At scale day both other corpora are read ten
times, with a learning rate that falls to zero. WikiText-103 is used at scale paper only; its files are not included.

Source:
    Sun and Lu, Sequence-level features (2020), section 5.2, table 3, appendices A.3 and A.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from unrolled.lab.data.corpus import Words
from unrolled.lab.papers.framework.curve_figure import LOSSES, curves_of, plot_curves
from unrolled.lab.papers.framework.experiment import (
    SCALES,
    SPLITS,
    Experiment,
    Report,
    Result,
    Scale,
    Trial,
    TrialSetup,
    training_cell,
    where,
)
from unrolled.lab.papers.framework.figure_style import grid, legend_below
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.training_loop import loss_curves
from unrolled.lab.papers.framework.trial_corpora import read_or_make_up
from unrolled.lab.papers.framework.trial_training import run_metrics, train_and_measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PUBLISHED", "PerplexityByCell"]

Published = Mapping[str, tuple[float | None, float]]

PUBLISHED: Mapping[str, Published] = {
    "gru": {"ptb": (89.08, 77.19), "wikitext2": (91.79, 80.68), "wikitext103": (121.77, 116.70)},
    "approx_gru": {"ptb": (90.46, 78.32), "wikitext2": (94.53, 82.69), "wikitext103": (121.70, 116.78)},
    "simplified_gru": {"ptb": (100.30, 85.58), "wikitext2": (105.50, 92.28), "wikitext103": (151.74, 146.54)},
    "gru_variant": {"ptb": (None, 76.90), "wikitext2": (None, 81.42)},
    "lstm": {"ptb": (89.22, 77.11), "wikitext2": (92.23, 80.74), "wikitext103": (105.25, 101.08)},
    "approx_lstm": {"ptb": (90.21, 77.82), "wikitext2": (94.35, 81.21), "wikitext103": (118.21, 114.03)},
    "simplified_lstm": {"ptb": (101.06, 85.64), "wikitext2": (105.67, 92.13), "wikitext103": (143.80, 138.97)},
    "lstm_variant": {"ptb": (None, 76.63), "wikitext2": (None, 80.95)},
}
"""Perplexities on dev and test; the paper gives those of the variants on test only."""

_TYPES = ("gru", "lstm")
_VARIANTS = {"standard": "{}", "approx": "approx_{}", "simplified": "simplified_{}", "variant": "{}_variant"}
_CORPORA = {"made-up": "made-up", "ptb": "PTB", "wikitext2": "WikiText-2", "wikitext103": "WikiText-103"}
_AT: dict[Scale, tuple[str, ...]] = {
    "smoke": ("made-up",),
    "cpu": ("ptb",),
    "day": ("ptb", "wikitext2"),
    "paper": ("ptb", "wikitext2", "wikitext103"),
}
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"seeds": 1, "epochs": 2, "hidden": 8, "adaptive": "off", "batch": 8, "log_every": 5},
    "cpu": {"seeds": 1, "epochs": 2, "hidden": 128, "adaptive": "on", "batch": 20, "log_every": 50},
    "day": {"seeds": 1, "epochs": 10, "hidden": 128, "adaptive": "auto", "batch": 20, "log_every": 200},
    # The paper does not state epochs, batch size, rate and dropout, nor whether word vectors are tied to the softmax
    # (here they are, except for WikiText-103). All but dropout are our task's own; the epochs let all curves flatten.
    "paper": {"seeds": 3, "epochs": 40, "hidden": 128, "adaptive": "auto", "batch": 20, "log_every": 1000},
}
_DROPOUT = 0.2  # the paper does not state it; less than our language models' 0.4, because networks are half as wide
_HOURS = {"ptb": 0.3, "wikitext2": 2.0}
"""Estimated hours of a training at scale day, on one core."""
_CLAMP = 1.5  # appendix A.4: on WikiText-103 alone


class PerplexityByCell(Experiment):
    """A trial is one training."""

    name = "sequence-level-features/table3"
    title = "Language models with approximate, simplified and varied cells"
    source = "Sun and Lu, Sequence-level features (2020), table 3, figures 6 and 7, appendix A.4"
    headline = ("gru", "PTB, test")
    scales = tuple(SCALES)
    day_hours_by = ("corpus", _HOURS)

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the cells, corpus by corpus, seed by seed."""
        sizes = dict(_SIZES[scale])
        listed = []
        for seed, corpus in product(range(sizes.pop("seeds")), _AT[scale]):
            for encoder in PUBLISHED:
                large = corpus == "wikitext103"
                clamped = large and encoder not in _TYPES
                chosen = {
                    **sizes,
                    "corpus": corpus,
                    "encoder": encoder,
                    "hidden": 256 if large else sizes["hidden"],
                    "dropout": _DROPOUT,
                    "options": {"clamp": _CLAMP} if clamped else {},
                    "seed": seed,
                }
                listed.append(Trial(f"{encoder} on {_CORPORA[corpus]}, seed {seed}", chosen))
        return listed

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, measure on dev and test, and keep the learning curves."""
        chosen = trial.settings
        corpus = read_or_make_up(chosen["corpus"], Words, setup.data)
        model = {name: chosen[name] for name in ("encoder", "hidden", "dropout", "adaptive", "options")}
        training = {name: chosen[name] for name in ("epochs", "batch", "log_every", "seed")}
        return train_and_measure(
            setup,
            "lm",
            corpus,
            {**model, "embedding": chosen["hidden"]},
            training,
            lambda run: {**run_metrics(run), "curves": loss_curves(run)},
        )

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Compare perplexities with the published ones."""
        corpora = [corpus for corpus in _AT[scale] if where(results, corpus=corpus)]
        rows: list[Sequence[str | Number]] = []
        for encoder in PUBLISHED:
            if where(results, encoder=encoder):
                published = PUBLISHED[encoder]
                cells = [
                    training_cell(
                        where(results, encoder=encoder, corpus=corpus),
                        f"{split}_perplexity",
                        published.get(corpus, (None, None))[place],
                        digits=2,
                    )
                    for corpus in corpora
                    for place, split in enumerate(SPLITS)
                ]
                rows.append((encoder.replace("_", " "), *cells))
        columns = [f"{_CORPORA[corpus]}, {split}" for corpus in corpora for split in SPLITS]
        table = Table("Perplexity of a word, counting <eos>", ("cell", *columns), rows)
        drawn = {f"sequence-level-features-curves-{corpus}": partial(_draw, results, corpus) for corpus in corpora}
        return Report([table], drawn)


def _draw(results: Sequence[Result], corpus: str) -> Figure:
    figure, panels = grid(1, len(_TYPES), width=4.4)
    for panel, kind in zip(panels, _TYPES, strict=True):
        ran = {name: where(results, corpus=corpus, encoder=form.format(kind)) for name, form in _VARIANTS.items()}
        plot_curves(panel, {name: curves_of(each) for name, each in ran.items()})
        panel.set_title(f"{kind.upper()}, {_CORPORA[corpus]}")
    panels[0].set_ylabel(LOSSES)
    legend_below(figure, max(panels, key=lambda panel: len(panel.lines)), len(_VARIANTS))
    return figure
