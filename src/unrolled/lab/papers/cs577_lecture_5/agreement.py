"""Long-range agreement: how often a language model prefers the correct number of a verb, by distance to its subject.

The lecture asks the question ("The cat, which was very hungry, chased the mouse") and claims that plain recurrent
networks learn such dependencies badly; it has no numbers. We generate sentences, to control distance and distracting
nouns. Language models of one size learn them word by word. They are tested on sentences outside the training set, at
up to twice the distances of training. Since the claim is about learning, they learn from few sentences and from many,
with equally many epochs. "Attracted" sentences are those whose noun nearest to the verb has the other number than the
subject. The control is a model of n-gram counts with Kneser-Ney smoothing.

Source:
    CS 577, lecture 5, long-term dependencies and LSTMs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unrolled.cells.base import Cell
from unrolled.cells.elman import Elman
from unrolled.cells.gru import GRU
from unrolled.cells.lstm import LSTM
from unrolled.lab.models.ngram_lm import NGramLanguageModel
from unrolled.lab.papers.analyses.sentences.subject_verb_agreement import VOCABULARY, AgreementSentence
from unrolled.lab.papers.framework.experiment import Experiment, Report, Result, Scale, Trial, TrialSetup, where
from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid, write_seeds
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.training_loop import WordScorer, train_steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Agreement"]

_CELLS: dict[str, Callable[[int, int], Cell]] = {"RNN": Elman, "GRU": GRU, "LSTM": LSTM}
_ORDERS = {"3-gram counts": 3, "5-gram counts": 5}
_MODELS = (*_CELLS, *_ORDERS)
_AMOUNTS: dict[Scale, tuple[int, ...]] = {
    "smoke": (32, 64),
    "cpu": (2000, 4000, 12_000),
    "paper": (2000, 8000, 32_000, 128_000),
}
"""Number of training sentences."""
_SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"seeds": 1, "epochs": 1, "longest": 6, "tested": 20, "hidden": 8, "batch": 16},
    "cpu": {"seeds": 3, "epochs": 6, "longest": 12, "tested": 300, "hidden": 64, "batch": 64},
    "paper": {"seeds": 5, "epochs": 6, "longest": 24, "tested": 1000, "hidden": 256, "batch": 64},
}
_RATE, _CLIP = 0.003, 1.0
"""The learning rate of Adam and the norm to which gradients are clipped; these and all sizes are our choices."""
_INDEX = {word: index for index, word in enumerate(VOCABULARY)}


class Agreement(Experiment):
    """A trial is one model, tested at every distance."""

    name = "cs577-lecture-5/agreement"
    title = "Long-range agreement: the number of a verb against the distance to its subject"
    source = "CS 577, lecture 5, long-term dependencies: an example without numbers"
    version = 2

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the models, seed by seed, the largest amount first; a seed draws sentences and weights."""
        sizes = dict(_SIZES[scale])
        chosen = {"rate": _RATE, "clip": _CLIP}
        return [
            Trial(
                f"{model}, {amount:,} sentences, seed {seed}",
                {**sizes, "sentences": amount, "model": model, **chosen, "seed": seed},
            )
            for seed in range(sizes.pop("seeds"))
            for amount in reversed(_AMOUNTS[scale])
            for model in _MODELS
        ]

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train on sentences, then test the verbs of others."""
        chosen = trial.settings
        generator = random.Random(chosen["seed"])  # noqa: S311  # sentences, not secrets
        train = [
            AgreementSentence.draw(generator.randint(0, chosen["longest"]), generator)
            for _ in range(chosen["sentences"])
        ]
        seen = {sentence.words for sentence in train}
        if chosen["model"] in _ORDERS:
            prefers = _count_preferences(train, chosen)
        else:
            prefers = _network_preferences(train, chosen, generator, setup)
        right, misled, total = [], [], []
        for distance in range(2 * chosen["longest"] + 1):
            drawn = (AgreementSentence.draw(distance, generator) for _ in range(chosen["tested"]))
            asked = [sentence for sentence in drawn if sentence.words not in seen]
            scores = prefers(asked)
            right.append(fmean(scores))
            attracted = [score for score, sentence in zip(scores, asked, strict=True) if sentence.attracted]
            misled.append(fmean(attracted) if attracted else None)
            total.append(len(asked))
        return {"right": right, "misled": misled, "asked": total}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate and draw accuracies by distance."""
        longest = _SIZES[scale]["longest"]
        spans = [(0, 0), (1, longest // 2), (longest // 2 + 1, longest), (longest + 1, 2 * longest)]
        rows: list[Sequence[str | Number]] = []
        for amount, model in product(_AMOUNTS[scale], _MODELS):
            if chosen := where(results, model=model, sentences=amount):
                means = ([_mean(each["right"], span) for each in chosen] for span in spans)
                hard = [_mean(each["misled"], (1, longest)) for each in chosen]
                cells = [Number(values, digits=1, percent=True) for values in (*means, hard)]
                rows.append((f"{amount:,}", model, *cells))
        distances = (f"{low} to {high}" if high > low else f"{low}" for low, high in spans)
        columns = ("sentences", "model", *distances, f"nearest noun of the other number, to {longest}")
        title = f"Correct number of the verb, %, by words after the subject (chance 50; trained on 0 to {longest})"
        return Report(
            [Table(title, columns, rows)],
            {"cs577-lecture-5-agreement": partial(_draw, results, scale)},
            {
                "cs577-lecture-5-agreement": "a line is the mean over the seeds, its band reaches from the lowest to "
                "the highest. The dotted line is the longest distance of training, the dashed one is chance."
            },
        )

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool]:
        """The lecture: plain recurrent networks find long dependencies harder to learn than gated ones do."""
        right = {
            model: fmean(
                _mean(each["right"], (each.trial.settings["longest"] // 2 + 1, each.trial.settings["longest"]))
                for each in chosen
            )
            for model in _CELLS
            if (chosen := where(results, model=model))
        }
        return {
            f"in the longer half of the trained distances, over all amounts of text, the RNN is right less often than "
            f"the {model}": right["RNN"] < right[model]
            for model in ("GRU", "LSTM")
            if {"RNN", model} <= right.keys()
        }


Prefers = Callable[[Sequence[AgreementSentence]], list[float]]
"""Gives 1 for a sentence whose correct verb form is preferred and 0 for the wrong form. Counts that tie give 1/2; the
scores of a network are taken not to tie."""


def _count_preferences(train: Sequence[AgreementSentence], chosen: Mapping[str, Any]) -> Prefers:
    counts = NGramLanguageModel(_ORDERS[chosen["model"]]).fit([sentence.words for sentence in train])
    before = train[-1].words  # training text runs on, so almost every sentence follows another

    def prefers(asked: Sequence[AgreementSentence]) -> list[float]:
        preferred = []
        for sentence in asked:
            context = (*before, *sentence.words[: sentence.verb])
            right, wrong = (counts.probability(form, context) for form in sentence.forms)
            preferred.append(0.5 if right == wrong else float(right > wrong))
        return preferred

    return prefers


def _network_preferences(
    train: Sequence[AgreementSentence], chosen: Mapping[str, Any], generator: random.Random, setup: TrialSetup
) -> Prefers:
    torch.manual_seed(chosen["seed"])
    hidden = chosen["hidden"]
    model = WordScorer(len(VOCABULARY), _CELLS[chosen["model"]](hidden, hidden), len(VOCABULARY))
    optimiser = torch.optim.Adam(model.parameters(), lr=chosen["rate"])
    for epoch in range(chosen["epochs"]):
        training = train_steps(model, _batches(train, chosen["batch"], generator), _loss, optimiser, chosen["clip"])
        setup.log(f"epoch {epoch + 1}: {fmean(training.losses):.3f} nats per word")

    @torch.no_grad()
    def prefers(asked: Sequence[AgreementSentence]) -> list[float]:
        place = asked[0].verb  # all have the same distance
        scores = model(_numbers(asked)[:place])[-1]
        forms = torch.tensor([[_INDEX[form] for form in sentence.forms] for sentence in asked])
        right, wrong = scores.gather(1, forms).T
        return (right > wrong).double().tolist()

    return prefers


def _numbers(sentences: Sequence[AgreementSentence]) -> Tensor:
    """Give the word indices of sentences of one length, shape (time, batch)."""
    return torch.tensor([[_INDEX[word] for word in sentence.words] for sentence in sentences]).T.contiguous()


def _batches(train: Sequence[AgreementSentence], size: int, generator: random.Random) -> Iterator[Tensor]:
    """Make shuffled batches of sentences of one length, without padding."""
    by_length: dict[int, list[AgreementSentence]] = {}
    for sentence in generator.sample(train, len(train)):
        by_length.setdefault(len(sentence.words), []).append(sentence)
    batches = [same[start : start + size] for same in by_length.values() for start in range(0, len(same), size)]
    generator.shuffle(batches)
    return map(_numbers, batches)


def _loss(model: nn.Module, words: Tensor) -> Tensor:
    return F.cross_entropy(model(words[:-1]).flatten(0, 1), words[1:].flatten())


def _mean(shares: Sequence[float | None], span: tuple[int, int]) -> float:
    """Average over distances, each with the same weight; those without a sentence are left out."""
    return fmean(share for share in shares[span[0] : span[1] + 1] if share is not None)


def _draw(results: Sequence[Result], scale: Scale) -> Figure:
    amounts, longest = _AMOUNTS[scale], _SIZES[scale]["longest"]
    figure, panels = grid(1, len(amounts), width=3.4, height=3.2)
    lines = {}  # the mean of each model; the band spans the seeds
    for panel, amount in zip(panels, amounts, strict=True):
        for number, model in enumerate(_MODELS):
            curves = [result["right"] for result in where(results, model=model, sentences=amount)]
            if not curves:
                continue
            by_distance = [[100 * share for share in shares] for shares in zip(*curves, strict=True)]
            means = [fmean(shares) for shares in by_distance]
            xs, colour, marker = range(len(means)), COLOURS[number], MARKERS[number]
            every = (number % 4, 4)  # overlapping lines show their markers at different places
            (lines[model],) = panel.plot(xs, means, color=colour, marker=marker, markevery=every, label=model)
            low, high = [min(shares) for shares in by_distance], [max(shares) for shares in by_distance]
            panel.fill_between(xs, low, high, color=colour, alpha=0.15, linewidth=0)
        panel.axvline(longest, color="#888888", linestyle=":", linewidth=1)
        panel.axhline(50, color="#888888", linestyle="--", linewidth=1)
        panel.set(title=f"{amount:,} sentences", xlabel="words between subject and verb", ylim=(35, 103))
    write_seeds(panels, results)
    panels[0].set_ylabel("correct number of the verb, %")
    figure.legend(handles=list(lines.values()), loc="outside lower center", ncols=len(lines))
    return figure
