"""The score of every n-gram of a sentence: in MVMA-G as in the paper, and in a GRU by an exact expansion.

Both models learn SST-2's phrases; they are those of implicit-ngrams/negation. MVMA-G has n-grams of its own, and the
GRU is opened by the path expansion. So in both models the scores that end at the last word and the bias add up to the
logit of the sentence. The paper's two sentences are the dataset's; these are our own.

Source:
    Sun and Lu (2022), Implicit n-grams, figure 6 and appendix B.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, cast

import torch

from unrolled.lab.data.corpus import Classification
from unrolled.lab.models.classifier import Classifier
from unrolled.lab.papers.analyses.polarity import triangle_scores
from unrolled.lab.papers.analyses.sentiment_networks import ADAGRAD
from unrolled.lab.papers.framework.experiment import SCALES, Experiment, Report, Result, Scale, Trial, TrialSetup, where
from unrolled.lab.papers.framework.figure_style import grid
from unrolled.lab.papers.framework.learned import learned
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_corpora import read_or_make_up
from unrolled.lab.papers.framework.trial_training import full_settings, train_once
from unrolled.lab.papers.implicit_ngrams.model_names import encoder_of
from unrolled.lab.training.run_folder import Run
from unrolled.report.colour import colour_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SENTENCES", "TriangleOfScores"]

SENTENCES = ("the film never loses its charm", "it is not a bad story , but it moves too slowly")
"""As in the paper's first sentence, a word reverses what follows it."""
_NEVER, _LOSES = 2, 3  # their places in the first sentence
_MODELS = ("MVMA-G", "GRU")
_IN_PAPER = "MVMA-G"
_SIZES: dict[Scale, int] = {"smoke": 8, "cpu": 64, "day": 300, "paper": 300}
# As in implicit-ngrams/negation, so that both share their networks.
_TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"epochs": 2, "batch": 16},
    "cpu": {**ADAGRAD, "epochs": 2},
    "day": {**ADAGRAD, "lr": 0.01, "epochs": 6, "patience": 2, "batch": 128},
    "paper": {**ADAGRAD, "epochs": 30},
}


class TriangleOfScores(Experiment):
    """A trial is one model, with both sentences."""

    name = "implicit-ngrams/triangle"
    title = "Polarity scores of every n-gram of a sentence"
    source = "Sun and Lu (2022), Implicit n-grams, figure 6: pictures without printed numbers"
    scales = tuple(SCALES)
    usual_hours = 0.1

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List both models."""
        trials = []
        for model in _MODELS:
            architecture = {"encoder": encoder_of(model), "hidden": _SIZES[scale], "embedding": _SIZES[scale]}
            settings = {
                "data": "made-up negation" if scale == "smoke" else "sst2",
                "name": model,
                **full_settings("classify", architecture, _TRAINING[scale]),
                "sentences": list(SENTENCES),
            }
            trials.append(Trial(model, settings))
        return trials

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, or load the shared network, and score every n-gram."""
        chosen = trial.settings
        corpus = read_or_make_up(chosen["data"], Classification, setup.data, (96, 16, 16))
        run = train_once(setup, "classify", corpus, chosen["model"], chosen["training"])
        found = []
        for sentence in chosen["sentences"]:
            triangle = triangle_scores(run, sentence, "path")
            logit, bias = _logit_and_bias(run, sentence)
            found.append({
                "scores": [[round(score, 4) for score in row] for row in triangle.tolist()],
                "bias": bias,
                "says": logit,
                "error": abs(float(triangle[-1].double().sum()) + bias - logit),
            })  # fmt: skip
        return {"accuracy": run.metrics["test_accuracy"], "sentences": found}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Add the triangles up, and draw them."""
        rows: list[Sequence[str | Number]] = []
        for result, place in product(results, range(len(SENTENCES))):
            found, words = result["sentences"][place], SENTENCES[place].split()
            grams = {
                " ".join(words[start : end + 1]): found["scores"][end][start]
                for end in range(len(words))
                for start in range(end + 1)
            }
            extremes = (f"{pick(grams, key=grams.__getitem__)}" for pick in (max, min))
            sums = (sum(found["scores"][-1]), found["bias"], found["says"])
            rows.append((
                result.trial.settings["name"],
                SENTENCES[place],
                *(Number([value]) for value in sums),
                f"{found['error']:.0e}",
                *extremes,
            ))  # fmt: skip
        columns = (
            "model", "sentence", "n-grams at its end", "bias", "logit", "difference", "most positive n-gram",
            "most negative n-gram",
        )  # fmt: skip
        title = 'Scores of n-grams add up to the logit ("positive" minus "negative")'
        return Report(
            [Table(title, columns, rows)],
            {"implicit-ngrams-triangle": partial(_draw, results)},
        )

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool | None]:
        """The paper: "never" is negative, "loses" positive, and n-grams from "never" on are generally positive."""
        claims: dict[str, bool | None] = {}
        for result in where(results, name=_IN_PAPER):
            scores = result["sentences"][0]["scores"]
            begun = [line[_NEVER] > 0 for line in scores[_LOSES:]]
            claims[f'{_IN_PAPER}: "never" alone is negative'] = scores[_NEVER][_NEVER] < 0
            claims[f'{_IN_PAPER}: "loses" alone is positive'] = scores[_LOSES][_LOSES] > 0
            told = f'{_IN_PAPER}: most longer n-grams that begin with "never" are positive'
            claims[told] = sum(begun) > len(begun) / 2
            if not learned([result], classes=2, accuracy="accuracy"):
                claims = dict.fromkeys(claims)
        return claims


@torch.no_grad()
def _logit_and_bias(run: Run, sentence: str) -> tuple[float, float]:
    """Give the logit of "positive" minus that of "negative", and the part of it that is the bias."""
    reading = run.task.prepare(run.model, sentence)
    negative, positive = run.model(*reading.inputs)[0].tolist()
    low, high = cast("torch.nn.Linear", cast("Classifier", run.model).head).bias.tolist()
    return positive - negative, high - low


def _draw(results: Sequence[Result]) -> Figure:
    figure, panels = grid(len(SENTENCES), len(results), width=4.6, height=3.7)
    for place, sentence in enumerate(SENTENCES):
        words = sentence.split()
        row = panels[place * len(results) : (place + 1) * len(results)]
        # one scale for both models, so that colours can be compared
        most = max(abs(score) for result in results for line in result["sentences"][place]["scores"] for score in line)
        for panel, result in zip(row, results, strict=True):
            scores = result["sentences"][place]["scores"]
            shown = [[score if start <= end else float("nan") for start, score in enumerate(line)]
                     for end, line in enumerate(scores)]  # fmt: skip
            image = panel.imshow(shown, cmap=colour_map(), vmin=-most, vmax=most)
            panel.set_xticks(range(len(words)), words, rotation=60, ha="right", rotation_mode="anchor")
            panel.set_yticks(range(len(words)), words)
            panel.set(xlabel="n-gram begins at", ylabel="n-gram ends at")
            panel.grid(visible=False)
            panel.set_title(f"{result.trial.settings['name']}, logit {result['sentences'][place]['says']:+.2f}")
        figure.colorbar(image, ax=row, label="polarity score (logits)", shrink=0.8)
    return figure
