"""Language models of brackets: of which symbols' probability the right closing bracket must have 0.8.

The paper's language models close brackets badly: none has a WCPA above 50 %. It counts a prediction as correct "if at
least 80% probability mass is assigned to the correct bracket", and does not say of which symbols: of the closing
brackets, as Hewitt et al., or of all symbols. A language model shares its probability with opening brackets and with
the end of the string. Where the strings leave a choice, they close with probability 1/2, so by all symbols the
probabilities of the language itself are correct only where m brackets are open.

So the paper's four networks learn to predict every next symbol, and are measured by both. The last rows are the
probabilities of the automaton that draws the strings. Sizes and data are those of ``second-order-rnns/dyck``, where the
networks learn to predict closing brackets alone.

Source:
    Second-order RNNs, sections 5.2 and 5.4; Hewitt et al. (2020), arXiv:2010.07515.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch

from unrolled.lab.data.batches.labelled_sequences import IGNORE_INDEX, closing_targets
from unrolled.lab.metrics.worst_case import accuracy_by_distance
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
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_training import run_metrics, train_model
from unrolled.lab.papers.second_order_rnns.dyck import DEPTHS, KINDS, draw_strings

if TYPE_CHECKING:
    from torch import Tensor, nn

    from unrolled.lab.data.batches.labelled_sequences import BracketBatch

__all__ = ["DyckLanguageModels"]

_MEASURES = ("closing_wcpa", "closing_by_distance", "all_wcpa", "all_by_distance")
_AUTOMATON = "the automaton"
_MODELS = ("LSTM", "RNN", "mmLSTM", "mmRNN")
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {
        "seeds": 1,
        "data": {"short": [1, 20], "long": [21, 40], "symbols": [600, 200, 300]},
        "language": {"embedding": 4, "hidden": 8},
        "training": {"batch": 16, "lr": 0.01, "epochs": 1},
    },
    "cpu": {
        "seeds": 3,
        "data": {"symbols": [200_000, 20_000, 100_000]},
        "language": {"embedding": 16, "hidden": 64},
        "training": {"batch": 64, "lr": 0.005, "warmup": 0, "epochs": 5},
    },
    "paper": {
        "seeds": 3,
        "data": {"short": [101, 200], "long": [201, 400], "symbols": [2_900_000, 360_000, 360_000]},
        "language": {"embedding": 128, "hidden": 256},
        "training": {"batch": 128, "lr": 0.001, "warmup": 0, "clip": 3.5, "epochs": 200, "patience": 5},
    },
}


class DyckLanguageModels(Experiment):
    """A trial is one network at one depth, or the automaton at one depth."""

    name = "second-order-rnns/dyck-language-models"
    title = "Closing brackets by language models, by the probability of closing brackets and of all symbols"
    source = "Second-order RNNs, sections 5.2 and 5.4"
    usual_hours = 0.02

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List every network and the automaton at m = 4, then deeper; a seed draws strings and weights."""
        sizes = _SIZES[scale]
        return [
            Trial(
                f"{model}, m = {depth}, seed {seed}",
                {
                    "model": model,
                    "depth": depth,
                    "data": sizes["data"],
                    "architecture": {**sizes["language"], "predict": "next"},
                    "training": {**sizes["training"], "seed": seed},
                },
            )
            for seed, depth, model in product(range(sizes["seeds"]), DEPTHS, (*_MODELS, _AUTOMATON))
        ]

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Measure the dev strings, which are as long as those of the training, by both probabilities."""
        chosen = trial.settings
        corpus = draw_strings(chosen)
        if chosen["model"] == _AUTOMATON:
            return _by_both(*_probabilities(corpus.dev, chosen["depth"]))
        architecture = {**chosen["architecture"], "encoder": chosen["model"].lower()}
        run = train_model(setup, "brackets", corpus, architecture, chosen["training"])
        split = run.task.encode(corpus.dev)
        with torch.no_grad():
            parts = [_asked(run.model, split.select(which)) for which in split.plan(run.task.evaluation_batch)]
        return {**run_metrics(run), **_by_both(*(torch.cat(each) for each in zip(*parts, strict=True)))}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate WCPA and the mean over distances, by both probabilities."""
        columns = tuple(
            f"{measure}, {of}"
            for of, measure in product(("of closing brackets", "of all symbols"), ("WCPA", "mean over distances"))
        )
        rows: list[Sequence[str | Number]] = []
        for model, depth in product((*_MODELS, _AUTOMATON), DEPTHS):
            if chosen := where(results, model=model, depth=depth):
                share = partial(average, chosen, digits=1, percent=True)
                rows.append((model, f"{depth}", *(share(each) for each in _MEASURES)))
        title = "Closing brackets with at least 0.8 of the probability of closing brackets, or of all symbols, in %"
        return Report([Table(title, ("model", "m", *columns), rows)])

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool]:
        """The paper: no language model has a WCPA above 50 %; by both probabilities."""
        claims = {}
        for model, depth in product(_MODELS, DEPTHS):
            if chosen := where(results, model=model, depth=depth):
                for name, of in (("closing_wcpa", "closing brackets"), ("all_wcpa", "all symbols")):
                    mean = fmean(each[name] for each in chosen)
                    claims[f"{model}, m = {depth}, {of}: a WCPA of at most 50% ({mean:.1%})"] = mean <= 0.5
        return claims


def _asked(model: nn.Module, batch: BracketBatch) -> tuple[Tensor, Tensor, Tensor]:
    """Before each closing bracket: the logits of all symbols, the right kind and the distance."""
    closes = batch.closing != IGNORE_INDEX
    return model(batch.brackets, batch.lengths)[closes], batch.closing[closes], batch.distances[closes]


def _probabilities(strings: Sequence[Sequence[int]], depth: int) -> tuple[Tensor, Tensor, Tensor]:
    """Before each closing bracket, what :func:`_asked` gives: the logarithms of the automaton's own probabilities."""
    rows, kinds, distances = [], [], []
    for string in strings:
        opened = 0
        for bracket, kind, distance in zip(string, *closing_targets(string, KINDS, depth), strict=True):
            opened = opened + 1 if bracket < KINDS else opened - 1
            if kind != IGNORE_INDEX:
                closes = 1.0 if opened == depth else 0.5
                opens = (1 - closes) / KINDS
                rows.append([*[opens] * KINDS, *(closes * (each == kind) for each in range(KINDS)), 0.0])
                kinds.append(kind)
                distances.append(distance)
    return torch.tensor(rows).log(), torch.tensor(kinds), torch.tensor(distances)


def _by_both(logits: Tensor, kinds: Tensor, distances: Tensor) -> dict[str, float]:
    """Measure by the probability of closing brackets, k … 2k - 1, and by that of all symbols."""
    closing = accuracy_by_distance(logits[:, KINDS : 2 * KINDS], kinds, distances).values()
    every = accuracy_by_distance(logits, KINDS + kinds, distances).values()
    return dict(zip(_MEASURES, (min(closing), fmean(closing), min(every), fmean(every)), strict=True))
