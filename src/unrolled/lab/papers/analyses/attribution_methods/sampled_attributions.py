"""Attributions from samples of texts with some words replaced by the blank token: captum's, one text at a time.

A word is a feature that is present or absent. Shapley sampling draws orders of the words; kernel SHAP and LIME fit a
linear model to the margins of random subsets.

Source:
    Castro et al. (2009), doi:10.1016/j.cor.2008.04.004; Lundberg and Lee (2017), arXiv:1705.07874; Ribeiro et al.
    (2016), arXiv:1602.04938.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from unrolled.lab.papers.analyses.attribution_methods.captum_methods import load_captum
from unrolled.lab.papers.analyses.attribution_methods.explained_texts import Explained

__all__ = ["kernel_shap", "lime", "shapley_sampling"]

_AT_ONCE = 256


def _of_each_text(explained: Explained, method: Callable[[Callable[[Tensor], Tensor], Tensor], Tensor]) -> Tensor:
    """Attribute each text's margin to its words; ``method`` takes a function of masks, and a mask of ones."""
    values = torch.zeros(explained.tokens.shape)
    for text in range(len(values)):
        one = explained.some(text, text + 1)
        length = int(one.lengths)
        torch.manual_seed(text)

        @torch.no_grad()
        def margins(present: Tensor, one: Explained = one) -> Tensor:
            rows = torch.zeros(len(present), dtype=torch.int64)
            copies = one.copies(one.tokens[rows], one.lengths[rows], rows)
            return copies.blanked(present == 0).margins()

        values[text, :length] = method(margins, torch.ones(1, length)).detach()[0].to(values)
    return values


def _all_blank(explained: Explained) -> Tensor:
    """Compute the margin of each text of blank tokens."""
    return explained.blanked(torch.ones_like(explained.tokens, dtype=torch.bool)).margins()


def shapley_sampling(explained: Explained, samples: int) -> tuple[Tensor, Tensor]:
    """Average what a word adds, over ``samples`` random orders; also return the margin of the blank text."""
    kind = load_captum().ShapleyValueSampling

    def method(margins: Callable[[Tensor], Tensor], ones: Tensor) -> Tensor:
        found: Tensor = kind(margins).attribute(ones, n_samples=samples, perturbations_per_eval=_AT_ONCE)
        return found

    return _of_each_text(explained, method), _all_blank(explained)


def _fitted(explained: Explained, kind: Any, samples: int, of_each_word: int = 0) -> Tensor:
    """Attribute by one of captum's linear models, fitted to ``samples`` subsets, and to more for each word."""

    def method(margins: Callable[[Tensor], Tensor], ones: Tensor) -> Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fit that has not converged is a fit nevertheless
            count = samples + of_each_word * ones.shape[1]
            found: Tensor = kind(margins).attribute(ones, n_samples=count, perturbations_per_eval=_AT_ONCE)
        return found

    return _of_each_text(explained, method)


def kernel_shap(explained: Explained, samples: int, of_each_word: int = 0) -> tuple[Tensor, Tensor]:
    """Fit Shapley values to subsets, drawn by Shapley's weights; also return the margin of the blank text.

    Their number is ``samples`` and ``of_each_word`` more for each word of the text: 2048 and 2 is the default of the
    package shap, which takes the smallest and largest subsets first, where captum draws all of them.
    """
    return _fitted(explained, load_captum().KernelShap, samples, of_each_word), _all_blank(explained)


def lime(explained: Explained, samples: int) -> Tensor:
    """Fit a sparse linear model to ``samples`` subsets, weighted by their similarity to the text."""
    return _fitted(explained, load_captum().Lime, samples)
