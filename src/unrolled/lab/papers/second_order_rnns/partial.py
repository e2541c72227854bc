"""Partial sentences: learn from the first 25, 50 or 75 characters of each line, and predict whole lines.

The paper uses this as a test of generalisation: after the cut, every state is new to the network. Dev, for early
stopping, and test are whole sentences. Our choices where the paper is silent:

- A cut line also loses its line end, so nothing says that lines end there.
- States are reset at every line, because a cut line would otherwise run into the next one: unlike the task ``chars``,
  ``LineModelling`` does not read running text.
- The vocabulary is that of whole lines, so characters that occur only after the cut are known.

The row of whole sentences is ours, for comparison: trained in the same way, without a cut. At scale cpu, networks have
0.3M parameters and learn the first lines of the training text for a few epochs, with a shorter dev text. At scale day
they have the paper's sizes and text, and a learning rate that falls to zero.

Source:
    Second-order RNNs, section 6.1 and table 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from unrolled.cells.parameter_budget import fit_parameters
from unrolled.lab.data.batches.base import EncodedSequences
from unrolled.lab.data.batches.windows import WindowBatch
from unrolled.lab.data.corpus import Characters, Stream
from unrolled.lab.data.stream_encoding import build_vocabulary
from unrolled.lab.data.vocabulary import PADDING
from unrolled.lab.papers.framework.corpora import cut_lines, first_lines
from unrolled.lab.papers.framework.experiment import SCALES, Experiment, Report, Result, Scale, Trial, TrialSetup, where
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid, legend_below, write_seeds
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_corpora import read_or_make_up
from unrolled.lab.papers.framework.trial_training import run_metrics, train_task
from unrolled.lab.tasks.chars import CharacterModelling, CharacterModelSettings
from unrolled.lab.training.task import HiddenState, Loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PUBLISHED", "EncodedLines", "LineModelling", "PartialSentences"]

_MODELS = {
    "LSTM": ("lstm", 1),
    "LSTM, 2 layers": ("lstm", 2),
    "mmLSTM": ("mmlstm", 1),
    "mmLSTM, 2 layers": ("mmlstm", 2),
}
PUBLISHED: Mapping[int, Mapping[str, float]] = {
    25: {"LSTM": 1.591, "LSTM, 2 layers": 1.582, "mmLSTM": 1.580, "mmLSTM, 2 layers": 1.577},
    50: {"LSTM": 1.427, "LSTM, 2 layers": 1.416, "mmLSTM": 1.423, "mmLSTM, 2 layers": 1.411},
    75: {"LSTM": 1.369, "LSTM, 2 layers": 1.355, "mmLSTM": 1.367, "mmLSTM, 2 layers": 1.353},
}
"""Table 3: bits per character of the test set, by cut and model."""
_CUTS: tuple[int | None, ...] = (*PUBLISHED, None)
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {"data": "made up", "lines": [24, 8, 8], "budget": 3000, "embedding": 8, "dropout": 0.25},
    "cpu": {"data": "ptb-chars", "lines": [5000, 300, 1000], "budget": 300_000, "embedding": 128, "dropout": 0.25},
    "day": {"data": "ptb-chars", "lines": [None] * 3, "budget": 4_500_000, "embedding": 128, "dropout": 0.25},
    "paper": {"data": "ptb-chars", "lines": [None] * 3, "budget": 4_500_000, "embedding": 128, "dropout": 0.25},
}
"""``lines``: the number of lines of train, dev and test; None for all."""
_TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"epochs": 1, "batch": 8, "lr": 0.003, "clip": 3.5},
    "cpu": {"epochs": 2, "batch": 32, "lr": 0.003, "schedule": "cosine", "clip": 3.5},
    "day": {"epochs": 8, "batch": 64, "lr": 0.002, "schedule": "cosine", "clip": 3.5},
    "paper": {"epochs": 200, "patience": 5, "batch": 128, "lr": 0.001, "schedule": "constant", "clip": 3.5},
}
_HOURS = {25: 0.8, 50: 1.4, 75: 2.0, None: 3.0}
"""Estimated hours of a training at scale day, on one core, by the cut."""
_SEEDS: dict[Scale, int] = {"smoke": 1, "cpu": 1, "day": 1, "paper": 3}


class PartialSentences(Experiment):
    """A trial is one network at one cut."""

    name = "second-order-rnns/partial"
    title = "Learning from partial sentences"
    source = "Second-order RNNs, table 3; the row of whole sentences is ours"
    scales = tuple(SCALES)
    day_hours_by = ("cut", _HOURS)

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List all networks at the shortest cut first; whole sentences last."""
        return [
            Trial(
                f"{'whole sentences' if cut is None else f'cut at {cut}'}, {model}, seed {seed}",
                {"cut": cut, "model": model, **_SIZES[scale], "training": {**_TRAINING[scale], "seed": seed}},
            )
            for seed, cut, model in product(range(_SEEDS[scale]), _CUTS, _MODELS)
        ]

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train on the cut lines, choose the epoch and measure on whole ones."""
        chosen = trial.settings
        whole = read_or_make_up(chosen["data"], Characters, setup.data)
        whole = first_lines(whole, *chosen["lines"])
        cut_corpus, known = cut_lines(whole, chosen["cut"]), build_vocabulary(whole.train)
        encoder, layers = _MODELS[chosen["model"]]
        embedding, dropout = chosen["embedding"], chosen["dropout"]
        size = fit_parameters(encoder, chosen["budget"], embedding, layers, vocabulary=len(known)).nearest
        architecture = CharacterModelSettings(
            encoder=encoder, hidden=size.hidden_size, layers=layers, embedding=embedding, dropout=dropout
        )
        run = train_task(setup, LineModelling(architecture, known), cut_corpus, chosen["training"])
        read = sum(len(line) for line in cut_corpus.train)
        setup.log(f"{size.hidden_size} units, {read:,} characters per epoch, dev {run.metrics['dev_bpc']:.3f} bits")
        return {**run_metrics(run), "hidden": size.hidden_size, "characters": read}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Compare scores with the published ones."""
        rows: list[Sequence[str | Number]] = []
        for cut in _CUTS:
            if chosen := where(results, cut=cut):
                cells = (
                    Number(_scores(chosen, model), PUBLISHED.get(cut or 0, {}).get(model), 3, unit="bits")
                    for model in _MODELS
                )
                learned = Number([chosen[0]["characters"] / 1000], digits=0)
                rows.append((f"{cut or 'whole sentences'}", learned, *cells))
        table = Table(
            f"Test, bits per character of whole sentences; {_SIZES[scale]['budget'] / 1e6:g}M parameters (4.5M)",
            ("cut at", "thousand characters per epoch", *_MODELS),
            rows,
        )
        return Report([table], {"second-order-rnns-partial": partial(_draw, results)})


@dataclass(frozen=True)
class EncodedLines(EncodedSequences):
    """Lines as token indices."""

    @classmethod
    def encode(cls, lines: Sequence[Sequence[int]], before: int) -> EncodedLines:
        """Align inputs and targets; the token ``before`` is read before the first token of every line."""
        return cls.from_rows([((before, *line[:-1]) if line else (), line) for line in lines])

    def select(self, which: Tensor) -> WindowBatch:
        """Make a padded batch; targets at padding are ignored."""
        (tokens, targets), _ = self.gather(which, (PADDING, PADDING))
        return WindowBatch(tokens, targets)


class LineModelling(CharacterModelling):
    """Predict the next character of a line, every line from an empty state."""

    evaluation_batch = 64

    def encode(self, examples: Stream) -> EncodedLines:  # type: ignore[override]  # lines, not running text
        """Look up all characters."""
        return EncodedLines.encode([self.vocabulary.encode(line) for line in examples], self.line_end)

    def loss(self, model: nn.Module, batch: WindowBatch, state: HiddenState) -> Loss:
        """Compute the cross-entropy of the targets; the next batch starts from an empty state."""
        cost = super().loss(model, batch, ())
        return Loss(cost.total, cost.count)


def _scores(results: Sequence[Result], model: str) -> list[float]:
    return [result["test_bpc"] for result in where(results, model=model)]


def _at(results: Sequence[Result], cut: int | None) -> dict[str, float]:
    """Give the mean score of each model that was trained at a cut."""
    chosen = where(results, cut=cut)
    return {model: fmean(scores) for model in _MODELS if (scores := _scores(chosen, model))}


def _draw(results: Sequence[Result]) -> Figure:
    figure, (ours, theirs) = grid(1, 2, width=3.6, height=3.0)
    for number, model in enumerate(_MODELS):
        style: dict[str, Any] = {"color": COLOURS[number], "marker": MARKERS[number], "label": model}
        found = [(cut, _at(results, cut)[model]) for cut in PUBLISHED if model in _at(results, cut)]
        if found:
            ours.plot(*zip(*found, strict=True), **style)
        theirs.plot(list(PUBLISHED), [scores[model] for scores in PUBLISHED.values()], **style)
    for panel, title in ((ours, "ours"), (theirs, "published")):
        panel.set(title=title, xlabel="characters of a line in training", xticks=list(PUBLISHED))
    write_seeds([ours], results)
    ours.set_ylabel("test, bits per character")
    legend_below(figure, theirs, 4)
    return figure
