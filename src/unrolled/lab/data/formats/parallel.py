"""Parallel text: two files of any name, line i of one the translation of line i of the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from unrolled.errors import UsageError
from unrolled.lab.data.corpus import Corpus, Pair, Translation
from unrolled.lab.data.line_tokenisers import cutter
from unrolled.lab.data.parallel import read_parallel
from unrolled.lab.data.row_formats import Row, RowFormat

__all__ = ["Parallel"]


class Parallel(RowFormat[Pair]):
    """A sentence a line; a split is two files, first the language that is translated."""

    name = "parallel"
    suffixes = ()
    description = (
        "two files, a.de a.en: a sentence a line; with tokens separated by spaces when the name says tok or bpe"
    )
    kinds = (Translation,)

    def rows(self, paths: Sequence[Path], kind: type[Corpus[Any]]) -> Iterator[Row[Pair]]:  # one kind
        """Read the pairs of one split; see :meth:`RowFormat.rows`.

        Args:
            paths: the split's files.
            kind: of translations.

        Yields:
            Each pair.

        Raises:
            UsageError: when there are not two files.
        """
        if len(paths) != 2:
            named = ", ".join(map(str, paths))
            raise UsageError(
                f"{len(paths)} {'file' if len(paths) == 1 else 'files'} of parallel text ({named}); "
                "expected two: a.de a.en translates from the first to the second"
            )
        source, target = paths
        for number, pair in read_parallel(source, target, cutter(source), cutter(target)):
            yield Row(source, number, pair)

    def corpus(
        self,
        name: str,
        kind: type[Corpus[Any]],  # one kind
        train: Sequence[Pair],
        dev: Sequence[Pair],
        test: Sequence[Pair],
    ) -> Translation:
        """Make the corpus.

        Args:
            name: what it is called.
            kind: of translations.
            train: its pairs.
            dev: its pairs.
            test: its pairs.

        Returns:
            The corpus.
        """
        return Translation(name=name, train=tuple(train), dev=tuple(dev), test=tuple(test))
