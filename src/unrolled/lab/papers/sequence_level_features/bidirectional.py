"""Scores of the n-grams of a phrase in a bidirectional GRU and LSTM, in both reading directions: figure 4.

Every token and every sequence of the paper's phrase is scored in both directions, by the first-order approximation and
by an exact expansion. A sequence that is read backward ends at its first word. The networks are those of
``sentiment_networks.learn_phrases``.

Source:
    Sun and Lu, Sequence-level features (2020), section 5.1.3, figure 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from math import nan
from statistics import fmean
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from unrolled.decomposition.decomposition import decompose
from unrolled.decomposition.opening.network_cells import Network
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.papers.analyses.polarity import polarity_weight
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
from unrolled.lab.papers.framework.figure_style import grid, seed_captions
from unrolled.lab.papers.framework.learned import learned
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_training import run_metrics
from unrolled.lab.tasks.classify import Classify
from unrolled.lab.training.run_folder import Run
from unrolled.report.colour import colour, colour_map, text_colour

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "Bidirectional", "direction_scores"]

_PHRASE = ("freedom", "to", "feel", "contradictory", "things")
"""The phrase of figure 4."""
CLAIMS = (("forward", 4, 3, -1), ("forward", 4, 0, 1), ("backward", 0, 1, 1), ("backward", 0, 0, 1))
"""Statements of the caption: direction, the word read last, the word read first, and the sign of the score."""

_DIRECTIONS = ("forward", "backward")
_ENCODERS = ("gru", "lstm")
_EXPANSIONS = {"activation": "approximation", "path": "exact"}
_SEEDS: dict[Scale, int] = {"smoke": 1, "cpu": 3, "day": 3, "paper": 5}


class Bidirectional(Experiment):
    """A trial is one network."""

    name = "sequence-level-features/bidirectional"
    title = "Scores of a phrase in both reading directions"
    source = "Sun and Lu, Sequence-level features (2020), figure 4; it has no numbers"
    scales = tuple(SCALES)
    usual_hours = 0.1

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the networks, seed by seed; a seed draws phrases and weights."""
        return phrase_trials(scale, _ENCODERS, _SEEDS[scale])

    def with_vectors(self, trial: Trial, file: str, size: int) -> Trial | None:
        """Begin with other vectors at all scales but smoke."""
        return phrase_trial_with_vectors(trial, file, size)

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, and score all sequences of the phrase."""
        run = learn_phrases(trial, setup, bidirectional=True)
        scores = {expansion: direction_scores(run, _PHRASE, expansion).tolist() for expansion in _EXPANSIONS}
        return {**run_metrics(run), "scores": scores}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Compare the scores that the paper mentions with the signs that it finds; draw all scores."""
        rows: list[Sequence[str | Number]] = []
        for claim in CLAIMS:
            cells = [
                Number([_score(result, expansion, claim) for result in chosen])
                for encoder in _ENCODERS
                if (chosen := where(results, encoder=encoder))
                for expansion in _EXPANSIONS
            ]
            rows.append((*_read_and_sign(claim), *cells))
        columns = [
            f"{encoder.upper()}, {name}"
            for encoder in _ENCODERS
            if where(results, encoder=encoder)
            for name in _EXPANSIONS.values()
        ]
        accuracies: list[Sequence[str | Number]] = [
            (encoder.upper(), *(average(chosen, f"{split}_accuracy", digits=1, percent=True) for split in SPLITS))
            for encoder in _ENCODERS
            if (chosen := where(results, encoder=encoder))
        ]
        tables = [
            Table("Polarity scores of tokens and sequences", ("read", "published", *columns), rows),
            Table("Accuracy on SST, both directions, %", ("network", *SPLITS), accuracies),
        ]
        drawn = {
            f"sequence-level-features-figure4-{name}": partial(_draw, results, expansion)
            for expansion, name in _EXPANSIONS.items()
        }
        return Report(tables, drawn, seed_captions(drawn, "scores", results))

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool | None]:
        """The caption: the signs of four scores, which the paper finds with the approximation."""
        claims: dict[str, bool | None] = {}
        for encoder, claim in product(_ENCODERS, CLAIMS):
            if trained := where(results, encoder=encoder):
                scores = [_score(each, "activation", claim) for each in learned(trained, classes=2)]
                text, sign = _read_and_sign(claim)
                claims[f"{encoder.upper()}, {text}: {sign}"] = fmean(scores) * claim[3] > 0 if scores else None
        return claims


@torch.no_grad()
def direction_scores(run: Run, phrase: Sequence[str], expansion: str) -> Tensor:
    """Score every n-gram of a phrase in both directions of a bidirectional classifier that reads its last states.

    The result has the shape (directions, end, start), forward first; it is zero where the direction has no such n-gram.
    """
    model, task = cast("Classifier", run.model), cast("Classify", run.task)
    vectors = model.embedding(torch.tensor([task.vocabulary.encode(phrase)]))
    opened = decompose(cast("Network", model.encoder), vectors, expansion=expansion)
    halves = polarity_weight(run).chunk(len(_DIRECTIONS))  # the last states of both directions are concatenated
    return torch.stack([opened.scores(half, way)[0, :, :, 0] for way, half in enumerate(halves)])


Claim = tuple[str, int, int, int]


def _score(result: Result, expansion: str, claim: Claim) -> float:
    direction, end, start, _ = claim
    return float(result["scores"][expansion][_DIRECTIONS.index(direction)][end][start])


def _read_and_sign(claim: Claim) -> tuple[str, str]:
    """Give the words in the order in which they are read, and the sign."""
    direction, end, start, sign = claim
    words = _PHRASE[start : end + 1] if end >= start else _PHRASE[start : None if end == 0 else end - 1 : -1]
    return f'{direction}, "{" ".join(words)}"', "above 0" if sign > 0 else "below 0"


def _draw(results: Sequence[Result], expansion: str) -> Figure:
    found = [chosen[0] for encoder in _ENCODERS if (chosen := where(results, encoder=encoder))]
    figure, panels = grid(len(found), len(_DIRECTIONS), width=4.2, height=3.4)
    for row, result in enumerate(found):
        triangles = result["scores"][expansion]
        limit = max(abs(score) for triangle in triangles for line in triangle for score in line)
        pair = panels[row * len(_DIRECTIONS) : (row + 1) * len(_DIRECTIONS)]
        for way, (panel, triangle) in enumerate(zip(pair, triangles, strict=True)):
            places = range(len(_PHRASE))
            read = [(end, start) for end in places for start in places if (start <= end if way == 0 else start >= end)]
            values = [[triangle[end][start] if (end, start) in read else nan for start in places] for end in places]
            panel.imshow(values, cmap=colour_map(), vmin=-limit, vmax=limit)
            for end, start in read:
                score = triangle[end][start]
                written = text_colour(colour(score, limit))
                panel.text(start, end, f"{score:+.1f}", ha="center", va="center", color=written, fontsize=8)
            panel.grid(visible=False)
            panel.set_xticks(places, _PHRASE, rotation=30, ha="right")
            panel.set_yticks(places, _PHRASE)
            title = f"{result.trial.settings['encoder'].upper()}, {_DIRECTIONS[way]}, {_EXPANSIONS[expansion]}"
            panel.set(title=title, xlabel="read first", ylabel="read last")
        figure.colorbar(pair[0].images[0], ax=pair, label="polarity score (logits)")
    return figure
