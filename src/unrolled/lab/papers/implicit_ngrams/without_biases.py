"""Networks without biases, as some of the authors' code has them, and with a normalised spectrum.

In the published code GRU, LSTM, Elman network and the cells of MVMA-E, MVM-E, MVM-G and MVM-L have no biases, with
normalised spectra and without. Ours have biases. The Elman network and those with its terms (MVMA-E, MVM-E) learn
better here than in the paper, and normalised networks err less in one step: do biases matter for that? Each trial here
is a trial of another item without biases. The Elman network learns once more with a normalised spectrum as well, as the
paper says that it trained. In that code the backward direction of MVM-E begins with zeros, and with no vector of its
last word, so all its states are zero: on names MVM-E learns once more in one direction. The modules of GRU, LSTM and
Elman network without normalised spectra start from orthogonal matrices besides: these three learn so as well.

The notebooks make a new optimiser in each epoch. Trials of ``single-changes`` that do so are made without biases too:
step errors with all settings of a notebook, relations, and MVM-E on SST-2 in 30 epochs.

Source:
    Sun and Lu (2022), Implicit n-grams, tables 3 and 4, appendix B.2; the modules self_defined_rnn_linear,
    self_defined_rnn_spectral, self_defined_gru_spectral and self_defined_lstm_spectral, those that end in
    _no_combination, and dynamic_rnn, dynamic_gru and dynamic_lstm, whose matrices start orthogonal, of
    https://github.com/richardsun-voyager/inibr, read and not run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unrolled.errors import UsageError
from unrolled.lab.papers.analyses.published_code.changed_networks import dev_test_table, error_table
from unrolled.lab.papers.framework.experiment import (
    SCALES,
    Experiment,
    Report,
    Result,
    Scale,
    Trial,
    TrialSetup,
    settings_of,
    where,
)
from unrolled.lab.papers.implicit_ngrams.approximation import PUBLISHED as ERRORS
from unrolled.lab.papers.implicit_ngrams.approximation import Approximation
from unrolled.lab.papers.implicit_ngrams.names_of_code import EntitiesOfCode
from unrolled.lab.papers.implicit_ngrams.relations_of_code import RelationsOfCode
from unrolled.lab.papers.implicit_ngrams.single_changes import SingleChanges
from unrolled.lab.papers.implicit_ngrams.table3 import PUBLISHED as ACCURACIES
from unrolled.lab.papers.implicit_ngrams.table3 import SentimentAndTopics
from unrolled.lab.papers.implicit_ngrams.table4 import PUBLISHED as SCORES

__all__ = ["WithoutBiases"]

_NO_BIASES = "no biases"
_NORMALISED = "no biases, normalised spectrum"
_ORTHOGONAL = "no biases, orthogonal start"
_FORWARD = "no biases, one direction"
_OF_NOTEBOOK = "no biases, all settings of the notebook"
_RENEWED = "no biases, a new optimiser in each epoch"
_ORTHOGONAL_RENEWED = "no biases, orthogonal start, a new optimiser in each epoch"
_LONGER = "no biases, rate 0.002, 30 epochs, a new optimiser in each"
_CHANGES: Mapping[str, Mapping[str, Any]] = {
    _NO_BIASES: {"bias": False},
    _FORWARD: {"bias": False, "bidirectional": False},
    _NORMALISED: {"bias": False, "spectral": True},
    _ORTHOGONAL: {"bias": False, "orthogonal": True},
    _OF_NOTEBOOK: {"bias": False},
    _RENEWED: {"bias": False},
    _ORTHOGONAL_RENEWED: {"bias": False, "orthogonal": True},
    _LONGER: {"bias": False},
}
"""What is changed in a trial of another item, which may have a new optimiser in each epoch by itself."""
_DECAY = 1e-5
_Found = tuple[Sequence[Result], Sequence[tuple[str, str]]]


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
_STANDARD_NETWORKS = ("GRU", "LSTM", "Elman")
_STANDARD = tuple((each, _ORTHOGONAL) for each in _STANDARD_NETWORKS)
_PARTS: Mapping[str, _Part] = {
    "errors": _Part(
        Approximation,
        "kind",
        {"weight_decay": _DECAY},
        [(each, _NORMALISED) for each in ("GRU", "Elman", "LSTM")],
    ),
    "notebook": _Part(
        SingleChanges,
        "network",
        {"part": "errors", "changed": "all settings of the notebook"},
        [(each, _OF_NOTEBOOK) for each in ("GRU", "Elman", "LSTM")],
    ),
    "sentiment": _Part(
        SentimentAndTopics,
        "model",
        {"column": "SST-2"},
        (*_ELMAN, *_STANDARD, ("MVM-E", _NO_BIASES), ("MVMA-E", _NO_BIASES)),
        seeds={"MVM-E": 3},
    ),
    "longer": _Part(
        SingleChanges,
        "network",
        {"part": "sentiment", "changed": "rate 0.002, 30 epochs, a new optimiser in each"},
        [("MVM-E", _LONGER)],
    ),
    "relations": _Part(
        RelationsOfCode,
        "model",
        {},
        (*_ELMAN, *_STANDARD, *((each, _NO_BIASES) for each in ("MVMA-E", "MVM-G", "MVM-L"))),
    ),
    "optimisers": _Part(
        SingleChanges,
        "network",
        {"part": "all classes"},
        (
            *((each, _ORTHOGONAL_RENEWED) for each in _STANDARD_NETWORKS),
            *((each, _RENEWED) for each in ("MVMA-E", "MVM-G", "MVM-L")),
        ),
    ),
    "names": _Part(
        EntitiesOfCode,
        "model",
        {},
        (
            *_ELMAN,
            *_STANDARD,
            *((each, _NO_BIASES) for each in ("MVMA-E", "MVM-E", "MVM-G", "MVM-L")),
            ("MVM-E", _FORWARD),
        ),
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
                others = settings_of(part.item, scale, **part.chosen, **{part.named: network})
                if not others and scale != "smoke":
                    raise UsageError(f"{part.item.name} has no trial of {network} at scale {scale}")
                for settings in others[: part.seeds.get(network, 1)]:
                    chosen = {**settings, **_CHANGES[change], "part": name, "network": network, "changed": change}
                    further = f", seed {chosen['seed']}" if chosen["seed"] else ""
                    listed.append(Trial(f"{name}: {network}, {change}{further}", chosen))
        return listed

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train and measure as the other item does."""
        part = _PARTS[trial.settings["part"]]
        return part.item().run(replace(trial, settings={**trial.settings, **part.chosen}), setup)

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Give each part a table with the published numbers."""
        errors = {network: numbers[_DECAY] for network, numbers in ERRORS.items()}
        names = {network: numbers[2:] for network, numbers in SCORES.items()}  # relations stand first
        title = "Mean relative error of the hidden states of SST-2's test sentences, %"
        tables = [
            error_table(title, *_found(results, "errors", "notebook"), errors),
            dev_test_table("SST-2: accuracy, %", *_found(results, "sentiment", "longer"), "accuracy", ACCURACIES),
            dev_test_table(
                "Relations: F1 over all classes, %", *_found(results, "relations", "optimisers"), "all_f1", SCORES
            ),
            dev_test_table("Names: F1 of entities, %", *_found(results, "names"), "f1", names),
        ]
        return Report([table for table in tables if table.rows] or tables[:1])


def _found(results: Sequence[Result], *parts: str) -> _Found:
    """Give the results of some parts, and their networks, each with its change."""
    chosen = [result for part in parts for result in where(results, part=part)]
    return chosen, [pair for part in parts for pair in _PARTS[part].networks]
