"""A table of the terms of adjectives, their negations and their double negations; the paper calls them polarity scores.

The term is wᵀ v of the n-gram that is the whole phrase, where w are the weights of "positive" minus those of
"negative". So it is a part of the difference of the two logits.

Source:
    Sequence-level features: how GRU and LSTM cells capture n-grams (2020), section 5.1 and table 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from rich.box import SIMPLE_HEAD
from rich.table import Table

from unrolled.lab.papers.analyses.polarity import ngram_scores, open_phrases
from unrolled.lab.papers.sequence_level_features.negation import BEFORE, PUBLISHED
from unrolled.report.formatting import magnitude

if TYPE_CHECKING:
    from torch import Tensor

    from unrolled.lab.training.run_folder import Run

__all__ = ["flips", "ngram_terms", "table"]

_NEGATIONS = tuple(BEFORE.values())
"""Words before the adjective; the paper calls the phrases tokens, negations and double negations."""


def ngram_terms(run: Run, adjectives: Sequence[str], expansion: str) -> Tensor:
    """Score each adjective alone, after one "not" and after two; shape (adjectives, 3)."""
    phrases = ([before + word for word in adjectives] for before in _NEGATIONS)
    return torch.stack([ngram_scores(run, each, expansion) for each in phrases], dim=1)


def flips(scores: Tensor) -> tuple[int, int]:
    """Count the adjectives whose term changes sign after "not", and of these the ones that change back after two."""
    alone, once, twice = scores.unbind(dim=1)
    flipped = alone * once < 0
    return int(flipped.sum()), int((flipped & (once * twice < 0)).sum())


def table(title: str, run: Run, adjectives: Mapping[str, Sequence[str]], expansions: Sequence[str]) -> Table:
    """Make a table of terms beside the published ones, with a row for each polarity and number of negations."""
    scores = {
        name: {polarity: ngram_terms(run, words, name) for polarity, words in adjectives.items()} for name in expansions
    }
    drawn = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 0))
    drawn.add_column(no_wrap=True)
    for name in ("the paper", *expansions):
        drawn.add_column(name, justify="right", no_wrap=True)
    for polarity, words in adjectives.items():
        published = [f"{score} ± {spread}" for score, spread in PUBLISHED[run.task.architecture.encoder][polarity]]
        for k, before in enumerate(_NEGATIONS):
            cells = [_spread(scores[name][polarity][:, k]) for name in expansions]
            drawn.add_row(f"{before}{polarity}" if before else f"{polarity} ({len(words)})", published[k], *cells)
        drawn.add_section()
    total = sum(map(len, adjectives.values()))
    counts = [[sum(pair) for pair in zip(*map(flips, scores[name].values()), strict=True)] for name in expansions]
    for k, label in enumerate(("reversed by not", "and restored")):
        drawn.add_row(label, "", *(f"{count[k]} of {total}" for count in counts))
    drawn.add_section()
    doubled = [_NEGATIONS[-1] + word for words in adjectives.values() for word in words]
    errors = [open_phrases(run, doubled, name).residual()[:, -1].mean() for name in expansions]
    drawn.add_row("error of the sum", "", *(magnitude(float(error)) for error in errors))
    return drawn


def _spread(scores: Tensor) -> str:
    return f"{scores.mean():.2f} ± {scores.std():.2f}"
