"""How often "not" turns the score of an adjective, how far it shifts it, how often "very" strengthens it: in numbers.

The papers show box plots of such scores. Here networks that learned SST-2's phrases are opened by every expansion, and
for each the score of "not bad" is taken in two ways: of the bigram's own term v_{1:2}, as the papers take it, and of
all terms that end at the phrase's end, v_{1:2} + v_{2:2}, which for an exact expansion is what the network itself makes
of the phrase. Intervals are found by drawing adjectives anew, 95 %; they tell nothing of other trainings.

The flip rate is the share of adjectives whose score has the other sign after "not"; the shift is how far it moves
towards that sign; strengthened is a score that keeps its sign and grows.

GRU and LSTM are those of ``unrolled train classify --data sst2`` after 3 epochs; the others are those that
implicit-ngrams/negation trains. MVMA models have n-grams of their own, which every expansion finds.

Source:
    Our own question; Implicit n-grams, figures 2 to 5, and Sequence-level features, table 1, for the scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unrolled.lab.data.corpus import Classification
from unrolled.lab.papers.analyses.polar_adjectives import polar_adjectives, rating_signs, sst2_adjectives
from unrolled.lab.papers.analyses.polarity import context_scores, ngram_scores
from unrolled.lab.papers.analyses.sentiment_networks import ADAGRAD
from unrolled.lab.papers.framework.bootstrap import interval
from unrolled.lab.papers.framework.corpus_cache import load_once
from unrolled.lab.papers.framework.experiment import Bench, Experiment, Report, Result, Scale, Trial, where
from unrolled.lab.papers.framework.synthetic_corpora import ratings
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_training import learn_once
from unrolled.lab.tasks import TASKS
from unrolled.lab.training.run_folder import Run
from unrolled.lab.training.settings import TrainingSettings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NegationRates", "rates"]

_EXPANSIONS = ("zero", "activation", "taylor(2)", "operating", "path", "gates")
_OWN = "its own"
_NETWORKS = {"GRU": "gru", "LSTM": "lstm", "MVMA-G": "mvma_g", "MVMA-L": "mvma_l", "Elman": "rnn"}
_OPENED = ("GRU", "LSTM", "Elman")
_NOT, _VERY = "not", "very"
_STRONGER = (_VERY, "really", "so", "truly", "extremely", "absolutely", "incredibly", "utterly")
_KINDS = {"ngram": "n-gram", "phrase": "all that end there"}

_SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"seeds": 1, "draws": 20},
    "cpu": {"seeds": 3, "draws": 1000},
    "paper": {"seeds": 3, "draws": 1000},
}
_RATIO = 1.2  # in the made-up corpus of scale smoke, where every adjective is often negated


def _network(name: str, scale: Scale) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give what of a network's architecture and training differs from the task's own."""
    encoder = {"encoder": _NETWORKS[name]}
    if scale == "smoke":
        return {**encoder, "hidden": 8, "embedding": 8}, {"epochs": 2, "batch": 16}
    if name in ("GRU", "LSTM"):
        return encoder, {"epochs": 3 if scale == "cpu" else 10}
    size, epochs = (64, 2) if scale == "cpu" else (300, 30)
    return {**encoder, "hidden": size, "embedding": size}, {**ADAGRAD, "epochs": epochs}


class NegationRates(Experiment):
    """A trial is one network, opened by every expansion."""

    name = "ours/negation-rates"
    title = 'Negation and intensification as rates: what "not" and "very" do to scores of adjectives'
    source = "our own question: the papers have box plots, without figures"

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the networks, seed by seed."""
        task, trials = TASKS.get("classify"), []
        for seed in range(_SIZES[scale]["seeds"]):
            for name in _NETWORKS:
                model, training = _network(name, scale)
                learned = TrainingSettings(**{**task.training_defaults, **training, "seed": seed})
                settings = {
                    "data": "made-up ratings" if scale == "smoke" else "sst2",
                    "network": name,
                    "model": task.Architecture(**model).model_dump(mode="json"),
                    "training": learned.model_dump(mode="json"),
                    "expansions": list(_EXPANSIONS) if name in _OPENED else [_OWN],
                    "stronger": [_VERY, "slightly"] if scale == "smoke" else list(_STRONGER),
                    "draws": _SIZES[scale]["draws"],
                }
                trials.append(Trial(f"{name}, seed {seed}", settings))
        return trials

    def run(self, trial: Trial, bench: Bench) -> Mapping[str, Any]:
        """Train, unless it has been, and score adjectives."""
        chosen = trial.settings
        if chosen["data"] == "sst2":
            adjectives = sst2_adjectives(bench.data)
            corpus = load_once("sst2", Classification, bench.data)
        else:
            corpus = _made_up()
            adjectives = polar_adjectives(corpus.train, _RATIO)
        run = learn_once(bench, "classify", corpus, chosen["model"], chosen["training"])
        sign = torch.tensor([1.0] * len(adjectives.positive) + [-1.0] * len(adjectives.negative))
        found = {}
        for expansion in chosen["expansions"]:
            by_word = _scores(run, adjectives.all, chosen["stronger"], expansion)
            found[expansion] = {kind: rates(scores, sign, chosen["draws"]) for kind, scores in by_word.items()}
            bench.say(f"{expansion}: {100 * found[expansion]['ngram']['flips'][0]:.0f} % flip")
        return {
            "accuracy": run.metrics["test_accuracy"],
            "positive": len(adjectives.positive),
            "negative": len(adjectives.negative),
            "expansions": found,
        }

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate rates and their intervals."""
        tables = [
            table for name in _NETWORKS if (mine := where(results, network=name)) for table in _tables(name, mine)
        ]
        return Report(tables, {"ours-negation-rates": lambda: _draw(results)})


def _made_up() -> Classification:
    whole = ratings()
    splits = {name: tuple(rating_signs(getattr(whole, name))) for name in ("train", "dev", "test")}
    return Classification(name="made-up signs of ratings", labels=("negative", "positive"), **splits)


def _scores(
    run: Run, adjectives: Sequence[str], stronger: Sequence[str], expansion: str
) -> Mapping[str, Mapping[str, Tensor]]:
    """Score adjectives alone (the empty word) and after each word, as n-grams and as whole phrases."""
    known = [word for word in stronger if word in run.task.vocabulary]  # type: ignore[attr-defined]  # it has one
    words = ("", _NOT, *known)
    phrases = [f"{word} {adjective}".strip() for word in words for adjective in adjectives]
    opened = "zero" if expansion == _OWN else expansion
    rows = {
        "ngram": ngram_scores(run, phrases, opened).view(len(words), -1),
        "phrase": context_scores(run, phrases, opened).view(len(words), -1),
    }
    return {kind: dict(zip(words, scores, strict=True)) for kind, scores in rows.items()}


def rates(scores: Mapping[str, Tensor], sign: Tensor, draws: int) -> dict[str, Any]:
    """Count what words do to the scores of adjectives.

    Args:
        scores: of the adjectives, by the word before them; the empty word is none.
        sign: 1 for positive adjectives, -1 for negative ones, as long as the scores.
        draws: how many resamples the intervals are found from.

    Returns:
        Under "right" the share of adjectives that score right alone; under "flips" that of scores that change their
        sign after "not", and apart for both polarities; under "shift" how far "not" moves a score away from the
        adjective's sign, on the mean; under every other word the share that it strengthens. Each is followed by its
        interval.
    """
    alone = scores[""]
    flips = (alone * scores[_NOT] < 0).float()
    found = {
        "right": _resampled((alone * sign > 0).float(), draws),
        "flips": _resampled(flips, draws),
        "flips_positive": _resampled(flips[sign > 0], draws),
        "flips_negative": _resampled(flips[sign < 0], draws),
        "shift": _resampled((alone - scores[_NOT]) * sign, draws),
    }
    for word, after in scores.items():
        if word not in ("", _NOT):
            found[word] = _resampled((after * alone.sign() > alone.abs()).float(), draws)
    return found


def _resampled(values: Tensor, draws: int) -> list[float]:
    """The mean of independent values, and the interval of the means of resamples."""
    generator = torch.Generator().manual_seed(0)
    drawn = values.double()[torch.randint(len(values), (draws, len(values)), generator=generator)].mean(dim=1)
    return [round(value, 4) for value in (float(values.double().mean()), *interval(drawn.tolist()))]


def _values(mine: Sequence[Result], expansion: str, kind: str, measure: str) -> list[list[float]]:
    """The measure and its interval, seed by seed; none where the vocabulary lacks the word."""
    found = (result["expansions"][expansion][kind] for result in mine)
    return [measures[measure] for measures in found if measure in measures]


def _mean(mine: Sequence[Result], expansion: str, kind: str, measure: str) -> list[float]:
    """The measure and its interval, on the mean over seeds."""
    return [fmean(places) for places in zip(*_values(mine, expansion, kind, measure), strict=True)]


def _cells(mine: Sequence[Result], expansion: str, kind: str, measure: str) -> tuple[Number, str]:
    percent = measure != "shift"
    scale, digits = (100, 1) if percent else (1, 2)
    _, low, high = (scale * value for value in _mean(mine, expansion, kind, measure))
    number = Number([value for value, *_ in _values(mine, expansion, kind, measure)], digits=digits, percent=percent)
    return number, f"{low:.{digits}f} to {high:.{digits}f}"


def _tables(name: str, mine: Sequence[Result]) -> list[Table]:
    rows: list[Sequence[str | Number]] = []
    words: list[Sequence[str | Number]] = []
    listed = mine[0].trial.settings["stronger"]
    stronger = [word for word in listed if _values(mine, next(iter(mine[0]["expansions"])), "ngram", word)]
    for expansion in mine[0]["expansions"]:
        for kind, shown in _KINDS.items():
            measures = ("right", "flips", "flips_positive", "flips_negative", "shift", *stronger[:1])
            cells = [_cells(mine, expansion, kind, measure) for measure in measures]
            alone = cells[0][0]
            apart = [number for number, _ in cells[2:4]]
            rest = [cell for pair in cells[4:] for cell in pair]
            rows.append((expansion, shown, alone, *cells[1], *apart, *rest))
            words.append((expansion, shown, *(_cells(mine, expansion, kind, word)[0] for word in stronger)))
    first = mine[0]
    accuracy = Number([result["accuracy"] for result in mine], digits=1, percent=True)
    title = (
        f"{name} (test accuracy {accuracy}%): {first['positive']} positive and {first['negative']} negative adjectives"
    )
    very = ("strengthened by very, %", "95 %") if stronger else ()
    columns = (
        "expansion", "score of", "right alone, %", "flips after not, %", "95 %", "positive, %", "negative, %",
        "shift by not, logits", "95 %", *very,
    )  # fmt: skip
    tables = [Table(title, columns, rows)]
    if len(stronger) > 1:
        tables.append(Table(f"{name}: strengthened by each word, %", ("expansion", "score of", *stronger), words))
    return tables


def _draw(results: Sequence[Result]) -> Figure:
    from unrolled.lab.papers.framework.figure_style import COLOURS, MARKERS, grid, legend_below

    shown = [name for name in _NETWORKS if where(results, network=name)]
    most = max(len(where(results, network=name)[0]["expansions"]) for name in shown)
    figure, panels = grid(2, len(shown), width=2.7, height=0.9 + 0.25 * most)
    for column, name in enumerate(shown):
        mine = where(results, network=name)
        expansions = list(mine[0]["expansions"])
        for row, measure in enumerate(("flips", _VERY)):
            panel = panels[row * len(shown) + column]
            for number, (kind, label) in enumerate(_KINDS.items()):
                for place, expansion in enumerate(expansions):
                    if not _values(mine, expansion, kind, measure):
                        continue
                    value, low, high = (100 * each for each in _mean(mine, expansion, kind, measure))
                    y = place + 0.3 * (number - 0.5)
                    panel.plot([low, high], [y, y], color=COLOURS[number], linewidth=1.5)
                    panel.plot(value, y, MARKERS[number], color=COLOURS[number], label=label if place == 0 else None)
            panel.set_yticks(range(len(expansions)), expansions)
            panel.set(xlim=(-3, 103), ylim=(most - 0.5, -0.5))
            panel.set_xlabel("flips after not, %" if measure == "flips" else "strengthened by very, %")
            panel.axvline(50, color="#888888", linestyle=":", linewidth=1)
        panels[column].set_title(name)
    legend_below(figure, panels[0], len(_KINDS))
    return figure
