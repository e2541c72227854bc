"""A corpus that several trials in a row train on is read once."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from unrolled.lab.data.corpus import Corpus
from unrolled.lab.data.load import load_dataset

__all__ = ["load_once"]

C = TypeVar("C", bound=Corpus[object])


def load_once(name: str, kind: type[C], folder: Path | None) -> C:
    """Read a dataset, unless it is the one that was read last.

    Args:
        name: a member of ``unrolled.lab.data.datasets``.
        kind: the class of corpus wanted.
        folder: of the datasets; when None, the environment variable ``UNROLLED_DATA``.
    """
    corpus = _read(name, kind, folder)  # type: ignore[arg-type]  # a class is hashable
    assert isinstance(corpus, kind)
    return corpus


@lru_cache(maxsize=1)  # the last alone: a corpus of long texts fills a gigabyte
def _read(name: str, kind: type[Corpus[object]], folder: Path | None) -> Corpus[object]:
    return load_dataset(name, kind, folder)
