"""N-gram counts, a window model and recurrent networks as language models: perplexity and memory.

The notes say that the memory of count models grows exponentially with n, and that the matrices of a recurrent network
do not grow with the corpus; they measure nothing. Here all models learn the same part of the Penn Treebank with the
same vocabulary. Memory is the number of stored numbers: one for every distinct k-gram, k = 1 … n, of a count model, and
the parameters of a network. Our choices where the notes are silent:

- Smoothing: none, as in equations 2 and 3, which gives a text with an unseen n-gram probability 0; interpolated
  Kneser-Ney with the discount 0.75; and modified Kneser-Ney, which estimates its discounts and is what networks are
  usually compared with.
- The network of Bengio et al. with n - 1 words of context is the window model with direct connections (equation 4).
  Its softmax is tied to the word vectors, as those of the other networks are.
- All networks have word vectors and hidden layers of one size each, Adam, and the same number of epochs.

At scale cpu the text is the first lines of the training text, and epochs are few. Words outside these lines are
``<unk>`` in the test text too, so all perplexities are lower than with all 10,000 words.

Source:
    CS 224D, lecture notes IV (2015), section 1 (equations 1 to 4), section 2 (equations 5 to 9), sections 3 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from unrolled.lab.data.corpus import Words
from unrolled.lab.data.stream_encoding import build_vocabulary
from unrolled.lab.models.ngram_lm import NGramLanguageModel
from unrolled.lab.papers.framework.corpora import first_lines
from unrolled.lab.papers.framework.experiment import SCALES, Experiment, Report, Result, Scale, Trial, TrialSetup, where
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_corpora import read_or_make_up
from unrolled.lab.papers.framework.trial_training import run_metrics, train_once

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LanguageModels", "distinct_ngrams"]

_ORDERS = (2, 3, 4, 5)
_SMOOTHED = {
    "none": "as counted",
    "kneser-ney": "Kneser-Ney",
    "modified kneser-ney": "modified Kneser-Ney",
}
_RECURRENT = {"RNN": "rnn", "GRU": "gru", "LSTM": "lstm"}
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"data": "made up", "lines": [80, 20, 20]},
    "cpu": {"data": "ptb", "lines": [8000, None, None]},
    "day": {"data": "ptb", "lines": [None] * 3},
    "paper": {"data": "ptb", "lines": [None] * 3},
}
"""``lines``: the number of lines of train, dev and test; None for all."""
_NETWORKS: dict[Scale, dict[str, Any]] = {
    "smoke": {"embedding": 8, "hidden": 8, "training": {"epochs": 1, "batch": 4}},
    "cpu": {"embedding": 96, "hidden": 128, "training": {"epochs": 3}},
    "day": {"embedding": 256, "hidden": 256, "training": {"epochs": 12}},
    "paper": {"embedding": 256, "hidden": 256, "training": {"epochs": 12}},
}
_HOURS, _COUNT_HOURS = 1.0, 0.05
"""Estimated hours of a training and of a count model at scale day, on one core."""
_PARTS = (8, 4, 2, 1)  # an eighth, a quarter, a half and all of the text


class LanguageModels(Experiment):
    """A trial is one model."""

    name = "cs224d-notes-4/language"
    title = "Counts, a window and recurrent networks: perplexity and memory"
    source = "CS 224D, lecture notes IV, sections 1 to 4; the notes have no numbers"
    scales = tuple(SCALES)

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List smoothed trigrams, recurrent networks and a window model first; then other orders, and raw counts."""
        sizes, network = _SIZES[scale], _NETWORKS[scale]
        training = {**network["training"], "seed": 0}

        def counts(order: int, smoothing: str) -> Trial:
            label = f"{order}-grams, {_SMOOTHED[smoothing]}"
            return Trial(label, {"kind": "counts", "order": order, "smoothing": smoothing, **sizes})

        def window(order: int) -> Trial:
            seen = order - 1
            options = {"window": seen, "direct": True}
            hidden = network["hidden"] + seen * network["embedding"]  # its hidden layer and the direct connections
            model = {"encoder": "window", "embedding": network["embedding"], "hidden": hidden, "options": options}
            label = f"window of {seen} words"
            return Trial(label, {"kind": "window", "order": order, "model": model, "training": training, **sizes})

        recurrent = [
            Trial(
                label,
                {
                    "kind": "recurrent",
                    "model": {"encoder": name, "embedding": network["embedding"], "hidden": network["hidden"]},
                    "training": training,
                    **sizes,
                },
            )
            for label, name in _RECURRENT.items()
        ]
        first, *others = (3, *(order for order in _ORDERS if order != 3))
        return [
            counts(first, "kneser-ney"),
            *reversed(recurrent),
            window(5),
            *(counts(order, "kneser-ney") for order in others),
            window(3),
            *(counts(order, "none") for order in _ORDERS),
            *(counts(order, "modified kneser-ney") for order in _ORDERS),
        ]

    def day_hours(self, trial: Trial) -> float:
        """Estimate by whether a network is trained."""
        return _COUNT_HOURS if trial.settings["kind"] == "counts" else _HOURS

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train or count, and measure."""
        chosen = trial.settings
        whole = read_or_make_up(chosen["data"], Words, setup.data)
        corpus = first_lines(whole, *chosen["lines"])
        if chosen["kind"] != "counts":
            run = train_once(setup, "lm", corpus, chosen["model"], chosen["training"])
            found = run_metrics(run)
            return {**found, "kept": found["parameters"]}
        known = build_vocabulary(corpus.train)
        model = NGramLanguageModel(chosen["order"], chosen["smoothing"]).fit(corpus.train, known)
        lines = [known.decode(known.encode(line)) for line in corpus.train]
        grown = []
        for part in _PARTS:
            beginning = lines[: len(lines) // part]
            grown.append([sum(map(len, beginning)), *distinct_ngrams(beginning, chosen["order"])])
        dev, test = (_finite(model.perplexity(split)) for split in (corpus.dev, corpus.test))
        setup.log(f"{sum(grown[-1][1:]):,} counts, dev {dev}")
        return {
            "dev_perplexity": dev,
            "test_perplexity": test,
            "grown": grown,
            "kept": sum(grown[-1][1:]),
            "words": grown[-1][0],
            "types": len(known),
        }

    def report(self, results: Sequence[Result], scale: Scale) -> Report:  # the same for all
        """Tabulate perplexity and memory, and how counts grow with the text."""
        rows = [
            (
                result.trial.label,
                _perplexity(result["dev_perplexity"]),
                _perplexity(result["test_perplexity"]),
                Number([result["kept"]], digits=0),
                Number([4 * result["kept"] / 2**20], digits=1),
            )
            for result in sorted(results, key=_place)
        ]
        columns = ("model", "dev perplexity", "test perplexity", "stored numbers", "MiB at 4 bytes each")
        tables = [Table("All models learn the same text; the n-grams' words are not counted as memory", columns, rows)]
        drawn = {}
        if counted := _longest(results):
            tables.append(_growth(counted))
            drawn["cs224d-notes-4-language-memory"] = partial(_draw, results, counted)
        return Report(tables, drawn, dict.fromkeys(drawn, _CAPTION))


def _place(result: Result) -> tuple[str, str, int]:
    """Order models: counts by smoothing and order, then networks, then windows by order."""
    chosen = result.trial.settings
    return chosen["kind"], chosen.get("smoothing", ""), chosen.get("order", 0)


def distinct_ngrams(lines: Iterable[Sequence[str]], order: int) -> list[int]:
    """Count the distinct k-grams of a text, k = 1 … n; the text runs on from line to line.

    Example:
        >>> distinct_ngrams([["a", "rose", "is"], ["a", "rose"]], 3)
        [3, 3, 3]
    """
    text = [word for line in lines for word in line]
    return [len(set(zip(*(text[begin:] for begin in range(k)), strict=False))) for k in range(1, order + 1)]


def _finite(perplexity: float) -> float | None:
    """Replace infinity by None, since JSON has no infinity."""
    return perplexity if math.isfinite(perplexity) else None


def _perplexity(value: float | None) -> str | Number:
    return "∞" if value is None else Number([value], digits=1)


def _longest(results: Sequence[Result]) -> Result | None:
    """Give the result of the count model of the highest order."""
    counted = where(results, kind="counts")
    return max(counted, key=lambda result: result.trial.settings["order"], default=None)


def _growth(counted: Result) -> Table:
    orders = range(1, counted.trial.settings["order"] + 1)
    rows: list[Sequence[str | Number]] = [
        (f"{words:,}", *(Number([count], digits=0) for count in grams)) for words, *grams in counted["grown"]
    ]
    rows.append(("possible", *(f"{counted['types'] ** order:.1e}" for order in orders)))
    return Table("Distinct k-grams of the beginning of the text", ("words", *(f"k = {k}" for k in orders)), rows)


_CAPTION = (
    "left, memory of counts of beginnings of the text; right, parameters of the networks, which do not grow with the "
    "text. Both panels have the same vertical axis."
)


def _draw(results: Sequence[Result], counted: Result) -> Figure:
    from matplotlib.ticker import NullLocator

    figure, (grown, fixed) = grid(1, 2, width=3.8, height=3.6)
    fixed.sharey(grown)  # before anything is drawn, so that the limits hold all of it
    texts = [words for words, *_ in counted["grown"]]
    for place, order in enumerate(range(2, counted.trial.settings["order"] + 1)):
        kept = [sum(grams[:order]) for _, *grams in counted["grown"]]
        grown.plot(texts, kept, color=COLOURS[place], marker=MARKERS[place], label=f"n = {order}")
    grown.set(xlabel="words of the text", ylabel="stored numbers", xscale="log", yscale="log", title="counts")
    grown.set_xticks(texts, [f"{words:,}" for words in texts])
    grown.xaxis.set_minor_locator(NullLocator())
    grown.legend(loc="upper left", ncols=2)
    networks = {each.trial.label: each["kept"] for each in results if each.trial.settings["kind"] != "counts"}
    places = range(len(networks))
    fixed.plot(places, [*networks.values()], color="black", marker="o", linestyle="none")
    fixed.set_xticks(places, [*networks], rotation=30, ha="right")
    fixed.set(xlim=(-0.5, max(1, len(networks)) - 0.5), title="networks, whole text")
    return figure
