"""A map of contexts: t-SNE of the contexts of short news texts, and how well it separates topics.

The paper shows pictures of MVMA-G and MVM-G. This item adds two numbers, for the map and for the space of the contexts
before the projection. One is the share of texts whose topic is the most frequent one among their ten nearest
neighbours (each text is classified by the others), the other the silhouette.

The paper does not say how it extracted its 2,188 phrases of fewer than 30 tokens. Here they are the 807 test texts of
that length in our part of AG News. At scale cpu the models have 64 units (the paper: 300) and train for 4 epochs;
at scale day they are those of implicit-ngrams/table3.

Source:
    Sun and Lu (2022), Implicit n-grams, figure 7 and appendix C; van der Maaten and Hinton (2008), t-SNE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unrolled.errors import UsageError
from unrolled.lab.data.corpus import Classification
from unrolled.lab.papers.analyses.polarity import context_vectors
from unrolled.lab.papers.analyses.sentiment_networks import ADAGRAD
from unrolled.lab.papers.framework.corpora import load_cached
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
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid, legend_below, seed_captions
from unrolled.lab.papers.framework.learned import learned
from unrolled.lab.papers.framework.synthetic_corpora import topics
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_training import full_settings, train_once
from unrolled.lab.papers.implicit_ngrams.model_names import encoder_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MapOfContexts", "neighbours_agree"]

_MODELS = ("MVMA-G", "MVM-G")
_LONGEST = 29
_NEIGHBOURS = 10
_PERPLEXITY = 30.0  # the paper does not state it; the usual value of t-SNE
_SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"seeds": 1, "hidden": 8},
    "cpu": {"seeds": 3, "hidden": 64},
    "day": {"seeds": 3, "hidden": 300},
    "paper": {"seeds": 3, "hidden": 300},
}
# The paper does not state rate, batch size and epochs.
_TRAINING: dict[Scale, dict[str, Any]] = {
    "smoke": {"epochs": 2, "batch": 8},
    "cpu": {"epochs": 4, "batch": 32},
    "day": {"lr": 0.01, "epochs": 20, "patience": 3, "batch": 32},
    "paper": {"epochs": 20},
}
_DATA: dict[Scale, str] = {
    "smoke": "made-up topics", "cpu": "ag_news", "day": "ag_news_extended", "paper": "ag_news_extended"
}  # fmt: skip


class MapOfContexts(Experiment):
    """A trial is one model."""

    name = "implicit-ngrams/tsne"
    title = "Contexts of short news texts: a map, and the separation of topics"
    source = "Sun and Lu (2022), Implicit n-grams, figure 7: pictures without printed numbers"
    scales = tuple(SCALES)
    usual_hours = 0.4

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List both models, seed by seed."""
        size, trials = _SIZES[scale]["hidden"], []
        for seed, model in product(range(_SIZES[scale]["seeds"]), _MODELS):
            architecture = {"encoder": encoder_of(model), "hidden": size, "embedding": size}
            settings = {
                "data": _DATA[scale],
                "name": model,
                **full_settings("classify", architecture, {**ADAGRAD, **_TRAINING[scale], "seed": seed}),
                "longest": _LONGEST,
                "neighbours": _NEIGHBOURS,
                "perplexity": _PERPLEXITY,
            }
            trials.append(Trial(f"{model}, seed {seed}", settings))
        return trials

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, and project the contexts of short texts to two dimensions."""
        chosen = trial.settings
        smoke = chosen["data"] == "made-up topics"
        corpus = topics((120, 16, 40)) if smoke else load_cached(chosen["data"], Classification, setup.data)
        run = train_once(setup, "classify", corpus, chosen["model"], chosen["training"])
        short = [example for example in corpus.test if len(example.tokens) <= chosen["longest"]]
        labels = torch.tensor([example.label for example in short])
        contexts = context_vectors(run, [" ".join(example.tokens) for example in short])
        projected = _embed(contexts, min(chosen["perplexity"], (len(short) - 1) / 3), chosen["training"]["seed"])
        separation = {}
        for name, points in (("contexts", contexts), ("map", projected)):
            agree = neighbours_agree(points, labels, min(chosen["neighbours"], len(short) - 1))
            separation[name] = {"neighbours": agree, "silhouette": _silhouette(points, labels)}
        return {
            "test_accuracy": run.metrics["test_accuracy"],
            "topics": list(corpus.labels),
            "largest": labels.bincount().max().item() / len(labels),
            "labels": labels.tolist(),
            "x": [round(value, 2) for value in projected[:, 0].tolist()],
            "y": [round(value, 2) for value in projected[:, 1].tolist()],
            **separation,
        }

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate the separation of topics, and draw the maps."""
        rows: list[Sequence[str | Number]] = []
        for model in _MODELS:
            if mine := where(results, name=model):
                shares = ([result[space]["neighbours"] for result in mine] for space in ("contexts", "map"))
                silhouettes = ([result[space]["silhouette"] for result in mine] for space in ("contexts", "map"))
                rows.append((
                    model,
                    average(mine, "test_accuracy", digits=1, percent=True),
                    *(Number(values, digits=1, percent=True) for values in shares),
                    *(Number(values) for values in silhouettes),
                ))  # fmt: skip
        columns = (
            "model", "test accuracy, %", f"topic of {_NEIGHBOURS} neighbours, %", "the same on the map, %",
            "silhouette", "silhouette of the map",
        )  # fmt: skip
        first = results[0]
        title = (
            f"Topics of {len(first['labels'])} texts of fewer than {_LONGEST + 1} tokens (paper: 2,188 phrases); the "
            f"largest has {100 * first['largest']:.0f}%"
        )
        figures = {"implicit-ngrams-tsne": partial(_draw, results)}
        return Report([Table(title, columns, rows)], figures, seed_captions(figures, "maps", results))

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool | None]:
        """The paper: the contexts of both models form clusters by topic."""
        claims: dict[str, bool | None] = {}
        for model in _MODELS:
            if mine := where(results, name=model):
                near = [each["map"]["neighbours"] > 0.5 for each in learned(mine, len(mine[0]["topics"]))]
                told = "in every training that has learned, most texts have the topic of their neighbours on the map"
                claims[f"{model}: {told}"] = all(near) if near else None
        return claims


def neighbours_agree(points: Tensor, labels: Tensor, count: int) -> float:
    """Give the share of points whose label is the most frequent one among their ``count`` nearest neighbours.

    ``points`` has the shape (n, dimensions), ``labels`` (n,). Of labels that are equally frequent, the smallest counts.
    """
    distances = torch.cdist(points.double(), points.double()).fill_diagonal_(torch.inf)
    near = labels[distances.topk(count, largest=False).indices]
    votes = torch.nn.functional.one_hot(near, int(labels.max()) + 1).sum(dim=1)
    return (votes.argmax(dim=1) == labels).double().mean().item()


def _silhouette(points: Tensor, labels: Tensor) -> float:
    from sklearn.metrics import silhouette_score

    return float(silhouette_score(points.double().numpy(), labels.numpy()))


def _embed(points: Tensor, perplexity: float, seed: int) -> Tensor:
    """Project points to two dimensions by t-SNE, shape (n, 2)."""
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise UsageError('t-SNE needs scikit-learn; install it with: pip install "unrolled[figures]"') from error
    return torch.from_numpy(TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(points.numpy()))


def _draw(results: Sequence[Result]) -> Figure:
    shown = [mine[0] for model in _MODELS if (mine := where(results, name=model))]
    figure, panels = grid(1, len(shown), width=3.8, height=3.6)
    for panel, result in zip(panels, shown, strict=True):
        for number, topic in enumerate(result["topics"]):
            places = [place for place, label in enumerate(result["labels"]) if label == number]
            xs, ys = ([result[axis][place] for place in places] for axis in ("x", "y"))
            panel.scatter(xs, ys, s=8, color=COLOURS[number], marker=MARKERS[number], alpha=0.6, label=topic)
        panel.set(title=result.trial.settings["name"], xlabel="t-SNE, first axis", ylabel="second axis")
    legend_below(figure, panels[0], 2 * len(shown))
    return figure
