"""The corpus of a trial: a dataset, or, at scale smoke, one that is made up."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from unrolled.lab.data.corpus import Corpus, Relations, Tagging
from unrolled.lab.papers.framework.corpora import SMALL, Sizes, load_cached
from unrolled.lab.papers.framework.synthetic_corpora import SYNTHETIC, entities, relations

__all__ = ["read_entities", "read_or_make_up", "read_relations"]

_MADE_UP = ("made up", "made-up")
"""How the settings of trials name a corpus that is made up, or begin to: a recorded trial keeps its settings."""
_FEW: Sizes = (32, 16, 16)
C = TypeVar("C", bound=Corpus[object])


def read_or_make_up(name: str, kind: type[C], folder: Path | None, sizes: Sizes = SMALL) -> C:
    """Read a dataset as :func:`load_cached` does; or make a corpus of these sizes up, if the name says so."""
    if not name.startswith(_MADE_UP):
        return load_cached(name, kind, folder)
    corpus = SYNTHETIC[kind](sizes, 0)
    assert isinstance(corpus, kind)
    return corpus


def read_entities(made_up: bool, folder: Path | None) -> Tagging:
    """Read the named entities of CoNLL-2003, or make a few up."""
    return entities(_FEW) if made_up else load_cached("conll2003", Tagging, folder)


def read_relations(made_up: bool, folder: Path | None) -> Relations:
    """Read the relations of SemEval-2010, each in both directions, or make a few up."""
    return relations(_FEW) if made_up else load_cached("semeval2010", Relations, folder)
