"""Language models whose encoder is an n-gram model or a recurrent network: table 5.

One layer reads words and a softmax predicts the next word; all models train equally long at the same rate. At scale
cpu, vectors have 64 dimensions (the paper: 512), the softmax is adaptive, and the text is read once: the Penn Treebank
whole, a sixth of WikiText-2's training text. So perplexities can be compared with each other, not with the paper's.
Scale day has the paper's sizes and its full softmax; the learning rate falls to zero within fewer epochs than the
paper's fifty. WikiText-103 is used at scale paper only; its files are not included.

The paper names dropout for sentiment and relations, and does not mention it for language models. It names Adam and no
rate. So at scale day two models train on the Penn Treebank without dropout as well, at our rate and at 0.001, which
Adam has where none is given. A second table compares them.

In the available text of the paper, the rows of the table are shifted: a model's name is next to its test numbers, its
dev numbers are one line above, and the first line lacks one number. Read so, all dev perplexities on the Penn Treebank
and WikiText-2 are above those on test, as expected for these texts.

Source:
    Sun and Lu (2022), Implicit n-grams, table 5, section 5.1, appendix E.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from unrolled.lab.data.corpus import Words
from unrolled.lab.data.load import load_dataset
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
    dev_test_rows,
    where,
)
from unrolled.lab.papers.framework.figure_style import grid, legend_below
from unrolled.lab.papers.framework.synthetic_corpora import words
from unrolled.lab.papers.framework.table import Table
from unrolled.lab.papers.framework.training_loop import loss_curves
from unrolled.lab.papers.framework.trial_training import run_metrics, train_and_measure
from unrolled.lab.papers.implicit_ngrams.model_names import encoder_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CORPORA", "PUBLISHED", "PerplexityByEncoder"]

CORPORA = {"ptb": "PTB", "wikitext2": "WikiText-2", "wikitext103": "WikiText-103"}
_FAILED = (None, None)  # "failed to converge"
PUBLISHED: Mapping[str, tuple[float | None, ...]] = {
    "GRU": (118.4, 110.1, 146.1, 136.8, None, 113.3),  # the dev number on WikiText-103 is missing
    "MVMA-G": (119.8, 111.1, 150.3, 140.2, 111.8, 115.2),
    "MVM-G": (146.5, 138.8, 170.1, 160.0, *_FAILED),
    "LSTM": (118.6, 109.8, 150.6, 140.4, 108.3, 112.4),
    "MVMA-L": (121.5, 113.2, 152.0, 142.5, 109.1, 112.6),
    "MVM-L": (124.3, 117.0, 155.6, 145.7, *_FAILED),
    "MVMA-ME": (140.7, 134.0, 169.0, 158.4, 153.1, 157.4),
}
"""Perplexities on dev and test of each corpus, in the order of ``CORPORA``."""

_AT: dict[Scale, dict[str, dict[str, Any]]] = {
    "smoke": {"ptb": {"hidden": 8, "embedding": 8}},
    "cpu": {"ptb": {"hidden": 64, "embedding": 64}, "wikitext2": {"hidden": 64, "embedding": 64, "steps": 500}},
    # four epochs of WikiText-2 have as many words as nine of the Penn Treebank
    "day": {"ptb": {"hidden": 512, "embedding": 512}, "wikitext2": {"hidden": 512, "embedding": 512, "epochs": 4}},
    "paper": {
        "ptb": {"hidden": 512, "embedding": 512},
        "wikitext2": {"hidden": 512, "embedding": 512},
        "wikitext103": {"hidden": 512, "embedding": 256, "adaptive": "on"},
    },
}
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"seeds": 1, "epochs": 1, "patience": 1, "batch": 8, "adaptive": "off", "dropout": 0.1, "made_up": True},
    "cpu": {"seeds": 1, "epochs": 1, "patience": 1, "batch": 20, "adaptive": "on", "dropout": 0.1},
    # With 512 units, the loss of MVMA-L rises to 1e5 within 25 batches and is below 7 again after 50; at a rate of
    # 0.001 after a warm-up, it is not down again after 75.
    "day": {"seeds": 1, "epochs": 8, "patience": 8, "batch": 32, "adaptive": "off", "dropout": 0.5},
    # 50 epochs, of which the best on dev counts. The paper does not state batch size and dropout.
    "paper": {"seeds": 5, "epochs": 50, "patience": 50, "batch": 20, "adaptive": "off", "dropout": 0.4},
}
# Adam and windows of 35 words are the paper's. It does not state the rate and its schedule (ours are our task's own),
# nor whether word vectors are tied to the softmax (here not: it mentions a fully-connected layer), nor what an MVM
# reads at the beginning of a window. An MVM carries no state, so its longest n-gram starts anew with each window.
_MODEL: dict[str, Any] = {"bptt": 35, "tied": False}
_TRAINING: dict[str, Any] = {"optimiser": "adam", "lr": 0.003, "schedule": "cosine", "clip": 1.0}
_WITHOUT_DROPOUT: dict[Scale, Sequence[str]] = {"smoke": ("GRU",), "day": ("GRU", "MVMA-G")}
"""Models that train on the Penn Treebank without dropout as well."""
_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "without dropout": {"dropout": 0.0},
    "without dropout, rate 0.001": {"dropout": 0.0, "lr": 0.001},
}
"""How they train besides, by the words of their trials' names."""
_HOURS = {"ptb": 0.9, "wikitext2": 2.7}
"""Estimated hours of a training at scale day, on one core."""


class PerplexityByEncoder(Experiment):
    """A trial is one training."""

    name = "implicit-ngrams/table5"
    title = "Perplexity of language models that are n-gram models or recurrent networks"
    source = "Sun and Lu (2022), Implicit n-grams, table 5"
    headline = ("MVMA-G", "PTB, test")
    scales = tuple(SCALES)
    day_hours_by = ("corpus", _HOURS)

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the models, corpus by corpus; WikiText-103 comes last, because a missing corpus stops a run."""
        sizes, listed = dict(_SIZES[scale]), []
        for seed, (corpus, own), model in product(range(sizes.pop("seeds")), _AT[scale].items(), PUBLISHED):
            chosen = {"model": model, "corpus": corpus, **sizes, **own, **_MODEL, **_TRAINING, "seed": seed}
            label = f"{model} on {CORPORA[corpus]}"
            listed.append(Trial(f"{label}, seed {seed}", chosen))
            if corpus == "ptb" and model in _WITHOUT_DROPOUT.get(scale, ()):
                changed = _CHANGES.items()
                listed += [Trial(f"{label} {title}, seed {seed}", {**chosen, **change}) for title, change in changed]
        return sorted(listed, key=lambda trial: trial.settings["corpus"] == "wikitext103")

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, choose the epoch on dev, measure on test, and keep the curves of the training."""
        chosen = trial.settings
        corpus = words((120, 20, 20)) if "made_up" in chosen else load_dataset(chosen["corpus"], Words, setup.data)
        model = {name: chosen[name] for name in ("hidden", "embedding", "adaptive", "dropout", *_MODEL)}
        training = {name: chosen[name] for name in ("epochs", "patience", "batch", *_TRAINING, "seed")}
        training["steps"] = chosen.get("steps")
        return train_and_measure(
            setup,
            "lm",
            corpus,
            {"encoder": encoder_of(chosen["model"]), **model},
            training,
            lambda run: {**run_metrics(run), "curves": loss_curves(run)},
        )

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Compare perplexities with the published ones."""
        main = where(results, dropout=_SIZES[scale]["dropout"])
        corpora = [{"corpus": corpus} for corpus in _AT[scale]]
        rows = dev_test_rows(main, PUBLISHED, corpora, "perplexity")
        columns = [f"{CORPORA[corpus]}, {split}" for corpus, split in product(_AT[scale], SPLITS)]
        title = "Perplexity of a word, counting <eos>; (–): the paper reports no convergence, or the number is missing"
        tables = [Table(title, ("model", *columns), rows)]
        if where(results, dropout=0.0):
            usual: dict[str, Any] = {"dropout": _SIZES[scale]["dropout"], "lr": _TRAINING["lr"]}
            compared = {
                f"dropout {usual['dropout']:g}": usual,
                **{name: {**usual, **own} for name, own in _CHANGES.items()},
            }
            theirs = {model: PUBLISHED[model][:2] * len(compared) for model in _WITHOUT_DROPOUT[scale]}
            rows = dev_test_rows(where(results, corpus="ptb"), theirs, [*compared.values()], "perplexity")
            columns = [f"{name}, {split}" for name, split in product(compared, SPLITS)]
            tables.append(Table("Perplexity on PTB with dropout and without", ("model", *columns), rows))
        by_corpus = {
            corpus: {model: curves_of(where(main, corpus=corpus, model=model)) for model in PUBLISHED}
            for corpus in _AT[scale]
        }
        drawn = {
            f"implicit-ngrams-curves-{corpus}": partial(_draw, CORPORA[corpus], curves)
            for corpus, curves in by_corpus.items()
            if any(curves.values())
        }
        return Report(tables, drawn)


def _draw(corpus: str, curves: Mapping[str, Mapping[str, Any] | None]) -> Figure:
    figure, (panel,) = grid(1, 1, width=6.0)
    plot_curves(panel, curves)
    panel.set(title=corpus, ylabel=LOSSES)
    legend_below(figure, panel, len(panel.lines) // 2)
    return figure
