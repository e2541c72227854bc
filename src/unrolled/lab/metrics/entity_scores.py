"""Precision, recall and F1 of named entities.

An entity is right when its type, its first and its last token are: strict IOBES. A stretch of tags that is no whole
entity (a ``B-`` with no ``E-``, an ``E-`` of another type) is none, and is neither right nor wrong. conlleval, which
reads IOB, would make entities of such pieces; where all tags are well-formed the two agree.

Source:
    Tjong Kim Sang and De Meulder (2003), arXiv:cs/0306050, section 2.4; seqeval in its mode "strict".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from unrolled.errors import UsageError

__all__ = ["EntityScores", "entity_scorer", "entity_scores"]


class EntityScores(NamedTuple):
    """How well entities were found; each from 0 to 1, and 0 where there is nothing to divide by."""

    precision: float
    """The share of found entities that are right."""
    recall: float
    """The share of true entities that were found."""
    f1: float
    """Their harmonic mean."""


def entity_scorer() -> Callable[..., tuple[Any, Any, Any, Any]]:
    """Load what counts them.

    Returns:
        seqeval's function of truths and answers, which gives precision, recall, F1 and how many entities there are.

    Raises:
        UsageError: when seqeval is not installed.
    """
    try:
        from seqeval.metrics.v1 import precision_recall_fscore_support  # type: ignore[import-untyped]  # no stubs
        from seqeval.scheme import IOBES  # type: ignore[import-untyped]  # no stubs
    except ImportError as error:
        raise UsageError('entity F1 needs seqeval; install it with: pip install "unrolled[tasks]"') from error
    return partial(precision_recall_fscore_support, average="micro", scheme=IOBES, zero_division=0)


def entity_scores(truths: Sequence[Sequence[str]], answers: Sequence[Sequence[str]]) -> EntityScores:
    """Count the entities of all sentences together.

    Args:
        truths: the IOBES tags of each sentence.
        answers: those that were found, as many for each sentence.

    Returns:
        The scores.

    Raises:
        UsageError: when seqeval is not installed.

    Example:
        >>> entity_scores([["B-PER", "E-PER", "O"]], [["B-PER", "E-PER", "S-LOC"]]).precision
        0.5
    """
    precision, recall, f1, _ = entity_scorer()([list(tags) for tags in truths], [list(tags) for tags in answers])
    return EntityScores(float(precision), float(recall), float(f1))
