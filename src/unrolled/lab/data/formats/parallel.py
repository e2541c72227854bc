"""Parallel text: two files of any name; line i of the second is the translation of line i of the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from unrolled.errors import UsageError
from unrolled.lab.data.corpus import Corpus, SentencePair, Translation
from unrolled.lab.data.formats.base import RowFormat, ValidRow
from unrolled.lab.data.reading import InvalidRow
from unrolled.lab.data.text_files import malformed, numbered_lines
from unrolled.lab.data.tokenise import line_tokeniser

__all__ = ["Parallel", "read_parallel"]

Tokeniser = Callable[[str], Sequence[str]]


def read_parallel(
    source: Path, target: Path, *tokenisers: Tokeniser
) -> Iterator[tuple[int, SentencePair] | InvalidRow]:
    """Read two files side by side; the tokenisers are for the lines of the source and of the target.

    Yields:
        Each pair, with its line's number; InvalidRow if a line is empty.

    Raises:
        DataError: If one file has fewer lines than the other.
    """
    for number, lines in enumerate(zip_longest(*map(_lines, (source, target))), start=1):
        tokens: list[tuple[str, ...]] = []
        for path, line, other, split in zip((source, target), lines, (target, source), tokenisers, strict=True):
            if line is None:
                hint = f"{other} has more lines; line i of one file is the translation of line i of the other"
                raise malformed(path, number, "a sentence", "the file's end", hint)
            tokens.append(tuple(split(line)))
        source_tokens, target_tokens = tokens
        if source_tokens and target_tokens:
            yield number, SentencePair(source_tokens, target_tokens)
        else:
            empty, other = (target, source) if source_tokens else (source, target)
            hint = f"remove the line here and in {other}"
            yield InvalidRow(
                empty, number, "without a sentence", malformed(empty, number, "a sentence", "an empty line", hint)
            )


def _lines(path: Path) -> Iterator[str]:
    return (line for _, line in numbered_lines(path))


class Parallel(RowFormat[SentencePair]):
    """A sentence a line; a split is two files, the language to translate from first."""

    name = "parallel"
    suffixes = ()
    description = "two files, a.de a.en: a sentence a line; split at spaces only if the name contains tok or bpe"
    kinds = (Translation,)
    examples = "pairs"
    side_by_side = True

    def rows(self, paths: Sequence[Path], kind: type[Corpus[Any]]) -> Iterator[ValidRow[SentencePair] | InvalidRow]:
        """Read each pair; UsageError if there are not two files."""
        if len(paths) != 2:
            named = ", ".join(map(str, paths))
            raise UsageError(
                f"{len(paths)} {'file' if len(paths) == 1 else 'files'} of parallel text ({named}); "
                "expected two: a.de a.en translates from the first to the second"
            )
        source, target = paths
        for found in read_parallel(source, target, line_tokeniser(source), line_tokeniser(target)):
            yield found if isinstance(found, InvalidRow) else ValidRow(source, *found)
