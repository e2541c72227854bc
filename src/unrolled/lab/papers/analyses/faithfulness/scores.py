"""The scores of methods of attribution over networks, texts and trainings, and differences of them with intervals.

A result is that of one network, one family of methods and one split, as ``ours/faithfulness`` stores it. Networks that
explain the same texts get the same resamples of them: what is hard in a text may be hard for all of these networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch

from unrolled.lab.papers.framework.bootstrap import interval
from unrolled.lab.papers.framework.experiment import Result, where
from unrolled.lab.papers.framework.table import MISSING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["by_seed", "difference", "mean_difference", "mean_score", "measured", "networks_of", "show_difference"]

_DRAWS = 1000

Difference = tuple[float, float, float]
"""A mean and the ends of its interval."""
Texts = tuple[str, int]
"""A corpus, and the number of words at which its texts are cut: networks that have both explain the same texts."""
Apart = tuple[Texts, torch.Tensor]
"""Some texts, and the difference of two methods on each of them."""
_SAME_TEXTS = {"sst2-sentences": "sst2"}
"""Corpora that differ from another one in their training texts only."""


def networks_of(results: Sequence[Result]) -> list[str]:
    """List the networks, in the order of the results."""
    return list(dict.fromkeys(result.trial.settings["network"] for result in results))


def by_seed(results: Sequence[Result], network: str, method: str, split: str = "test") -> dict[int, Mapping[str, Any]]:
    """Give the measures of a method on a network by the seed of its training."""
    return {
        result.trial.settings["seed"]: result["methods"][method]
        for result in where(results, network=network, split=split)
        if method in result["methods"]
    }


def measured(results: Sequence[Result], network: str, method: str) -> list[Mapping[str, Any]]:
    """Give the measures of a method on the test texts, seed by seed."""
    return list(by_seed(results, network, method).values())


def mean_score(results: Sequence[Result], network: str, method: str, split: str = "test") -> float | None:
    """Average the score of a method over texts and trainings; None where it was not measured."""
    found = by_seed(results, network, method, split).values()
    return fmean(fmean(each["scores"]) / 1000 for each in found) if found else None


def _average(found: Sequence[Mapping[str, Any]]) -> torch.Tensor:
    """Average the scores of each text over trainings, shape (texts,), float64."""
    return torch.tensor([each["scores"] for each in found], dtype=torch.float64).mean(dim=0) / 1000


def _explained_texts(results: Sequence[Result], network: str) -> Texts:
    """Find which texts a network explains; all of its results are of the same ones."""
    trained = (result.trial.settings["trained"] for result in where(results, network=network))
    (texts,) = {(_SAME_TEXTS.get(each["data"], each["data"]), each["words"]) for each in trained}
    return texts


def _apart(results: Sequence[Result], network: str, one: str, other: str, split: str = "test") -> Apart | None:
    """Subtract the scores of two methods, text by text, on the texts and the trainings that both have."""
    first, second = (by_seed(results, network, method, split) for method in (one, other))
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return None
    ours, theirs = (_average([found[seed] for seed in seeds]) for found in (first, second))
    count = min(len(ours), len(theirs))
    return _explained_texts(results, network), ours[:count] - theirs[:count]


@cache
def _draws(counts: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    """Draw places in sets of so many texts, each of shape (draws, texts): the same ones for every two methods."""
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randint(count, (_DRAWS, count), generator=generator) for count in counts)


def _resample(apart: Sequence[Apart]) -> Difference:
    """Average over texts, then over networks; for the interval draw anew the texts of each set of texts."""
    sets = list(dict.fromkeys((texts, len(each)) for texts, each in apart))
    draws = dict(zip(sets, _draws(tuple(count for _, count in sets)), strict=True))
    drawn = [each[draws[texts, len(each)]].mean(dim=1) for texts, each in apart]
    low, high = interval(torch.stack(drawn).mean(dim=0).tolist())
    return fmean(float(each.mean()) for _, each in apart), low, high


def difference(results: Sequence[Result], network: str, one: str, other: str, split: str = "test") -> Difference | None:
    """Compare the scores of two methods on the texts and the trainings that both have: the mean and its interval.

    None where they have no training in common.
    """
    apart = _apart(results, network, one, other, split)
    return None if apart is None else _resample([apart])


def mean_difference(results: Sequence[Result], one: str | Mapping[str, str], other: str) -> Difference | None:
    """Compare two methods over the networks that have both: the mean of the networks and its interval over texts.

    ``one`` may name a method for each network. None where no network has both.
    """
    chosen = dict.fromkeys(networks_of(results), one) if isinstance(one, str) else one
    found = [_apart(results, network, method, other) for network, method in chosen.items()]
    known = [each for each in found if each is not None]
    return _resample(known) if known else None


def show_difference(found: Difference | None) -> str:
    """Write a mean and its interval."""
    return MISSING if found is None else f"{found[0]:+.3f} ({found[1]:+.3f} to {found[2]:+.3f})"
