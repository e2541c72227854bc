"""A text that need not fit into memory, in numbers: counted in one pass, looked up in another.

Memory holds a line, some thousand indices and the counts of at most a million different tokens, however long the text
is. Beyond a million, counts are put aside in sorted runs, which are merged in the end; the indices go to a file. Both
files are without a name in the folder for temporary files (``TMPDIR``), so that nothing is left of them when their
owner goes, however it ends.
"""

from __future__ import annotations

import heapq
import json
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby
from typing import IO

import numpy as np
import torch
from torch import Tensor

from unrolled.errors import DataError, FileError
from unrolled.lab.data.vocabulary import Vocabulary

__all__ = ["build_vocabulary", "count_tokens", "encode_stream"]

_MOST_COUNTED = 2**20
_MOST_LOOKED_UP = 2**16

Count = tuple[str, int]


def build_vocabulary(
    lines: Iterable[Sequence[str]], *, min_count: int = 1, most: int | None = None, lowercase: bool = False
) -> Vocabulary:
    """Gather the words of a long text, in one pass.

    Args:
        lines: its tokens, line by line.
        min_count: how often a word must occur to be known.
        most: how many words to know, the most frequent; all of them when left out.
        lowercase: whether case is ignored.

    Returns:
        The same vocabulary as :meth:`Vocabulary.from_texts` gives of the same text. ``<unk>`` in the text is the
        vocabulary's own.

    Example:
        >>> gather([["a", "rose", "is", "a", "<unk>"]], most=2).words
        ('<pad>', '<unk>', 'a', 'is')
    """
    with count_tokens((token.lower() for token in line) if lowercase else line for line in lines) as counts:
        return Vocabulary.from_counts(counts, min_count=min_count, most=most, lowercase=lowercase)


@contextmanager
def count_tokens(lines: Iterable[Iterable[str]], *, at_once: int = _MOST_COUNTED) -> Iterator[Iterator[Count]]:
    """Count the tokens of a long text.

    Args:
        lines: its tokens, line by line.
        at_once: how many different tokens memory may hold.

    Yields:
        Every token once, and how often it occurs; to be read once, inside the ``with`` block.
    """
    with ExitStack() as open_runs:
        runs: list[IO[str]] = []
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(line)
            if len(counts) > at_once:
                runs.append(open_runs.enter_context(_put_aside(counts)))
                counts.clear()
        if not runs:
            yield iter(counts.items())
            return
        parts: list[Iterable[Count]] = [map(_read_count, run) for run in runs]
        merged = heapq.merge(*parts, sorted(counts.items()))
        yield ((token, sum(count for _, count in same)) for token, same in groupby(merged, key=lambda pair: pair[0]))


def _put_aside(counts: Counter[str]) -> IO[str]:
    """Write counts to a file, tokens in order; JSON, since a token may be a line's end."""
    with _room():
        run = tempfile.TemporaryFile("w+", encoding="ascii")  # noqa: SIM115  # closed by whom it is given to
        for pair in sorted(counts.items()):
            run.write(json.dumps(pair) + "\n")
        run.seek(0)
    return run


def _read_count(line: str) -> Count:
    token, count = json.loads(line)
    return token, count


def encode_stream(lines: Iterable[Sequence[str]], vocabulary: Vocabulary) -> Tensor:
    """Look up a long text, in one pass.

    Args:
        lines: its tokens, line by line.
        vocabulary: where to look.

    Returns:
        The indices of all tokens, one line after the other, shape (tokens,), int32. They lie in a file that is mapped
        to memory and goes with the tensor; what is written into the tensor does not reach the file.

    Raises:
        DataError: when the text has no token.

    Example:
        >>> lines = [["a", "rose"], ["is", "a", "rose"]]
        >>> index(lines, gather(lines)).tolist()
        [2, 3, 4, 2, 3]
    """
    with tempfile.TemporaryFile() as file:
        found = array("i")
        for line in lines:
            found.extend(vocabulary.encode(line))
            if len(found) >= _MOST_LOOKED_UP:
                _append(found, file)
                del found[:]
        _append(found, file)
        if not file.tell():
            raise DataError("a text has no tokens; expected at least one")
        return torch.from_numpy(np.memmap(file, dtype=np.int32, mode="c"))


def _append(found: array[int], file: IO[bytes]) -> None:
    with _room():
        file.write(found)
        file.flush()


@contextmanager
def _room() -> Iterator[None]:
    """Say where there was no room, if there was none."""
    try:
        yield
    except OSError as error:
        folder = tempfile.gettempdir()
        reason = error.strerror or error
        raise FileError(f"{folder}: cannot be written: {reason}; the variable TMPDIR names another folder") from None
