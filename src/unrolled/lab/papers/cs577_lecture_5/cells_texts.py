"""The texts of ``cells``: what a network learns, which properties a unit may detect, and a text of our own to draw."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from unrolled.lab.data.corpus import Characters
from unrolled.lab.data.datasets.character_texts import PythonSource
from unrolled.lab.data.load import load_dataset
from unrolled.lab.papers.analyses.sentences.text_properties import PROSE, PYTHON, prose_properties, python_properties
from unrolled.lab.papers.framework.experiment import TrialSetup
from unrolled.lab.papers.framework.synthetic_corpora import characters

__all__ = ["PROSE_FRAGMENT", "PYTHON_FRAGMENT", "TEXTS", "CharacterText", "one_package"]

PROSE_FRAGMENT = """\
"You cannot mean to leave tonight," said the old count, and he rose
from his chair. "The roads are under water, the bridge is gone; and
nobody, believe me, will be waiting for you at the other side."

She looked out of the window for a while before she answered him.
"Then I shall wait there myself," she said.
"""
PYTHON_FRAGMENT = '''\
def longest(words, limit=None):
    """Return the longest of some words (or None)."""
    best = None  # nothing has been seen yet
    for word in words:
        if limit is not None and len(word) > limit:
            continue
        elif best is None or (len(word) > len(best)):
            best = word
    # a word that is "too long" was passed over
    return {"word": best, "size": len(best or [])}
'''


class CharacterText(NamedTuple):
    """A training text, its properties, and a text of our own to draw."""

    title: str
    read: Callable[[TrialSetup], Characters]
    made_up: Callable[[], Characters]
    """Replaces it at scale smoke."""
    names: tuple[str, ...]
    properties: Callable[[str], dict[str, Tensor]]
    fragment: str


def one_package() -> Characters:
    """Read one small package of Python's standard library."""
    return PythonSource(library=Path(sysconfig.get_paths()["stdlib"]) / "wsgiref").read()


TEXTS = {
    "python": CharacterText(
        "Python's standard library",
        lambda setup: load_dataset("python", Characters, setup.data),
        one_package,
        PYTHON,
        python_properties,
        PYTHON_FRAGMENT,
    ),
    "prose": CharacterText(
        "War and Peace",
        lambda setup: load_dataset("war_and_peace", Characters, setup.data),
        characters,
        PROSE,
        prose_properties,
        PROSE_FRAGMENT,
    ),
}
