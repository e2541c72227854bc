"""Does "not bad" come out as a unit? Terms of n-grams and exact interaction indices of pairs of words.

The Shapley interaction index of two words is exact here: texts have at most ten words, and a network runs on all 2ⁿ
texts that are left when some of the words are deleted, or replaced by the blank token. The two ways to remove words
need not agree, so the table shows their agreement with each other as well. The output is the logit of "positive" less
that of "negative".

Two kinds of texts: sentences of SST-2's test part, and texts of our own with a negator or an intensifier before an
adjective. The second are made for the question, and are no sample of a language. What a score says of a pair stands in
``analyses/attribution_methods/pair_scores.py``; it was written down before any score of these networks was computed.
The controls "minus the first word's term" and "minus both words' terms" were added after the scores of two networks had
been seen: they know nothing of the pair itself.

The networks are three of ``ours/faithfulness`` that read forward. The index is our own short code, which the tests hold
to the definition, and to the package shapiq (1.4.1) where that is installed.

Source:
    Our own question; the index is that of Grabisch and Roubens (1999).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor

from unrolled.errors import ConvergenceError, UsageError
from unrolled.lab.papers.analyses.attribution_methods.explained_texts import Explained
from unrolled.lab.papers.analyses.attribution_methods.interaction_index import shapley_interactions, subset_outputs
from unrolled.lab.papers.analyses.attribution_methods.pair_scores import READINGS, expansion_pairs, rival_pairs
from unrolled.lab.papers.analyses.faithfulness.pair_agreement import (
    Matrices,
    of_one_length,
    rank_agreement,
    score_pairs,
    sign_agreement,
)
from unrolled.lab.papers.analyses.sentences.negated_pairs import planted_pairs
from unrolled.lab.papers.analyses.text_classifiers import KINDS, draw_texts, learn, read
from unrolled.lab.papers.framework.experiment import Experiment, Report, Result, Scale, Trial, TrialSetup, where
from unrolled.lab.papers.framework.table import MISSING, Number, Table

if TYPE_CHECKING:
    from unrolled.lab.models.classifier import Classifier
    from unrolled.lab.tasks.classify import Classify

__all__ = ["Interactions"]

_NETWORKS = ("SST-2, GRU, last", "SST-2, LSTM, last", "SST-2, 2-layer LSTM, mean")
_SMOKE = ("made-up, LSTM, last",)
_EXPANSIONS = ("secant", "shares", "path", "operating", "gates", "zero")
_RIVALS = (
    "the phrase alone", "contextual decomposition", "Hessian x input", "product of the words' terms",
    "minus the first word's term", "minus both words' terms", "random",
)  # fmt: skip
_REMOVALS = {"deletion": False, "<unk>": True}
_SCORES = (*(f"{each}, {reading}" for each, reading in product(_EXPANSIONS, READINGS)), *_RIVALS)
_INDICES = tuple(f"index by {removal}" for removal in _REMOVALS)
_SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"texts": 6, "draws": 10, "words": 7},
    "cpu": {"texts": 200, "draws": 500, "words": 10},
    "paper": {"texts": 1000, "draws": 1000, "words": 10},
}
"""``words``: the most in a text."""
_SEEDS: dict[Scale, int] = {"smoke": 1, "cpu": 3, "paper": 3}
_FEWEST = 3
_PAIRS = ("neighbours", "all pairs")
_SIGNS = {
    ("negators", _INDICES[0]): "negators: sign of the index by deletion",
    ("negators", _INDICES[1]): "sign of the index by <unk>",
    ("expected", _INDICES[0]): "sign of a unit",
    ("strongest", _INDICES[0]): "largest of all neighbours",
    ("intensifiers", _INDICES[0]): "intensifiers: sign of the index by deletion",
}
"""Columns of the table of planted pairs; the third and the fourth do not depend on an index."""


class Interactions(Experiment):
    """A trial is one network."""

    name = "ours/interactions"
    title = 'Interactions: does "not bad" come out as a unit?'
    source = "our own question"
    published = False

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List the networks, seed by seed."""
        networks, trials = _SMOKE if scale == "smoke" else _NETWORKS, []
        for seed, network in product(range(_SEEDS[scale]), networks):
            settings = {
                "network": network, "trained": dict(KINDS[network]), "expansions": list(_EXPANSIONS),
                "rivals": list(_RIVALS), **_SIZES[scale], "seed": seed,
            }  # fmt: skip
            trials.append(Trial(f"{network}, seed {seed}", settings))
        return trials

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train or load the network, compute the indices, and compare every score with them."""
        chosen = trial.settings
        corpus = read(chosen["trained"], setup)
        run = learn(chosen["trained"], corpus, chosen["seed"], setup)
        encode = cast("Classify", run.task).vocabulary.encode
        short = [each for each in corpus.test if len(each.tokens) <= chosen["words"]]
        sentences = [encode(text) for text in draw_texts(short, chosen["texts"], _FEWEST)]
        planted = planted_pairs()
        texts = [*sentences, *(encode(each.words) for each in planted)]
        batches = of_one_length(cast("Classifier", run.model.eval()), texts)
        setup.log(f"{len(sentences)} sentences and {len(planted)} texts of our own")
        indices = score_pairs(batches, _indices)
        scores, missing = dict(indices), {}
        for method in (*chosen["expansions"], *chosen["rivals"]):
            try:
                scores |= score_pairs(batches, partial(_scores, method=method))
            except (UsageError, ConvergenceError) as error:
                missing[method] = str(error)
                setup.log(f"{method}: {error}")
        count = len(sentences)
        measured: dict[str, dict[str, Any]] = {}
        for (name, found), (index, values) in product(scores.items(), indices.items()):
            ranks = rank_agreement(found[:count], values[:count], chosen["draws"])
            signs = sign_agreement(found[count:], values[count:], planted, chosen["draws"])
            measured.setdefault(name, {})[index] = {**ranks, **signs}
            setup.log(f"{name} with {index}: {ranks['neighbours'][0]:.3f}, signs {signs['negators'][0]:.2f}")
        return {
            "accuracy": run.metrics["test_accuracy"],
            "sentences": count,
            "pairs": _count_pairs(indices[_INDICES[0]][:count]),
            "planted": len(planted),
            "scores": measured,
            "missing": missing,
        }

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate for each network the correlations over sentences, and the signs at the planted pairs."""
        return Report(list(_tables(results)))


def _indices(explained: Explained) -> dict[str, Tensor]:
    """Compute the indices by both ways to remove words."""
    return {
        name: shapley_interactions(subset_outputs(explained, blank=blank))
        for name, blank in zip(_INDICES, _REMOVALS.values(), strict=True)
    }


def _scores(explained: Explained, method: str) -> dict[str, Tensor]:
    """Score pairs by a method; an expansion has several readings."""
    if method in _RIVALS:
        return {method: rival_pairs(explained, method)}
    return {f"{method}, {reading}": found for reading, found in expansion_pairs(explained, method).items()}


def _count_pairs(matrices: Matrices) -> int:
    return sum(len(each) * (len(each) - 1) // 2 for each in matrices)


def _cell(measured: Sequence[Mapping[str, Any]], index: str, name: str, *, percent: bool = False) -> str:
    """Show the mean of a measure over the seeds, and its interval at its mean."""
    found = [each[index][name] for each in measured]
    number = Number([each[0] for each in found], digits=0 if percent else 3, percent=percent)
    low, high = (Number([fmean(each[end] for each in found)], None, number.digits, percent) for end in (1, 2))
    return f"{number} ({low} to {high})"


def _tables(results: Sequence[Result]) -> Iterator[Table]:
    """Make two tables for each network, and one of the networks."""
    networks: list[Sequence[str | Number]] = []
    for network in dict.fromkeys(result.trial.settings["network"] for result in results):
        chosen = where(results, network=network)
        measured = {
            name: [result["scores"][name] for result in chosen]
            for name in (*_INDICES, *_SCORES)
            if all(name in result["scores"] for result in chosen)
        }
        yield _ranks(network, chosen[0], measured)
        yield _signs(network, chosen[0], measured)
        networks.append((network, Number([each["accuracy"] for each in chosen], digits=1, percent=True)))
    yield Table("Networks", ("network", "accuracy on test, %"), networks)


def _ranks(network: str, first: Result, measured: Mapping[str, Sequence[Mapping[str, Any]]]) -> Table:
    """Tabulate the correlations with both indices over the sentences."""
    places = list(product(_PAIRS, _INDICES))
    rows = [
        (name, *(MISSING if name == index else _cell(found, index, pairs) for pairs, index in places))
        for name, found in measured.items()
    ]
    of = f"{first['pairs']:,} pairs of {first['sentences']} sentences"
    columns = ("score of a pair", *(f"{pairs}, {index}" for pairs, index in places))
    return Table(f"{network}: rank correlation with the index, {of}, 95 %", columns, rows)


def _signs(network: str, first: Result, measured: Mapping[str, Sequence[Mapping[str, Any]]]) -> Table:
    """Tabulate the signs at the planted pairs."""
    rows = [
        (name, *(_cell(found, index, kind, percent=True) for kind, index in _SIGNS)) for name, found in measured.items()
    ]
    title = f"{network}: negated and intensified adjectives in {first['planted']} texts of our own, % of texts, 95 %"
    return Table(title, ("score of a pair", *_SIGNS.values()), rows)
