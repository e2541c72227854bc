"""Parallel text: two files of any name, line i of one the translation of line i of the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from unrolled.errors import UsageError
from unrolled.lab.data.corpus import Corpus, SentencePair, Translation
from unrolled.lab.data.formats.base import Row, RowFormat
from unrolled.lab.data.text_files import iter_lines, malformed
from unrolled.lab.data.tokenise import line_tokeniser

__all__ = ["Parallel", "read_parallel"]


class Parallel(RowFormat[SentencePair]):
    """A sentence a line; a split is two files, first the language that is translated."""

    name = "parallel"
    suffixes = ()
    description = (
        "two files, a.de a.en: a sentence a line; with tokens separated by spaces when the name says tok or bpe"
    )
    kinds = (Translation,)

    def rows(self, paths: Sequence[Path], kind: type[Corpus[Any]]) -> Iterator[Row[SentencePair]]:  # one kind
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
        for number, pair in read_parallel(source, target, line_tokeniser(source), line_tokeniser(target)):
            yield Row(source, number, pair)

    def corpus(
        self,
        name: str,
        kind: type[Corpus[Any]],  # one kind
        train: Sequence[SentencePair],
        dev: Sequence[SentencePair],
        test: Sequence[SentencePair],
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


Cut = Callable[[str], Sequence[str]]


def read_parallel(source: Path, target: Path, cut_source: Cut, cut_target: Cut) -> Iterator[tuple[int, SentencePair]]:
    """Read two files side by side.

    Args:
        source: the file of the language that is translated, plain or packed.
        target: the file of the other.
        cut_source: cuts a line of the one into tokens.
        cut_target: cuts a line of the other.

    Yields:
        Each pair, with its line's number.

    Raises:
        DataError: when a line is empty, or one file has fewer lines than the other.
    """
    for number, lines in enumerate(zip_longest(iter_lines(source), iter_lines(target)), start=1):
        tokens = []
        for path, line, other, cut in zip(
            (source, target), lines, (target, source), (cut_source, cut_target), strict=True
        ):
            if line is None:
                hint = f"{other} has more lines; line i of one file is the translation of line i of the other"
                raise malformed(path, number, "a sentence", "the file's end", hint)
            tokens.append(tuple(cut(line)))
            if not tokens[-1]:
                raise malformed(path, number, "a sentence", "an empty line", f"leave the line out here and in {other}")
        yield number, SentencePair(*tokens)
