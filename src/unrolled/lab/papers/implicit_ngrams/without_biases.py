"""Networks without biases, as some of the authors' code has them, and with a normalised spectrum.

In the published code the Elman network and the cells of MVMA-E, MVM-E, MVM-G and MVM-L have no biases, and the networks
whose spectrum is normalised have none either. Ours have biases. The Elman network and those with its terms (MVMA-E,
MVM-E) learn better here than in the paper, and normalised networks err less in one step: do biases matter for that?
Each trial here is a trial of another item without biases. The Elman network learns once more with a normalised spectrum
as well, as the paper says that it trained. In that code the backward direction of MVM-E begins with zeros, and with no
vector of its last word, so all its states are zero: on names MVM-E learns once more in one direction.

Source:
    Sun and Lu (2022), Implicit n-grams, tables 3 and 4, appendix B.2; the modules self_defined_rnn_linear,
    self_defined_rnn_spectral, self_defined_gru_spectral and self_defined_lstm_spectral, and those that end in
    _no_combination, of
    https://github.com/richardsun-voyager/inibr, read and not run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

from unrolled.errors import UsageError
from unrolled.lab.papers.framework.experiment import (
    SCALES,
    Experiment,
    Report,
    Result,
    Scale,
    Trial,
    TrialSetup,
    average,
    training_cell,
    where,
)
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.implicit_ngrams.approximation import PUBLISHED as ERRORS
from unrolled.lab.papers.implicit_ngrams.approximation import Approximation
from unrolled.lab.papers.implicit_ngrams.names_of_code import EntitiesOfCode
from unrolled.lab.papers.implicit_ngrams.relations_of_code import RelationsOfCode
from unrolled.lab.papers.implicit_ngrams.table3 import PUBLISHED as ACCURACIES
from unrolled.lab.papers.implicit_ngrams.table3 import SentimentAndTopics
from unrolled.lab.papers.implicit_ngrams.table4 import PUBLISHED as SCORES

__all__ = ["WithoutBiases"]

_NO_BIASES = "no biases"
_NORMALISED = "no biases, normalised spectrum"
_FORWARD = "no biases, one direction"
_CHANGES: Mapping[str, Mapping[str, Any]] = {
    _NO_BIASES: {"bias": False},
    _FORWARD: {"bias": False, "bidirectional": False},
    _NORMALISED: {"bias": False, "spectral": True},
}
_SPLITS = ("dev", "test")
_DECAY = 1e-5


@dataclass(frozen=True)
class _Part:
    """Trials of another item, one a network, and what is changed in each."""

    item: type[Experiment]
    named: str
    """The setting that holds the network's name."""
    chosen: Mapping[str, Any]
    """The settings that pick the other item's trials."""
    networks: Sequence[tuple[str, str]]
    """Each network, and its change."""
    seeds: Mapping[str, int] = field(default_factory=dict)
    """How many seeds a network has, where not one."""


_ELMAN = (("Elman", _NO_BIASES), ("Elman", _NORMALISED))
_PARTS: Mapping[str, _Part] = {
    "errors": _Part(
        Approximation,
        "kind",
        {"weight_decay": _DECAY},
        [(each, _NORMALISED) for each in ("GRU", "Elman", "LSTM")],
    ),
    "sentiment": _Part(
        SentimentAndTopics,
        "model",
        {"column": "SST-2"},
        (*_ELMAN, ("MVM-E", _NO_BIASES), ("MVMA-E", _NO_BIASES)),
        seeds={"MVM-E": 3},
    ),
    "relations": _Part(
        RelationsOfCode, "model", {}, (*_ELMAN, *((each, _NO_BIASES) for each in ("MVMA-E", "MVM-G", "MVM-L")))
    ),
    "names": _Part(
        EntitiesOfCode,
        "model",
        {},
        (*_ELMAN, *((each, _NO_BIASES) for each in ("MVMA-E", "MVM-E", "MVM-G", "MVM-L")), ("MVM-E", _FORWARD)),
    ),
}


class WithoutBiases(Experiment):
    """A trial is one of another item without biases."""

    name = "implicit-ngrams/without-biases"
    title = "Networks without biases, as some of the authors' code has them"
    source = "Sun and Lu (2022), Implicit n-grams, tables 3 and 4, appendix B.2, and the authors' code"
    scales = tuple(SCALES)
    compared_columns = ("step, zero",)
    usual_hours = 0.15

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the trials part by part; at scale smoke the other items have some networks only."""
        listed = []
        for name, part in _PARTS.items():
            for network, change in part.networks:
                others = _others(part, network, scale)
                if not others and scale != "smoke":
                    raise UsageError(f"{part.item.name} has no trial of {network} at scale {scale}")
                for settings in others[: part.seeds.get(network, 1)]:
                    chosen = {**settings, **_CHANGES[change], "part": name, "network": network, "changed": change}
                    further = f", seed {chosen['seed']}" if chosen["seed"] else ""
                    listed.append(Trial(f"{name}: {network}, {change}{further}", chosen))
        return listed

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train and measure as the other item does."""
        return _PARTS[trial.settings["part"]].item().run(trial, setup)

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Give each part a table with the published numbers."""
        tables = [
            _errors(where(results, part="errors")),
            _scores("SST-2: accuracy, %", where(results, part="sentiment"), "accuracy", ACCURACIES, 0),
            _scores("Relations: F1 over all classes, %", where(results, part="relations"), "all_f1", SCORES, 0),
            _scores("Names: F1 of entities, %", where(results, part="names"), "f1", SCORES, 2),
        ]
        return Report([table for table in tables if table.rows] or tables[:1])


def _others(part: _Part, network: str, scale: Scale) -> list[Mapping[str, Any]]:
    """List the settings of the other item's trials of a network."""
    wanted = {**part.chosen, part.named: network}
    listed = (trial.settings for trial in part.item().at(scale))
    return [settings for settings in listed if wanted.items() <= dict(settings).items()]


def _errors(results: Sequence[Result]) -> Table:
    rows: list[Sequence[str | Number]] = []
    for network, change in _PARTS["errors"].networks:
        if found := where(results, network=network, changed=change):
            share = partial(average, found, digits=1, percent=True)
            measured = (share("step_zero", ERRORS[network][_DECAY] / 100), share("sum_zero"), average(found, "state"))
            rows.append((network, change, *measured, share("dev_accuracy")))
    columns = ("network", "changed", "step, zero", "sum, zero", "‖h‖", "dev accuracy")
    return Table("Mean relative error of the hidden states of SST-2's test sentences, %", columns, rows)


def _scores(
    title: str, results: Sequence[Result], metric: str, published: Mapping[str, Sequence[float | None]], first: int
) -> Table:
    """Tabulate a metric on dev and test; ``first`` is the place of dev among the published numbers of a network."""
    rows: list[Sequence[str | Number]] = []
    for network, change in dict.fromkeys(itemgetter("network", "changed")(each.trial.settings) for each in results):
        found, theirs = where(results, network=network, changed=change), published[network][first : first + 2]
        cells = (
            training_cell(found, f"{split}_{metric}", number and number / 100, percent=True)
            for split, number in zip(_SPLITS, theirs, strict=True)
        )
        rows.append((network, change, *cells))
    return Table(title, ("network", "changed", *_SPLITS), rows)
