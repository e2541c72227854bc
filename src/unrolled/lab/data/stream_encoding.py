"""Build the vocabulary of a text that may be larger than memory, and look up its tokens: one pass each.

Memory holds a line, some thousand indices, and the counts of at most a million different tokens. Beyond a million,
counts are written to sorted files, which are merged at the end. The indices are written to a file. These files have no
names in the folder for temporary files (``TMPDIR``), so that the operating system deletes them when the process ends.
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
from unrolled.lab.data.vocabulary import Vocabulary, compose

__all__ = ["build_vocabulary", "count_tokens", "encode_stream"]

_MOST_COUNTED = 2**20
_MOST_LOOKED_UP = 2**16

Count = tuple[str, int]


def build_vocabulary(
    lines: Iterable[Sequence[str]], *, min_count: int = 1, most: int | None = None, lowercase: bool = False
) -> Vocabulary:
    """Build the same vocabulary as :meth:`Vocabulary.from_texts`, in one pass over the lines.

    Args:
        lines: The tokens of each line.
        min_count: How often a word must occur to be included.
        most: The maximal number of words, the most frequent; None for all.
        lowercase: Whether to ignore case.

    Example:
        >>> build_vocabulary([["a", "rose", "is", "a", "<unk>"]], most=2).words
        ('<pad>', '<unk>', 'a', 'is')
    """
    with count_tokens(compose([token.lower() for token in line] if lowercase else line) for line in lines) as counts:
        return Vocabulary.from_counts(counts, min_count=min_count, most=most, lowercase=lowercase)


@contextmanager
def count_tokens(lines: Iterable[Iterable[str]], *, at_once: int = _MOST_COUNTED) -> Iterator[Iterator[Count]]:
    """Count the tokens of a long text, with at most ``at_once`` different tokens in memory.

    The context's value yields every token once with its count. It can be read once, inside the ``with`` block.
    """
    with ExitStack() as open_runs:
        runs: list[IO[str]] = []
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(line)
            if len(counts) > at_once:
                runs.append(open_runs.enter_context(_write_sorted(counts)))
                counts.clear()
        if not runs:
            yield iter(counts.items())
            return
        parts: list[Iterable[Count]] = [map(_read_count, run) for run in runs]
        merged = heapq.merge(*parts, sorted(counts.items()))
        yield ((token, sum(count for _, count in same)) for token, same in groupby(merged, key=lambda pair: pair[0]))


def _write_sorted(counts: Counter[str]) -> IO[str]:
    """Write counts to a file, sorted by token; as JSON, because a token may be a line end."""
    with _name_full_folder():
        run = tempfile.TemporaryFile("w+", encoding="ascii")  # noqa: SIM115  # the caller closes it
        for pair in sorted(counts.items()):
            run.write(json.dumps(pair) + "\n")
        run.seek(0)
    return run


def _read_count(line: str) -> Count:
    token, count = json.loads(line)
    return token, count


def encode_stream(lines: Iterable[Sequence[str]], vocabulary: Vocabulary) -> Tensor:
    """Look up all tokens of a text in one pass.

    Returns:
        The indices, shape (tokens,), int32. They lie in a file that is mapped to memory and deleted with the tensor;
        writing into the tensor does not change the file.

    Raises:
        DataError: If the text has no token.

    Example:
        >>> lines = [["a", "rose"], ["is", "a", "rose"]]
        >>> encode_stream(lines, build_vocabulary(lines)).tolist()
        [2, 3, 4, 2, 3]
    """
    with tempfile.TemporaryFile() as file:
        found = array("i")
        for line in lines:
            found.extend(vocabulary.encode(compose(line) if vocabulary.composed else line))
            if len(found) >= _MOST_LOOKED_UP:
                _append(found, file)
                del found[:]
        _append(found, file)
        if not file.tell():
            raise DataError("a text has no tokens; expected at least one")
        return torch.from_numpy(np.memmap(file, dtype=np.int32, mode="c"))


def _append(found: array[int], file: IO[bytes]) -> None:
    with _name_full_folder():
        file.write(found)
        file.flush()


@contextmanager
def _name_full_folder() -> Iterator[None]:
    """Raise an error that names the temporary folder if it cannot be written."""
    try:
        yield
    except OSError as error:
        folder = tempfile.gettempdir()
        reason = error.strerror or error
        raise FileError(f"{folder}: cannot be written: {reason}; set the variable TMPDIR to another folder") from None
