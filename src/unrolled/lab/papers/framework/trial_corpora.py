"""The corpus of a trial: a dataset, or, at scale smoke, one that is made up."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from unrolled.lab.data.corpus import Corpus
from unrolled.lab.papers.framework.corpora import SMALL, Sizes, load_cached
from unrolled.lab.papers.framework.synthetic_corpora import SYNTHETIC

__all__ = ["read_or_make_up"]

_MADE_UP = ("made up", "made-up")
"""How the settings of trials name a corpus that is made up, or begin to: a recorded trial keeps its settings."""
C = TypeVar("C", bound=Corpus[object])


def read_or_make_up(name: str, kind: type[C], folder: Path | None, sizes: Sizes = SMALL) -> C:
    """Read a dataset as :func:`load_cached` does; or make a corpus of these sizes up, if the name says so."""
    if not name.startswith(_MADE_UP):
        return load_cached(name, kind, folder)
    corpus = SYNTHETIC[kind](sizes, 0)
    assert isinstance(corpus, kind)
    return corpus
