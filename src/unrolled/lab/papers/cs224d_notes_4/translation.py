"""The notes' five extensions of a translator, each alone and all together: German captions into English.

The base is the notes' first model: one network for both languages, whose decoder reads nothing but its own state. Each
extension is a switch of the task ``translate``. Extension IV needs I, as a decoder cannot read both ways; it is held
against I. Where the notes are silent:

- the cell: GRU, and the plain network of equations 23 and 24; layers of extension III: two;
- the base's first decoder input: zeros, as the word before a sentence's first;
- the corpus: Multi30k; the notes' own example, too, is from German into English.

BLEU is of greedy translations. A base that reads nothing says nearly the same for every caption; where BLEU is low,
perplexity of the right translation tells more. At scale cpu there are fewer pairs, states of 96 and few passes.

Source:
    CS 224D, lecture notes IV (2015), section 2.4, equations 23 to 27.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from unrolled.lab.data.corpus import Translation
from unrolled.lab.data.load import load_dataset
from unrolled.lab.papers.framework.experiment import Bench, Experiment, Report, Result, Scale, Trial, where
from unrolled.lab.papers.framework.synthetic_corpora import translations
from unrolled.lab.papers.framework.table import Number, Table
from unrolled.lab.papers.framework.trial_training import figures, learn_once

__all__ = ["FiveExtensions"]

_OFF = {"separate": False, "fed": False, "layers": 1, "bidirectional": False, "reverse": False}
_I = {"separate": True}
_II = {"fed": True}
_III = {"layers": 2}
_IV = {"bidirectional": True}
_V = {"reverse": True}


@dataclass(frozen=True)
class _Variant:
    told: str
    switches: Mapping[str, Any]
    against: str = ""
    """What it is compared with."""


_BASE = "base"
_VARIANTS = (
    _Variant("all five", {**_I, **_II, **_III, **_IV, **_V}, _BASE),
    _Variant(_BASE, {}),
    _Variant("II: the decoder reads c and the previous word", _II, _BASE),
    _Variant("I: weights of its own for the decoder", _I, _BASE),
    _Variant("I and IV: the encoder reads both ways", {**_I, **_IV}, "I: weights of its own for the decoder"),
    _Variant("V: the source reversed", _V, _BASE),
    _Variant("III: two layers", _III, _BASE),
)
_CELLS = ("gru", "rnn")
_SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {
        "seeds": 1,
        "data": "made up",
        "pairs": 40,
        "model": {"hidden": 6, "embedding": 6, "min_count": 1},
        "training": {"epochs": 1, "batch": 16},
    },
    "cpu": {
        "seeds": 1,
        "data": "multi30k",
        "pairs": 8000,
        "model": {"hidden": 96, "embedding": 96, "dropout": 0.1},
        "training": {"epochs": 4, "batch": 32, "lr": 0.003},
    },
    "paper": {
        "seeds": 3,
        "data": "multi30k",
        "pairs": None,
        "model": {"hidden": 256, "embedding": 256},
        "training": {"epochs": 12},
    },
}


class FiveExtensions(Experiment):
    """One translator a trial."""

    name = "cs224d-notes-4/translation"
    title = "Five extensions of a translator, one by one"
    source = "CS 224D, lecture notes IV, section 2.4; the notes have no figures of it"

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """List all variants of the GRU, all five together first; then those of the plain network."""
        sizes = _SIZES[scale]
        return [
            Trial(
                f"{cell}, {variant.told}, seed {seed}",
                {
                    "variant": variant.told,
                    "data": sizes["data"],
                    "pairs": sizes["pairs"],
                    "model": {**sizes["model"], **_OFF, **variant.switches, "encoder": cell},
                    "training": {**sizes["training"], "seed": seed},
                },
            )
            for seed, cell, variant in product(range(sizes["seeds"]), _CELLS, _VARIANTS)
        ]

    def run(self, trial: Trial, bench: Bench) -> Mapping[str, Any]:
        """Train, translate the test captions and compare."""
        chosen = trial.settings
        made_up = chosen["data"] == "made up"
        corpus = translations() if made_up else load_dataset(chosen["data"], Translation, bench.data)
        if chosen["pairs"]:
            corpus = corpus.sample(chosen["pairs"])
        return figures(learn_once(bench, "translate", corpus, chosen["model"], chosen["training"]))

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Tabulate each extension beside what it extends."""
        tables = []
        for cell in _CELLS:
            rows: list[Sequence[str | Number]] = []
            for variant in sorted(_VARIANTS, key=_place):
                if chosen := _of(results, cell, variant.told):
                    values = ("dev_bleu", "test_bleu", "dev_perplexity", "test_perplexity")
                    rows.append(
                        (
                            variant.told,
                            Number([chosen[0]["parameters"] / 1000], digits=0),
                            *(Number([each[value] for each in chosen], digits=1) for value in values),
                        )
                    )
            if rows:
                columns = ("", "thousand parameters", "dev BLEU", "test BLEU", "dev perplexity", "test perplexity")
                tables.append(Table(f"{_SIZES[scale]['data']}, {cell}", columns, rows))
        return Report(tables)


def _place(variant: _Variant) -> int:
    """The order of a table: the base, the extensions, all of them."""
    order = [_BASE, "I:", "II:", "III:", "I and IV:", "V:", "all five"]
    return next(place for place, begins in enumerate(order) if variant.told.startswith(begins))


def _of(results: Sequence[Result], cell: str, variant: str) -> list[Result]:
    chosen = where(results, variant=variant)
    return [result for result in chosen if result.trial.settings["model"]["encoder"] == cell]
