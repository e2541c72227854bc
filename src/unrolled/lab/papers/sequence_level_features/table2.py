"""Sentiment with a standard, an approximate and a simplified GRU or LSTM: table 2.

"Simplified" is the approximation without the matrices of the tokens, so without sequence-level features. All six cells
train equally long at the same rate, with the settings of ``sentiment_networks.phrase_trials``.

Source:
    Sun and Lu, Sequence-level features (2020), section 5.2, table 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unrolled.lab.papers.analyses.sentiment_networks import learn_phrases, phrase_trial_with_vectors, phrase_trials
from unrolled.lab.papers.framework.experiment import (
    SCALES,
    SPLITS,
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
from unrolled.lab.papers.framework.trial_training import run_metrics

__all__ = ["PUBLISHED", "SentimentByCell"]

PUBLISHED: Mapping[str, tuple[float, float]] = {
    "gru": (0.8589, 0.8813),
    "approx_gru": (0.8635, 0.8830),
    "simplified_gru": (0.8291, 0.8369),
    "lstm": (0.8578, 0.8786),
    "approx_lstm": (0.8693, 0.8792),
    "simplified_lstm": (0.8302, 0.8479),
}
"""Accuracy on dev and on test."""

_SEEDS: dict[Scale, int] = {"smoke": 1, "cpu": 2, "day": 3, "paper": 5}


class SentimentByCell(Experiment):
    """A trial is one training."""

    name = "sequence-level-features/table2"
    title = "Sentiment with approximate and simplified cells"
    source = "Sun and Lu, Sequence-level features (2020), table 2"
    headline = ("gru", "test")
    scales = tuple(SCALES)
    usual_hours = 0.1

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the cells, seed by seed; a seed draws phrases and weights."""
        return phrase_trials(scale, PUBLISHED, _SEEDS[scale])

    def with_vectors(self, trial: Trial, file: str, size: int) -> Trial | None:
        """Begin with other vectors at all scales but smoke."""
        return phrase_trial_with_vectors(trial, file, size)

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, and measure on dev and test."""
        return run_metrics(learn_phrases(trial, setup))

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Compare accuracies with the published ones."""
        rows: list[Sequence[str | Number]] = []
        for encoder, published in PUBLISHED.items():
            if chosen := where(results, encoder=encoder):
                cells = (
                    average(chosen, f"{split}_accuracy", theirs, digits=1, percent=True)
                    for split, theirs in zip(SPLITS, published, strict=True)
                )
                rows.append((encoder.replace("_", " "), *cells))
        table = Table("Accuracy on SST, %", ("cell", *SPLITS), rows)
        return Report([table])
