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
"""How it is computed, in sacrebleu's own words: one reference, case kept, no tokenisation (``tok:none``), for
sentences come as the corpus cut them."""


def bleu_scorer() -> BLEU:
    """Load what computes it.

    Returns:
        sacrebleu's scorer, which takes tokens as they are.

    Raises:
        UsageError: when sacrebleu is not installed.
    """
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError:
        raise UsageError("BLEU needs sacrebleu; expected it from: pip install 'unrolled[tasks]'") from None
    return BLEU(tokenize="none")


def bleu(said: Sequence[Sequence[object]], right: Sequence[Sequence[object]]) -> float:
    r"""Compare translations with others of the same sentences, over the whole corpus.

    .. math:: 100 \cdot \min(1, e^{1 - r/c}) \prod_{n=1}^{4} p_n^{1/4}

    with p_n the share of the n-grams that occur in the reference too, c and r the numbers of tokens.

    Args:
        said: the tokens of each translation: words, or numbers that stand for them.
        right: the tokens of each reference.

    Returns:
        From 0 to 100.

    Raises:
        ShapeError: when there are not as many references as translations, or none.
        UsageError: when sacrebleu is not installed.

    Source:
        Papineni et al. (2002), https://aclanthology.org/P02-1040; Post (2018), arXiv:1804.08771.

    Example:
        >>> round(bleu([["a", "man", "sleeps", "on", "grass"]], [["a", "man", "sleeps", "on", "snow"]]), 1)
        66.9
    """
    scorer = bleu_scorer()
    if not said or len(said) != len(right):
        raise ShapeError(f"{len(said)} translations and {len(right)} references came; expected as many, and not none")
    # Whatever splits at white space cannot take a token for two: spaces inside tokens are not kept apart otherwise.
    lines, references = ([" ".join(str(token) for token in tokens) for tokens in texts] for texts in (said, right))
    return scorer.corpus_score(lines, [references]).score
