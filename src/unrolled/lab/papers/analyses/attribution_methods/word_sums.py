"""Scores of phrases inside sentences by attributions to words: a phrase has the sum of its words' attributions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from unrolled.lab.papers.analyses.attribution_methods.explained_texts import batch_texts
from unrolled.lab.papers.analyses.attribution_methods.labelled_phrases import LabelledPhrases, Texts
from unrolled.lab.papers.analyses.attribution_methods.phrase_scores import PolarityModel
from unrolled.lab.papers.analyses.attribution_methods.token_attributions import attributor

__all__ = ["word_sum_scores"]


def word_sum_scores(reader: PolarityModel, phrases: LabelledPhrases, method: str, *, to_the_end: bool) -> Tensor:
    """Score each phrase by the sum of its words' attributions, shape (phrases,).

    ``method`` is one of ``token_attributions.py``. The polarity attributed is that of the whole sentence if
    ``to_the_end``, else of the sentence up to the phrase's end.
    """
    find = attributor(method)

    def attributions(texts: Texts) -> Iterator[tuple[Tensor, Tensor]]:
        for which, explained in batch_texts(reader.model, [reader.vocabulary.encode(text) for text in texts]):
            # the margin of "positive", the second class of two, is the polarity
            positive = replace(explained, classes=torch.ones_like(explained.classes))
            yield which, find(positive).values

    return phrases.sums(attributions, to_the_end=to_the_end)
