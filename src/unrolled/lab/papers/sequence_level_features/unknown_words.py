"""Perplexities of a text whose token ``<unk>`` is one token or three: how table 3 may have been counted.

In table 3, perplexities of the Penn Treebank and WikiText-2 on dev are 1.14 to 1.18 times those on test, and a network
of 128 units has 77 on the treebank, where a later paper of the authors prints 110 for 512 units. The paper reads its
texts with torchtext and names no tokenizer. One that torchtext offers, spaCy's, splits ``<unk>`` into ``<``, ``unk``
and ``>``. The second and the third follow from the first, so a perplexity that counts them is lower, and lowest where
unknown words are most: they are 4.7 % of the treebank's dev text and 5.8 % of its test text. WikiText-103 has the dev
and test texts of WikiText-2 with a vocabulary eight times as large, and there the published ratio is 1.03 to 1.04.

So a GRU trains on the treebank as it is and on one with three tokens, on the latter without dropout as well, as all
cells of table 3 do. Their perplexities, and the published ones, are given for a token and for a word of the text as it
is::

    perplexity of a word = (perplexity of a token) ** (tokens / words)

Source:
    Sun and Lu, Sequence-level features (2020), section 5.2 and table 3; the later paper: Sun and Lu, Implicit n-grams
    (2022), table 5. The tokenizer: https://github.com/pytorch/text/issues/653.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from unrolled.lab.data.corpus import Stream, Words
from unrolled.lab.data.vocabulary import UNKNOWN_WORD
from unrolled.lab.papers.framework.experiment import (
    SCALES,
    SPLITS,
    Experiment,
    Report,
    Result,
    Scale,
    Trial,
    TrialSetup,
)
from unrolled.lab.papers.framework.table import Number, Table, cell
from unrolled.lab.papers.framework.trial_corpora import read_or_make_up
from unrolled.lab.papers.framework.trial_training import train_and_measure
from unrolled.lab.papers.sequence_level_features.table3 import PUBLISHED

__all__ = ["PerplexityByToken", "split_unknown"]

_PARTS = ("<", "unk", ">")


class _Training(NamedTuple):
    cell: str
    tokens: int
    """How many an unknown word counts."""
    dropout: float
    """The paper does not state it."""


_ROWS = {
    "GRU, one token": _Training("gru", 1, 0.2),
    "GRU, three tokens": _Training("gru", 3, 0.2),
    "GRU, three tokens, no dropout": _Training("gru", 3, 0.0),
    "LSTM, three tokens, no dropout": _Training("lstm", 3, 0.0),
    "simplified GRU, three tokens, no dropout": _Training("simplified_gru", 3, 0.0),
    "approximate GRU, three tokens, no dropout": _Training("approx_gru", 3, 0.0),
    "approximate LSTM, three tokens, no dropout": _Training("approx_lstm", 3, 0.0),
    "simplified LSTM, three tokens, no dropout": _Training("simplified_lstm", 3, 0.0),
    "GRU variant, three tokens, no dropout": _Training("gru_variant", 3, 0.0),
    "LSTM variant, three tokens, no dropout": _Training("lstm_variant", 3, 0.0),
}
_CORPORA = {"ptb": "PTB", "wikitext2": "WikiText-2"}
_SIZES: dict[Scale, dict[str, Any]] = {  # those of table 3
    "smoke": {"corpus": "made-up", "epochs": 2, "hidden": 8, "adaptive": "off", "batch": 8, "counted": ["made-up"]},
    "cpu": {"corpus": "ptb", "epochs": 2, "hidden": 128, "adaptive": "on", "batch": 20, "counted": [*_CORPORA]},
    "day": {"corpus": "ptb", "epochs": 10, "hidden": 128, "adaptive": "auto", "batch": 20, "counted": [*_CORPORA]},
    "paper": {"corpus": "ptb", "epochs": 40, "hidden": 128, "adaptive": "auto", "batch": 20, "counted": [*_CORPORA]},
}


class PerplexityByToken(Experiment):
    """A trial is one training of a network."""

    name = "sequence-level-features/unknown-words"
    title = "Perplexities of a text whose token for unknown words is one token or three"
    source = "Sun and Lu, Sequence-level features (2020), section 5.2 and table 3"
    compared_columns = ("a token, dev", "a token, test", "a token, dev / test")
    scales = tuple(SCALES)
    usual_hours = 0.2

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List a GRU on both texts, then the trainings without dropout."""
        return [Trial(_title(name), _settings(row, scale)) for name, row in _ROWS.items()]

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train, measure on dev and test, and count how many tokens three for an unknown word make of a word."""
        chosen = trial.settings
        original = read_or_make_up(chosen["corpus"], Words, setup.data)
        corpus = original if chosen["tokens"] == 1 else split_unknown(original)
        model = {name: chosen[name] for name in ("hidden", "dropout", "adaptive")}
        training = {name: chosen[name] for name in ("epochs", "batch", "seed")}
        model = {**model, "encoder": chosen.get("encoder", "gru"), "embedding": chosen["hidden"]}
        found = train_and_measure(setup, "lm", corpus, model, training)
        return {
            **found,
            "tokens_per_word": {name: _lengths(read_or_make_up(name, Words, setup.data)) for name in chosen["counted"]},
        }

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Compare with the published perplexities, and give those of all cells for a word, if they count three."""
        title = f"Perplexity on PTB, counting <eos>, where {UNKNOWN_WORD} is one token or three"
        columns = (f"a {unit}, {split}" for unit, split in product(("token", "word"), SPLITS))
        rows: list[Sequence[str | Number]] = [
            (name, *_cells(row, result))
            for name, row in _ROWS.items()
            for result in results
            if result.trial.settings == _settings(row, scale)
        ]
        tables = [Table(title, (f"cell, {UNKNOWN_WORD} as", *columns, "a token, dev / test"), rows)]
        lengths = results[0]["tokens_per_word"] if results else {}
        if lengths.keys() == _CORPORA.keys():
            title = (
                f"Published perplexities of a token, in brackets, and those of a word if {UNKNOWN_WORD} counts three"
            )
            columns = (f"{_CORPORA[corpus]}, {split}" for corpus, split in product(lengths, SPLITS))
            tables.append(Table(title, ("cell", *columns), _published_rows(lengths)))
        return Report(tables)


def _title(row: str) -> str:
    """Name the trial of a row."""
    cell, _, text = row.partition(", ")
    return f"{cell}, {UNKNOWN_WORD} as {text}"


def _settings(row: _Training, scale: Scale) -> dict[str, Any]:
    """Return the settings of a row's trial; results of a GRU are recorded without its name."""
    named = {} if row.cell == "gru" else {"encoder": row.cell}
    return {**_SIZES[scale], "seed": 0, "dropout": row.dropout, "tokens": row.tokens, **named}


def split_unknown(corpus: Words) -> Words:
    """Return the text with ``<unk>`` as the three tokens ``<``, ``unk`` and ``>``."""
    changed = corpus.map_splits(lambda text: Stream(partial(_split_lines, text)))
    return replace(changed, name=f"{corpus.name} split")


def _split_lines(text: Stream) -> Iterator[Sequence[str]]:
    for line in text:
        yield [part for token in line for part in (_PARTS if token == UNKNOWN_WORD else (token,))]


def _lengths(corpus: Words) -> dict[str, float]:
    """Count the tokens of a word on dev and test."""
    split = split_unknown(corpus)
    return {name: _count(getattr(split, name)) / _count(getattr(corpus, name)) for name in SPLITS}


def _count(text: Stream) -> int:
    return sum(map(len, text))


def _cells(row: _Training, result: Result) -> list[Number]:
    """Give perplexities of a token and of a word, and the first two as a ratio, ours and the published ones."""
    corpus = result.trial.settings["corpus"]
    lengths = {"dev": 1.0, "test": 1.0} if row.tokens == 1 else result["tokens_per_word"][corpus]
    theirs = _both_units(PUBLISHED[row.cell]["ptb"], lengths)
    ran = "diverged" not in result.values
    ours = _both_units((result["dev_perplexity"], result["test_perplexity"]), lengths) if ran else [None] * len(theirs)
    return [
        cell(Number(() if mine is None else [mine], each), ran=True) for mine, each in zip(ours, theirs, strict=True)
    ]


def _both_units(perplexities: tuple[float | None, float], lengths: Mapping[str, float]) -> tuple[float | None, ...]:
    """Return perplexities of a token on dev and test, of a word, and dev / test; the paper lacks some of dev."""
    dev, test = perplexities
    of_word = None if dev is None else dev ** lengths["dev"]
    return dev, test, of_word, test ** lengths["test"], None if dev is None else dev / test


def _published_rows(lengths: Mapping[str, Mapping[str, float]]) -> list[Sequence[str | Number]]:
    rows: list[Sequence[str | Number]] = []
    for name, published in PUBLISHED.items():
        numbers = [
            Number([each ** of_split[split]] if each else (), each)
            for corpus, of_split in lengths.items()
            for each, split in zip(published[corpus], SPLITS, strict=True)
        ]
        rows.append((name.replace("_", " "), *numbers))
    return rows
