"""How much of a gate times a content is the content's, on texts: which p of ``shares`` ranks the words best.

The networks, the texts and the score are those of ``ours/faithfulness``, and the networks are trained again. Here p is
every quarter from 0 to 1. The dev texts of the first training choose p, without
their labels. Test texts of the same training and of a second one say what the choice is worth. On test texts other
methods stand beside it, and accounts of the whole model with the two largest p.

Source:
    Our own question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from unrolled.lab.papers.analyses.faithfulness.choices import choice_table
from unrolled.lab.papers.analyses.faithfulness.sizes import against_table, mean_table, missing_table
from unrolled.lab.papers.analyses.text_classifiers import OVER_TRAINED
from unrolled.lab.papers.framework.experiment import Experiment, Report, Result, Scale, Trial, TrialSetup, where
from unrolled.lab.papers.framework.table import Table
from unrolled.lab.papers.ours.faithfulness import Faithfulness

__all__ = ["ContentShareOfTexts"]

_PS = ("shares(0)", "shares(0.25)", "shares(0.5)", "shares", "shares(1)")
"""The default, p = 3/4, is written without a number."""
_DEFAULT = "shares"
_BESIDE = ("account, shares", "account, shares(1)", "secant", "integrated gradients, 32", "DeepLift")
"""What is measured on test texts as well."""
_SEEDS = (0, 1)


class ContentShareOfTexts(Experiment):
    """A trial is one network with every p, on dev or test texts."""

    name = "ours/content-share-of-texts"
    title = "The share p of the expansion shares: which p ranks the words of a text"
    source = "our own question"
    published = False

    def trials(self, scale: Scale) -> Sequence[Trial]:
        """Take the networks and texts of ``ours/faithfulness``: dev texts for the first training only."""
        named = {}
        for trial in Faithfulness().trials(scale):
            if trial.settings["family"] == "expansions" and trial.settings["network"] not in OVER_TRAINED:
                named[trial.settings["network"], trial.settings["split"]] = trial.settings
        listed = []
        for seed, split in ((0, "dev"), *((seed, "test") for seed in _SEEDS)):
            for network in dict.fromkeys(name for name, _ in named):
                methods = list(_PS if split == "dev" else (*_PS, *_BESIDE))
                changed = {"methods": methods, "family": "p of shares", "stable": 0, "seed": seed}
                listed.append(Trial(f"{network}: {split}, seed {seed}", {**named[network, split], **changed}))
        return listed

    def run(self, trial: Trial, setup: TrialSetup) -> Mapping[str, Any]:
        """Train or load the network, and measure every p."""
        return Faithfulness().run(trial, setup)

    def report(self, results: Sequence[Result], scale: Scale) -> Report:
        """Give the scores of every p on dev and test, the choice, and its distance to the default and to others."""
        dev, test = (where(results, split=split) for split in ("dev", "test"))
        tables: list[Table] = []
        if dev:
            tables.append(mean_table(dev, _PS, "Dev texts of the first training", "dev"))
        if test:
            tables.append(mean_table(test, (*_PS, *_BESIDE), "Test texts, means over trainings"))
            of_seeds = {f"training {seed + 1}": of_seed for seed in _SEEDS if (of_seed := where(test, seed=seed))}
            if len(of_seeds) > 1:
                tables.append(_against_default(test, "mean of both trainings"))
            tables.extend(_against_default(of_seed, training) for training, of_seed in of_seeds.items())
        if choice := choice_table(results, _PS, (_DEFAULT,)):
            tables.append(choice)
        if missing := missing_table(results):
            tables.append(missing)
        return Report(tables)


def _against_default(results: Sequence[Result], trainings: str) -> Table:
    table = against_table(results, _DEFAULT, [method for method in (*_PS, *_BESIDE) if method != _DEFAULT])
    return replace(table, title=f"{table.title} ({trainings})")
