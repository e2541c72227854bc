"""BLEU, as sacrebleu computes it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from typing import TYPE_CHECKING

from unrolled.errors import ShapeError, UsageError

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

__all__ = ["BLEU_SIGNATURE", "bleu", "bleu_scorer"]


def _signature() -> str:
    try:
        version = metadata.version("sacrebleu")
    except metadata.PackageNotFoundError:
        version = "none installed"
    return f"nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:{version}"


BLEU_SIGNATURE = _signature()
"""sacrebleu's own signature of the settings: one reference, case kept, no tokenisation (``tok:none``), because the
corpus is already tokenised."""


def bleu_scorer() -> BLEU:
    """Load sacrebleu's scorer, which takes tokens as they are.

    Raises:
        UsageError: sacrebleu is not installed.
    """
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError:
        raise UsageError("BLEU needs sacrebleu; install it with: pip install 'unrolled[tasks]'") from None
    return BLEU(tokenize="none")


def bleu(translations: Sequence[Sequence[object]], references: Sequence[Sequence[object]]) -> float:
    r"""Compare translations with one reference each, over the whole corpus.

    .. math:: 100 \cdot \min(1, e^{1 - r/c}) \prod_{n=1}^{4} p_n^{1/4}

    with p_n the share of the translations' n-grams that occur in their reference, each as often as there at most, and c
    and r the total numbers of tokens of translations and references. Where no n-gram of a length occurs, sacrebleu
    counts half an occurrence, a quarter for the next such length, and so on; without any common word the result is 0.

    Args:
        translations: The tokens of each translation, as words or indices.
        references: The tokens of each reference.

    Returns:
        From 0 to 100.

    Raises:
        ShapeError: There are no translations, or not one reference for each.
        UsageError: sacrebleu is not installed.

    Source:
        Papineni et al. (2002), https://aclanthology.org/P02-1040; Post (2018), arXiv:1804.08771.

    Example:
        >>> round(bleu([["a", "man", "sleeps", "on", "grass"]], [["a", "man", "sleeps", "on", "snow"]]), 1)
        66.9
    """
    scorer = bleu_scorer()
    if not translations or len(translations) != len(references):
        raise ShapeError(
            f"there are {len(translations)} translations and {len(references)} references; "
            "expected one reference for each of at least one translation"
        )
    lines, expected = (
        [" ".join(str(token) for token in tokens) for tokens in texts] for texts in (translations, references)
    )
    return scorer.corpus_score(lines, [expected]).score
