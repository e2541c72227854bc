"""What a file format is: a way to read a user's own files, found by their suffix.

A member derives from :class:`Format` when it makes its corpus in a way of its own (running text is not held in
memory), from :class:`~unrolled.lab.data.row_formats.RowFormat` when its files are examples one after the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from unrolled.lab.data.corpus import Corpus
from unrolled.lab.data.text_files import without_packing

__all__ = ["Files", "Format"]


@dataclass(frozen=True)
class Files:
    """The files of a corpus. A split may be several files, one after the other, or, for parallel text, two.

    Splits without a file are taken from the training files.
    """

    train: Sequence[Path]
    dev: Sequence[Path] = ()
    test: Sequence[Path] = ()

    @property
    def name(self) -> str:
        """What the corpus is called: the first training file's name, without its suffixes."""
        return without_packing(self.train[0]).stem


class Format(ABC):
    """A way to write a corpus to files; each one is a file in ``unrolled.lab.data.formats``."""

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    """The endings of its files, ``.tsv``; none when it reads a file of any name that no other format reads."""
    description: ClassVar[str]
    """One line for a list of formats: what a line of it looks like."""
    kinds: ClassVar[tuple[type[Corpus[object]], ...]]
    """The classes of corpora that it can give."""

    @abstractmethod
    def read(self, files: Files, kind: type[Corpus[object]]) -> Corpus[object]:
        """Read a user's files.

        Args:
            files: the training files and, where there are some, those of dev and test.
            kind: one of ``kinds``.

        Returns:
            The corpus, an instance of ``kind``.

        Raises:
            DataError: for what the format does not allow: ``file:line: expected …, found …; hint``.
        """

    @abstractmethod
    def split(self, paths: Sequence[Path], kind: type[Corpus[object]], known: Sequence[str]) -> object:
        """Read all of some files as one split, for a model that was trained on another corpus.

        Args:
            paths: one file or more; of parallel text, two.
            kind: one of ``kinds``.
            known: the classes that the model was trained on, in their order; empty where there are none.

        Returns:
            A split of such a corpus.

        Raises:
            DataError: for what the format does not allow, or a class that is not known.
        """
