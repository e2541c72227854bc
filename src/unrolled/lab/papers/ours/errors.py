"""How errors of an expansion accumulate along a sentence: by cell, expansion and weight decay.

*Implicit n-grams* measures the error of one step. Here it is the error of the whole sum of n-gram terms after t words.
Every cell learns the sentiment of SST-2's 6,920 sentences, without their phrases: 64 units and 3 epochs at scale cpu,
128 and at most 10 at scale day, 256 and 10 at scale paper. The errors are measured on test sentences.

Cells whose step is affine in the state, such as the Dyck-RNN and the memorising RNN, are left out: all their expansions
are exact. ``taylor(1)`` is ``zero``. The third order is left out for networks with weight decay, because its nested
derivatives take most of the time. ``secant`` and ``shares`` came after the first trials had run; they are exact too, so
they would add lines of rounding errors beside those of ``path``.

Source:
    Our own question; Sun and Lu (2022), Implicit n-grams, appendix B.2, for the error of a step and weight decay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from math import inf, nan
from statistics import median
from typing import TYPE_CHECKING, Any, cast

from unrolled.errors import UsageError
from unrolled.lab.data.corpus import Classification
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.papers.analyses.expansion_errors import error_quantiles, sum_errors
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
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid, write_seeds
from unrolled.lab.papers.framework.table import MISSING, Number, Table
from unrolled.lab.papers.framework.trial_corpora import read_or_make_up
from unrolled.lab.papers.framework.trial_training import train_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unrolled.lab.data.batches.base import EncodedTexts

__all__ = ["CELL_NAMES", "AccumulatedErrors"]

CELL_NAMES = (
    "lstm", "gru", "elman", "gru_before", "mi_gru", "mi_lstm", "mi_rnn", "mlstm", "mmlstm", "mmrnn", "mrnn",
    "tensor_rnn",
)  # fmt: skip
"""The cells that are not affine in the state, so that expansions of them differ; a frozen list."""

_SHOWN_NAMES = (
    "LSTM", "GRU", "Elman", "GRU, reset before U", "MI-GRU", "MI-LSTM", "MI-RNN", "mLSTM", "mmLSTM", "mmRNN", "mRNN",
    "tensor RNN",
)  # fmt: skip
"""Their names on figures."""
_EXACT = ("operating", "path", "gates")
_EXPANSIONS = ("zero", "taylor(2)", "taylor(3)", "activation", *_EXACT)
_DECAYS = (0.0, 3e-4, 1e-5, 1e-4)
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"hidden": 6, "epochs": 1, "batch": 32, "sentences": 6, "longest": 5, "fewest": 4},
    "cpu": {"hidden": 64, "epochs": 3, "batch": 32, "sentences": 64, "longest": 30, "fewest": 10},
    "day": {"hidden": 128, "epochs": 10, "batch": 32, "sentences": 64, "longest": 30, "fewest": 10},
    "paper": {"hidden": 256, "epochs": 10, "batch": 64, "sentences": 1821, "longest": 40, "fewest": 50},
}
"""``sentences``: of the test split, from its beginning. Errors are given for the first ``longest`` words, as far as at
least ``fewest`` sentences have as many, because a quantile of fewer says little."""
_RATE = 0.003  # with it 3 epochs suffice, where the task's own rate needs 10
_SEEDS: dict[Scale, int] = {"smoke": 1, "cpu": 1, "day": 3, "paper": 3}
# a tensor RNN has a matrix for every dimension of a word vector, so its word vectors are shorter
_SHORTER = {"tensor_rnn": 4}
_LENGTHS = (2, 5, 10, 20)


class AccumulatedErrors(Experiment):
    """A trial is one training, decomposed by every expansion."""

    name = "ours/errors"
    title = "How errors accumulate along a sentence, by cell and expansion"
    source = "our own question, after Sun and Lu (2022), appendix B.2"
    scales = tuple(SCALES)
    usual_hours = 0.05

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the cells, without weight decay first, then with the strongest."""
        sizes, trials = _SIZES[scale], []
        for seed, decay, cell in product(range(_SEEDS[scale]), _DECAYS, CELL_NAMES):
            if scale == "smoke" and decay and (cell, decay) != ("elman", _DECAYS[1]):
                continue  # one of them is enough for a scale of seconds
            corpus = "made-up" if scale == "smoke" else "sst2-sentences"
            size = max(2, sizes["hidden"] // _SHORTER.get(cell, 1))
            expansions = [name for name in _EXPANSIONS if decay == 0 or name != "taylor(3)"]
            settings = {"corpus": corpus, "cell": cell, "embedding": size, "weight_decay": decay, "lr": _RATE, **sizes}
            settings |= {"expansions": expansions, "seed": seed}
            trials.append(Trial(f"{cell}, weight decay {decay:g}, seed {seed}", settings))
        return trials

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, and decompose the test sentences by every expansion that the cell supports."""
        chosen = trial.settings
        corpus = read_or_make_up(chosen["corpus"], Classification, setup.data, (32, 8, 8))
        model = {"encoder": chosen["cell"], "hidden": chosen["hidden"], "embedding": chosen["embedding"]}
        training = {name: chosen[name] for name in ("epochs", "batch", "lr", "weight_decay", "seed")}
        run = train_model(setup, "classify", corpus, model, training)
        texts = cast("EncodedTexts", run.task.encode(corpus.test[: chosen["sentences"]]))
        errors: dict[str, Any] = {}
        for expansion in chosen["expansions"]:
            try:
                found = sum_errors(cast("Classifier", run.model), texts, expansion, chosen["longest"])
            except UsageError as error:  # a cell without gates, or without a first-order surrogate
                setup.log(f"{expansion}: {error}")
                continue
            quantiles = error_quantiles(found, chosen["fewest"])
            errors[expansion] = quantiles._asdict()
            setup.log(f"{expansion}: median {quantiles.median[-1]} after {len(quantiles.median)} words")
        return {"accuracy": run.metrics["dev_accuracy"], "errors": errors}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate errors by cell, by length and by weight decay."""
        drawn = {
            "ours-errors": partial(_draw, results, {name: (name, 0.0) for name in _EXPANSIONS}),
            "ours-errors-decay": partial(
                _draw, results, {f"zero, weight decay {decay:g}": ("zero", decay) for decay in sorted(_DECAYS)}
            ),
        }
        caption = (
            "a line is the median over sentences, and its band reaches up to the ninetieth percentile; of both, the "
            "median over the seeds. The dotted line is an error as large as the state."
        )
        return Report(list(_tables(results)), drawn, dict.fromkeys(drawn, caption))


def _curves(results: Sequence[Result], cell: str, expansion: str, decay: float) -> list[Mapping[str, Any]]:
    """Give the errors of a cell, seed by seed."""
    chosen = where(results, cell=cell, weight_decay=decay)
    return [result["errors"][expansion] for result in chosen if expansion in result["errors"]]


def _after(curves: Sequence[Mapping[str, Any]], words: int, which: str) -> float | None:
    """Give the median over seeds of the error after some words, which may be infinite."""
    values = [curve[which][words - 1] for curve in curves if len(curve[which]) >= words]
    return median(inf if value is None else value for value in values) if values else None


def _reached(results: Sequence[Result]) -> int:
    """Give the length at which cells are compared: 20 words, or fewer where too few sentences are as long."""
    return min(_LENGTHS[-1], *(len(curve["median"]) for each in results for curve in each["errors"].values()))


def _percent(value: float | None) -> str:
    if value is None:
        return MISSING
    return "infinite" if value == inf else f"{100 * value:.3g}"


def _pair(curves: Sequence[Mapping[str, Any]], words: int) -> str:
    both = (_after(curves, words, which) for which in ("median", "ninetieth"))
    return " / ".join(map(_percent, both)) if curves else MISSING


def _cells_run(results: Sequence[Result], decay: float | None = None) -> list[str]:
    """List the cells that ran."""
    chosen = (each.trial.settings for each in results)
    found = {each["cell"] for each in chosen if decay is None or each["weight_decay"] == decay}
    return [cell for cell in CELL_NAMES if cell in found]


def _tables(results: Sequence[Result]) -> Iterator[Table]:
    read = _reached(results)
    if plain := _cells_run(results, 0.0):
        lengths = [words for words in _LENGTHS if words <= read]
        rows = [(cell, *(_pair(_curves(results, cell, name, 0.0), read) for name in _EXPANSIONS)) for cell in plain]
        yield Table(f"Error of the sum after {read} words, no weight decay; {_UNIT}", ("cell", *_EXPANSIONS), rows)
        rows = [(cell, *(_pair(_curves(results, cell, "zero", 0.0), words) for words in lengths)) for cell in plain]
        columns = ("cell", *(f"{words} words" for words in lengths))
        yield Table(f"Error of the sum by zero after some words, no weight decay; {_UNIT}", columns, rows)
    yield _by_decay(results, read)


_UNIT = "median / 90th percentile of sentences, % of the norm of the state"


def _by_decay(results: Sequence[Result], read: int) -> Table:
    """Tabulate the error of the sum by zero after some words, and the accuracy, by weight decay."""
    decays, rows = sorted(_DECAYS), list[Sequence[str | Number]]()
    for cell in _cells_run(results):
        errors = (_pair(_curves(results, cell, "zero", decay), read) for decay in decays)
        chosen = (where(results, cell=cell, weight_decay=decay) for decay in decays)
        rows.append((cell, *errors, *(average(each, "accuracy", digits=1, percent=True) for each in chosen)))
    columns = ("cell", *(f"decay {decay:g}" for decay in decays), *(f"dev accuracy, {decay:g}" for decay in decays))
    return Table(f"Error of the sum by zero after {read} words, by weight decay; {_UNIT}", columns, rows)


def _draw(results: Sequence[Result], lines: Mapping[str, tuple[str, float]]) -> Figure:
    """Draw a panel for each cell, with a line for each expansion and weight decay in ``lines``."""
    shown = _cells_run(results)
    columns = min(4, len(shown))
    figure, panels = grid(-(-len(shown) // columns), columns, width=2.7, height=2.3)
    handles = {}
    for panel, cell in zip(panels, shown, strict=False):  # the last row may have unused panels
        for number, (label, (expansion, decay)) in enumerate(lines.items()):
            curves = _curves(results, cell, expansion, decay)
            if not curves:
                continue
            # a logarithmic axis has no place for 0; the first word has no error but rounding
            middle, high = (
                [nan if not value or value == inf else value for value in _middle(curves, which)[1:]]
                for which in ("median", "ninetieth")
            )
            xs, colour, marker = range(2, len(middle) + 2), COLOURS[number], MARKERS[number]
            every = (number, 6)  # overlapping lines show their markers at different places
            (handles[label],) = panel.plot(xs, middle, color=colour, marker=marker, markevery=every, label=label)
            panel.fill_between(xs, middle, high, color=colour, alpha=0.15, linewidth=0)
        panel.axhline(1, color="#888888", linestyle=":", linewidth=1)
        panel.set(yscale="log", title=dict(zip(CELL_NAMES, _SHOWN_NAMES, strict=True))[cell], xlabel="words read")
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    write_seeds(panels, results)
    for panel in panels[::columns]:
        panel.set_ylabel("error / state")
    figure.legend(handles=list(handles.values()), loc="outside lower center", ncols=min(4, len(lines)))
    return figure


def _middle(curves: Sequence[Mapping[str, Any]], which: str) -> list[float]:
    """Take the median over seeds at every length that all of them reach."""
    shortest = min(len(curve[which]) for curve in curves)
    return [median(inf if curve[which][t] is None else curve[which][t] for curve in curves) for t in range(shortest)]
