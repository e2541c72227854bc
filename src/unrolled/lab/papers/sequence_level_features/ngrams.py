"""Scores of n-grams of orders 1 to 4 that are strongly associated with a label: figures 3 and 5.

A score is wᵀ v of the n-gram read alone, from a GRU (and also an LSTM) that learned SST or the negation corpus. The
paper's claim: scores of single words and of bigrams reflect the label better than those of longer n-grams. It shows
figures only. The table states two numbers: how often the score has the label's sign, and how often a positive n-gram
scores higher than a negative one. In the negation corpus, neither an adjective alone nor one with a single "not"
predicts the label, because it is as often negated or doubly negated. SST's networks start without GloVe's vectors and
train for 3 epochs at scale cpu.

Source:
    Sun and Lu, Sequence-level features (2020), section 5.1.2, figures 3 and 5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from unrolled.lab.data.corpus import Classification, Example
from unrolled.lab.metrics.area_under_curve import area_under_curve
from unrolled.lab.papers.analyses.polarity import ngram_scores
from unrolled.lab.papers.analyses.sentiment_networks import NEGATION_SIZES, learn_negation, negation_corpus
from unrolled.lab.papers.framework.corpora import load_cached
from unrolled.lab.papers.framework.experiment import SCALES, Experiment, Report, Result, Scale, Trial, TrialSetup, where
from unrolled.lab.papers.framework.figure_style import draw_box_pairs, grid, seed_captions
from unrolled.lab.papers.framework.learned import learned
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_training import train_once
from unrolled.lab.training.run_folder import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AssociatedNgrams", "NgramScores", "associated_ngrams"]

_ORDERS = (1, 2, 3, 4)
_ENCODERS = ("gru", "lstm")
_IN_PAPER = "gru"
_CORPORA = {"sst2": "SST", "negation": "synthetic"}
_EXPANSIONS = {"activation": "approximation", "path": "exact"}
_LABELS = ("positive", "negative")
# The paper does not define a strong association, nor state how many n-grams it shows.
_CHOICE = {"least": 3, "share": 0.9, "most": 200}
_EPOCHS: dict[Scale, int] = {"smoke": 1, "cpu": 3, "day": 10, "paper": 10}
_SEEDS: dict[Scale, int] = {"smoke": 1, "cpu": 3, "day": 3, "paper": 5}


class NgramScores(Experiment):
    """A trial is one network."""

    name = "sequence-level-features/ngrams"
    title = "Scores of n-grams that are associated with a label, by their order"
    source = "Sun and Lu, Sequence-level features (2020), figures 3 and 5; they have no numbers"
    scales = tuple(SCALES)
    usual_hours = 0.05

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the networks seed by seed, the GRU's first."""
        corpora = _CORPORA if scale != "smoke" else ("negation",)
        listed = []
        for seed, encoder, corpus in product(range(_SEEDS[scale]), _ENCODERS, corpora):
            sizes = NEGATION_SIZES[scale] if corpus == "negation" else {"epochs": _EPOCHS[scale]}
            chosen = {**sizes, **_CHOICE, "encoder": encoder, "corpus": corpus, "seed": seed}
            listed.append(Trial(f"{_title(encoder, corpus)}, seed {seed}", chosen))
        return listed

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Find n-grams in the training texts, and score them."""
        chosen = trial.settings
        corpus, run = _train(chosen, setup)
        scores: dict[str, list[dict[str, list[float]]]] = {expansion: [] for expansion in _EXPANSIONS}
        for order in _ORDERS:
            ngrams = associated_ngrams(corpus.train, order, **{name: chosen[name] for name in _CHOICE})
            groups = {"positive": ngrams.positive, "negative": ngrams.negative}
            for expansion in _EXPANSIONS:
                scores[expansion].append(
                    {
                        label: ngram_scores(run, group, expansion).tolist() if group else []
                        for label, group in groups.items()
                    }
                )
        return {"scores": scores, "test_accuracy": float(run.metrics["test_accuracy"])}

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate how well scores predict labels, and draw them."""
        rows: list[Sequence[str | Number]] = []
        for title, mine in _by_network(results):
            for expansion, name in _EXPANSIONS.items():
                for order in _ORDERS:
                    if found := _groups(mine, expansion, order):
                        counts = (Number([len(groups[label]) for groups in found], digits=0) for label in _LABELS)
                        shares = (
                            Number([share(groups) for groups in found], digits=1, percent=True)
                            for share in (_correct_signs, _auc)
                        )
                        means = (Number([fmean(groups[label]) for groups in found]) for label in _LABELS)
                        rows.append((f"{title}, {name}", str(order), *counts, *shares, *means))
        columns = (
            "network, expansion", "n", "positive", "negative", "correct sign, %", "AUC, %", "mean, positive",
            "mean, negative",
        )  # fmt: skip
        title = (
            f"N-grams that end at least {_CHOICE['least']} training texts, {100 * _CHOICE['share']:.0f}% of them of "
            "one label; AUC: how often a positive one scores higher than a negative one (chance 50)"
        )
        drawn = {
            f"sequence-level-features-ngrams-{corpus}-{encoder}": partial(_draw, mine[0], _title(encoder, corpus))
            for encoder, corpus in product(_ENCODERS, _CORPORA)
            if (mine := where(results, encoder=encoder, corpus=corpus))
        }
        captions = seed_captions(drawn, "boxes", results)
        return Report([Table(title, columns, rows)], drawn, captions)

    def claims(self, results: Sequence[Result]) -> Mapping[str, bool | None]:
        """The paper, of a GRU's approximation: words and bigrams tell the label better than three or four words."""
        claims: dict[str, bool | None] = {}
        for title, trained in _by_network(where(results, encoder=_IN_PAPER)):
            mine = learned(trained, classes=2)
            right = {
                order: fmean(map(_correct_signs, found))
                for order in _ORDERS
                if (found := _groups(mine, "activation", order))
            }
            longer = [right[order] for order in (3, 4) if order in right]
            for order, name in ((1, "single words"), (2, "bigrams")):
                told = f"{title}: {name} have the right sign at least as often as n-grams of three or four words"
                if not mine:
                    claims[told] = None
                elif order in right and longer:
                    claims[told] = right[order] >= max(longer)
        return claims


class AssociatedNgrams(NamedTuple):
    """N-grams of one order, their words separated by spaces, the most frequent first."""

    positive: tuple[str, ...]
    negative: tuple[str, ...]


def associated_ngrams(examples: Iterable[Example], order: int, least: int, share: float, most: int) -> AssociatedNgrams:
    """Find the n-grams that end at least ``least`` texts, at least ``share`` of them with the same label.

    Keeps the ``most`` frequent n-grams of each label (1 positive, 0 negative) and ignores case. The paper does not
    say how it measures association, nor which threshold it uses; the share of a label is our choice.
    """
    seen: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for example in examples:
        words = tuple(token.lower() for token in example.tokens[-order:])
        # a token may contain a no-break space, as "2 1/2" does; the joined n-gram would then split into more words
        if len(words) == order and len((ngram := " ".join(words)).split()) == order:
            seen[example.label][ngram] += 1
    found: dict[int, list[str]] = {0: [], 1: []}
    total = seen[0] + seen[1]
    for ngram, count in sorted(total.items(), key=lambda item: (-item[1], item[0])):
        for label, ngrams in found.items():
            if count >= least and seen[label][ngram] >= share * count and len(ngrams) < most:
                ngrams.append(ngram)
    return AssociatedNgrams(tuple(found[1]), tuple(found[0]))


def _auc(groups: Mapping[str, Sequence[float]]) -> float:
    positive, negative = (groups[label] for label in _LABELS)
    labels = [True] * len(positive) + [False] * len(negative)
    return area_under_curve([*positive, *negative], labels) or 0.0


def _train(chosen: Mapping[str, Any], setup: TrialSetup) -> tuple[Classification, Run]:
    seed = int(chosen["seed"])
    if chosen["corpus"] == "negation":
        corpus = negation_corpus(chosen["train"], seed)
        return corpus, learn_negation(setup, corpus, chosen["encoder"], chosen["size"], chosen["epochs"], seed)
    corpus = load_cached(chosen["corpus"], Classification, setup.data)
    training = {"epochs": chosen["epochs"], "seed": seed}
    return corpus, train_once(setup, "classify", corpus, {"encoder": chosen["encoder"]}, training)


def _correct_signs(groups: Mapping[str, Sequence[float]]) -> float:
    right = [score > 0 for score in groups["positive"]] + [score < 0 for score in groups["negative"]]
    return fmean(right)


def _title(encoder: str, corpus: str) -> str:
    return f"{encoder.upper()}, {_CORPORA[corpus]}"


def _by_network(results: Sequence[Result]) -> Iterator[tuple[str, Sequence[Result]]]:
    for encoder, corpus in product(_ENCODERS, _CORPORA):
        if mine := where(results, encoder=encoder, corpus=corpus):
            yield _title(encoder, corpus), mine


def _groups(mine: Sequence[Result], expansion: str, order: int) -> list[Mapping[str, Sequence[float]]]:
    """Give the scores by label for every seed that has n-grams of this order for both labels."""
    found = (result["scores"][expansion][_ORDERS.index(order)] for result in mine)
    return [groups for groups in found if all(groups.values())]


def _draw(result: Result, title: str) -> Figure:
    figure, panels = grid(1, len(_EXPANSIONS), width=4.4)
    labels: dict[str, Any] = {}
    for panel, (expansion, name) in zip(panels, _EXPANSIONS.items(), strict=True):
        by_order = dict(zip(_ORDERS, result["scores"][expansion], strict=True))
        pair = [{order: found[label] for order, found in by_order.items() if found[label]} for label in _LABELS]
        labels = dict(zip((f"{label} n-grams" for label in _LABELS), draw_box_pairs(panel, pair), strict=True))
        panel.set_xticks(_ORDERS, [str(order) for order in _ORDERS])
        panel.set(title=f"{title}, {name}", xlabel="words in the n-gram", xlim=(0.5, 4.5))
    panels[0].set_ylabel("polarity score (logits)")
    shown = {label: box for label, box in labels.items() if box}
    figure.legend(list(shown.values()), list(shown), loc="outside lower center", ncols=2)
    return figure
