"""Whether a training has learned anything: if not, it tells nothing about what networks learn."""

from __future__ import annotations

from collections.abc import Sequence

from unrolled.lab.papers.framework.experiment import Result

__all__ = ["learned"]

_BEYOND_CHANCE = 0.2
"""The part of what a guess gets wrong that a network which has learned gets right, at least."""


def learned(results: Sequence[Result], classes: int, accuracy: str = "test_accuracy") -> list[Result]:
    """Keep the trainings that have learned to tell classes.

    Of two classes they get at least 60 % right, of four at least 40 %.
    """
    chance = 1 / classes
    return [each for each in results if each[accuracy] >= chance + _BEYOND_CHANCE * (1 - chance)]
